import pytest


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch, tmp_path):
    """An empty folder to work in, with no variables that lead to another."""
    for name in ("CUARL_RUNS_DIR", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.chdir(tmp_path)
