import os
from pathlib import Path

import pytest

from cuarl import safe_text
from cuarl.errors import ConfigError, MissingSecret, PrerequisiteError
from cuarl.settings import Settings, find_dotenv

CANARY = "canary-5d1e9f"


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No variable of ours, no .env, no secret known."""
    for name in ("DATABASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "HF_TOKEN", "GBOX_API_KEY", "TINKER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOST", "PORT", "DB", "USER", "PASSWORD"):
        monkeypatch.delenv(f"POSTGRES_{name}", raising=False)
    for name in ("CUARL_RUNS_DIR", "CUARL_LOG_LEVEL", "CUARL_BLOBS_URL", "CUARL_TASKS_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(safe_text, "_secrets", set())
    monkeypatch.chdir(tmp_path)


def test_defaults_need_nothing():
    settings = Settings.load()
    assert settings.db_url == "sqlite:///runs/cuarl.db"
    assert settings.runs_dir == Path("runs")
    assert settings.secrets() == []


def test_command_line_wins_over_environment_over_dotenv(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("CUARL_RUNS_DIR=/c\nCUARL_BLOBS_URL=s3://c\nCUARL_LOG_LEVEL=debug\n")
    monkeypatch.setenv("CUARL_RUNS_DIR", "/b")
    monkeypatch.setenv("CUARL_BLOBS_URL", "s3://b")
    settings = Settings.load(runs_dir=Path("/a"))
    assert (settings.runs_dir, settings.blobs_url, settings.log_level) == (Path("/a"), "s3://b", "debug")


def test_a_setting_may_be_called_as_a_services_own_client_calls_it(monkeypatch):
    monkeypatch.delenv("GBOX_BASE_URL", raising=False)
    monkeypatch.setenv("GBOX_CLIENT_BASE_URL", "http://box/api/v1")
    assert Settings.load().gbox_base_url == "http://box/api/v1"
    monkeypatch.setenv("GBOX_BASE_URL", "http://ours/api/v1")
    assert Settings.load().gbox_base_url == "http://ours/api/v1"
    assert Settings.variables("gbox_base_url") == ("GBOX_BASE_URL", "GBOX_CLIENT_BASE_URL")


def test_empty_variables_count_as_unset(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "")
    assert Settings.load().db_url.startswith("sqlite")


def test_dotenv_is_found_upwards_and_its_paths_are_its_own(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("CUARL_RUNS_DIR=out\nDATABASE_URL=sqlite:///x.db\nOPENAI_API_KEY_FILE=key\n")
    (tmp_path / "key").write_text(f"{CANARY}\n")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert find_dotenv() == tmp_path / ".env"
    settings = Settings.load()
    assert settings.runs_dir == tmp_path / "out"
    assert settings.db_url == f"sqlite:///{tmp_path}/x.db"
    assert settings.require("openai_api_key") == CANARY


def test_the_named_env_file_replaces_the_found_one(tmp_path):
    (tmp_path / ".env").write_text("CUARL_RUNS_DIR=/found\n")
    (tmp_path / "other").write_text("CUARL_BLOBS_URL=s3://b\n")
    settings = Settings.load(env_file=tmp_path / "other")
    assert (settings.runs_dir, settings.blobs_url) == (Path("runs"), "s3://b")


def test_a_missing_env_file_is_an_error(tmp_path):
    with pytest.raises(PrerequisiteError, match="not there"):
        Settings.load(env_file=tmp_path / "gone")


def test_a_variable_wins_over_its_file(monkeypatch, tmp_path):
    (tmp_path / "key").write_text("from-the-file")
    monkeypatch.setenv("HF_TOKEN_FILE", str(tmp_path / "key"))
    assert Settings.load().require("hf_token") == "from-the-file"
    monkeypatch.setenv("HF_TOKEN", "direct-value")
    assert Settings.load().require("hf_token") == "direct-value"


def test_a_secret_file_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setenv("HF_TOKEN_FILE", "/nowhere/key")
    with pytest.raises(PrerequisiteError, match="can't read the secret"):
        Settings.load()


def test_postgres_parts_make_a_url(monkeypatch):
    monkeypatch.setenv("POSTGRES_HOST", "db.local")
    monkeypatch.setenv("POSTGRES_USER", "me@work")
    monkeypatch.setenv("POSTGRES_PASSWORD", "p:a/s s@1")
    assert Settings.load().db_url == "postgresql://me%40work:p%3Aa%2Fs%20s%401@db.local:5432/cuarl"
    monkeypatch.setenv("DATABASE_URL", "postgresql://other/x")
    assert Settings.load().db_url == "postgresql://other/x"


def test_secrets_are_masked_in_everything_from_loading_on(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", f"postgresql://u:{CANARY}@h/d")
    monkeypatch.setenv("GBOX_API_KEY", "gbox-key-value")
    settings = Settings.load()
    assert set(settings.secrets()) == {CANARY, "gbox-key-value"}
    assert safe_text.masked(f"{CANARY} gbox-key-value h/d") == "***9f ***ue h/d"
    for text in (repr(settings), str(settings.model_dump()), settings.model_dump_json()):
        assert CANARY not in text and "gbox-key-value" not in text


def test_wrong_values_are_named_but_not_repeated(monkeypatch):
    monkeypatch.setenv("POSTGRES_PORT", "many-canary")
    with pytest.raises(ConfigError, match="POSTGRES_PORT") as caught:
        Settings.load()
    assert "many-canary" not in str(caught.value)


def test_a_missing_secret_says_which_variable_to_set():
    with pytest.raises(MissingSecret, match="TINKER_API_KEY is not set") as caught:
        Settings.load().require("tinker_api_key")
    assert caught.value.exit_code == 4


def test_unknown_variables_are_nobodys_business(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("SOMETHING_ELSE=1\nCUARL_NOT_OURS=2\n")
    Settings.load()


def test_the_hub_is_told_its_token_unless_the_environment_says_another(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", "x")  # so that it is put back
    monkeypatch.delenv("HF_TOKEN")
    Settings.load(hf_token="from-a-file").tell_hub()
    assert os.environ["HF_TOKEN"] == "from-a-file"
    Settings.load(hf_token="another").tell_hub()
    assert os.environ["HF_TOKEN"] == "from-a-file"
    monkeypatch.delenv("HF_TOKEN")
    Settings.load().tell_hub()
    assert "HF_TOKEN" not in os.environ
