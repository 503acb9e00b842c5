"""No secret reaches a file or the screen: a whole rollout with canaries wherever a secret can come from."""

import os
import subprocess
import sys

import pytest

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
            command, capture_output=True, text=True, cwd=tmp_path, timeout=120,
            env={**environment, "OMP_NUM_THREADS": "1", **variables},
        )  # fmt: skip
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
    code, output = rollout("--agent", "oracle", "--episodes", "1", "--db", "sqlite:///store.db",
                           TINKER_API_KEY_FILE="key", DATABASE_URL=url, **names)  # fmt: skip
    assert code == 0, output
    (tmp_path / "key").unlink()
    assert list(tmp_path.rglob("manifest.json"))
    assert_no_canary(tmp_path, output)


def test_c57_an_endpoint_that_refuses_shows_no_key(rollout, tmp_path):
    code, output = rollout(
        "--agent", "policy", "--episodes", "1", "--db", f"postgresql://me:{CANARY}@127.0.0.1:9/x",
        OPENAI_API_KEY=CANARY, OPENAI_BASE_URL=f"http://me:{CANARY}@127.0.0.1:9/v1",
    )  # fmt: skip
    assert code != 0
    assert "error:" in output
    assert_no_canary(tmp_path, output)
