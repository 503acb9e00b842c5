"""The command as a process: exit codes, pipes, signals, what it loads and how quickly."""

import json
import os
import resource
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration
HEAVY = ("torch", "transformers", "sqlalchemy", "alembic")


@pytest.fixture
def environment(tmp_path):
    """The variables of a bare shell."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "PYTHONPATH") if name in os.environ}
    return {**kept, "CUARL_RUNS_DIR": str(tmp_path / "runs"), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def cuarl(environment, tmp_path):
    def cuarl(*args, **variables):
        command = [sys.executable, "-m", "cuarl", *args]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**environment, **variables},
            cwd=tmp_path,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )

    return cuarl


@pytest.fixture
def running(tmp_path):
    """A run directory that says it is running, by this very process."""
    from cuarl.config.load import resolve
    from cuarl.run import Run

    with Run.create(tmp_path / "runs", resolve(), name="alpha") as run:
        yield run


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["--version"]])
def test_the_root_loads_nothing_heavy(environment, args):
    code = f"import sys; sys.argv = ['cuarl', *{args!r}]\nfrom cuarl.cli.app import main\n"
    code += f"try: main()\nexcept SystemExit as e: print(e.code, [m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_help_is_there_at_once(cuarl):
    def seconds():
        """Processor time, which a busy machine does not stretch as it does the clock's."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert cuarl("--help").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.5


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["config", "presets"], 0),
        (["monitor", "tail", "broken", "--no-follow"], 1),
        ([], 2),
        (["config", "show", "-s", "sede=1"], 2),
        (["config", "--nope"], 2),
        (["--env-file", "nowhere", "monitor", "tail"], 4),
    ],
    ids=str,
)
def test_the_process_exits_with_the_documented_code(cuarl, tmp_path, args, code):
    (tmp_path / "runs" / "broken").mkdir(parents=True)
    (tmp_path / "runs" / "broken" / "manifest.json").write_text("{")
    done = cuarl(*args)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    if code in (1, 2, 4):
        assert done.stdout == ""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_signals_end_a_command_with_130_and_no_traceback(environment, running, sent):
    command = [sys.executable, "-m", "cuarl", "monitor", "tail"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert "alpha (running)" in process.stderr.readline()
        process.send_signal(sent)
        assert process.wait(20) == 130
        assert process.stderr.read().strip() == "interrupted"


def test_a_background_job_of_a_script_can_be_terminated(environment, running):
    shell = f"trap '' INT; exec {sys.executable} -m cuarl monitor tail"
    with subprocess.Popen(["bash", "-c", shell], stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert "alpha (running)" in process.stderr.readline()
        process.terminate()
        assert process.wait(20) == 130


def test_c60_a_closed_pipe_is_quiet(environment):
    shell = f"{sys.executable} -m cuarl config schema | head -c 1 >/dev/null"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env=environment, timeout=60)
    assert done.stderr == ""


def test_c60_closed_standard_streams_are_no_fault(environment):
    shell = f"{sys.executable} -m cuarl config presets >&- 2>&- <&-"
    assert subprocess.run(["bash", "-c", shell], env=environment, timeout=60).returncode == 0


def test_c60_json_is_alone_on_stdout_even_with_warnings(cuarl):
    done = cuarl("config", "presets", "--json", PYTHONWARNINGS="always", PYTHONDEVMODE="1")
    assert json.loads(done.stdout)


@pytest.mark.parametrize("variables", [{"FORCE_COLOR": "1"}, {}], ids=["forced", "pipe"])
def test_c60_colour_in_a_pipe_only_when_forced(cuarl, variables):
    done = cuarl("monitor", "tail", **variables)
    assert ("\x1b[" in done.stderr) == bool(variables)


def test_c57_an_environment_secret_is_nowhere_in_what_is_printed(cuarl):
    canary = "canary-4c5b6a7d"
    done = cuarl(
        "--debug",
        "monitor",
        "tail",
        canary,
        "--runs-dir",
        f"postgresql://u:{canary}@h/x",
        OPENAI_API_KEY=canary,
        DATABASE_URL=f"postgresql://u:{canary}@h/x",
        USE_CLS_TOKEN="cls_token_name",
    )
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert canary not in done.stdout + done.stderr
