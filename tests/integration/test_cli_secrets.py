"""No secret reaches a file or the screen: a whole rollout with canaries wherever a secret can come from."""

import os
import subprocess
import sys

import pytest

from cuarl.cli.app import run
from tests.unit.cli.conftest import bare_terminal

__all__ = ["bare_terminal"]
pytestmark = pytest.mark.integration
CANARY = "canary9f8e7d6c5b4a"
TASK = """\
- id: wifi_off
  description: Turn off Wi-Fi
  category: settings
  difficulty: easy
  validation_query: wifi_enabled
  expected_result: false
"""


@pytest.fixture
def rollout(tmp_path):
    """Runs a rollout at full verbosity with the given variables; gives everything it printed."""
    (tmp_path / "tasks.yaml").write_text(TASK)

    def rollout(*args, **variables):
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        command = [sys.executable, "-m", "cuarl", "-vv", "--debug", "rollout", "--tasks", "tasks.yaml", *args]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=120,
            env={**environment, "OMP_NUM_THREADS": "1", **variables},
        )
        return done.returncode, done.stdout + done.stderr

    return rollout


def assert_no_canary(folder, output):
    assert CANARY not in output
    leaks = [path for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]
    assert leaks == []


def test_c57_a_rollout_keeps_secrets_of_the_environment_and_dotenv_to_itself(rollout, tmp_path):
    (tmp_path / "key").write_text(f"{CANARY}-in-a-file")
    names = {"GBOX_API_KEY": CANARY, "HF_TOKEN": CANARY, "SOME_OTHER_TOKEN": CANARY, "USE_CLS_TOKEN": "cls_token"}
    url = f"sqlite:///store.db?password={CANARY}"
    code, output = rollout(
        "--agent",
        "oracle",
        "--episodes",
        "1",
        "--db",
        "sqlite:///store.db",
        TINKER_API_KEY_FILE="key",
        DATABASE_URL=url,
        **names,
    )
    assert code == 0, output
    (tmp_path / "key").unlink()
    assert list(tmp_path.rglob("manifest.json"))
    assert_no_canary(tmp_path, output)


def test_c57_an_endpoint_that_refuses_shows_no_key(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{CANARY}@127.0.0.1:9/v1")
    (tmp_path / "tasks.yaml").write_text(TASK)
    asked = ["rollout", "--tasks", "tasks.yaml", "--agent", "policy", "--episodes", "1"]
    assert run(["-vv", "--debug", *asked, "--db", f"postgresql://me:{CANARY}@127.0.0.1:9/x"]) != 0
    out, err = capsys.readouterr()
    assert "error:" in err
    assert_no_canary(tmp_path, out + err)


URLS = ("http://me:{}@127.0.0.1:9/v1", "http://127.0.0.1:9/v1?api_key={}")


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(
    "options",
    [
        ["--model-base-url", "URL"], ["--model-base-url=URL"], ["-s", "policy.base_url=URL"], ["-c", "config.yaml"],
        ["--env", "openenv", "--openenv-url", "URL"],
        ["--env", "gym", "--gym-actor", "mini-agent", "--gym-model-url", "URL"],
        ["--env", "browser", "--url", "URL", "--task", "Buy it", "--check", "text has it"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_c57_a_url_with_a_credential_is_refused_before_anything_is_written(tmp_path, monkeypatch, capsys, options, url):
    secret = url.format(CANARY)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.yaml").write_text(TASK)
    (tmp_path / "config.yaml").write_text(f"policy: {{type: openai, base_url: '{secret}'}}\n")
    tasks = [] if "--url" in options else ["--tasks", "tasks.yaml"]
    assert run(["--debug", "rollout", *tasks, *(option.replace("URL", secret) for option in options)]) == 2
    out, err = capsys.readouterr()
    assert "password or key in its URL" in err and "fix: take it out" in err
    (tmp_path / "config.yaml").unlink()
    assert_no_canary(tmp_path, out + err)


@pytest.mark.parametrize("url", URLS)
def test_c57_a_target_with_a_credential_is_refused(tmp_path, monkeypatch, capsys, url):
    monkeypatch.chdir(tmp_path)
    assert run(["--debug", "eval", url.format(CANARY), "--episodes", "1"]) == 2
    out, err = capsys.readouterr()
    assert "password or key in its URL" in err
    assert_no_canary(tmp_path, out + err)
