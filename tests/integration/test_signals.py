"""Training that is told to end: everything finished is saved, and all that is written says the same of how it ended."""

import json
import signal

import psutil
import pytest

from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401
from tests.integration.test_train_cli import (  # noqa: F401
    finished,
    lines,
    measured,
    options,
    place,
    started,
    wait_until,
)

pytestmark = pytest.mark.integration


@pytest.fixture
def imitation(place, options, qwen3_folder):  # noqa: F811
    """Imitation that is saved at its end alone."""
    shown = ["rollout", "--tasks", "tasks.json", "--agent", "demonstration", "--model-name", str(qwen3_folder)]
    assert place.cuarl(*shown, "--episodes", "4", "--name", "shown").code == 0
    measured = options[: options.index("--tasks")] + options[options.index("--eval-tasks") :]  # nothing is trained
    plain = [word for word in measured if word not in ("--reward", "luck:luck")]
    return [*plain, "--algorithm", "sft", "--sft-runs", "shown", *rare(500)]


def rare(steps):
    """Options of a run that is neither measured nor saved before its end."""
    return ["--max-steps", str(steps), "--save-every", "0", "--eval-every", "0", "--skip-baseline"]


def told(place, args, *signals, rows=2):  # noqa: F811
    """What is left of a run that gets ``signals`` after ``rows`` steps."""
    process = started(place.folder, [*args, "--name", "run"])
    run = place.folder / "runs" / "run"
    wait_until(lambda: len(lines(run / "metrics.jsonl")) >= rows, process)
    for number in signals:
        process.send_signal(number)
    code, err = finished(process)
    assert code == 130, err
    assert err.count("resume with: cuarl train --resume run") == 1 and "Traceback" not in err, err
    return run


def ended(place, run):  # noqa: F811
    """How a run ended, as all agree on it, and the newest step that its checkpoints have."""
    manifest = json.loads((run / "manifest.json").read_text())
    last = manifest["attempts"][-1]
    with place.store() as store:
        (record,) = [r for r in store.runs() if r.name == run.name]
    assert {manifest["status"], last["status"], record.status} == {"cancelled"} and last["exit_code"] == 130
    newest = int((run / "checkpoints" / "latest").readlink().name[-6:])
    assert [row["step"] for row in measured(run)] == list(range(1, newest + 1)), "every step that was learnt is saved"
    return newest


def test_imitation_that_is_told_to_end_saves_the_step_in_hand(place, imitation):  # noqa: F811
    run = told(place, imitation, signal.SIGTERM)
    newest = ended(place, run)
    assert newest >= 2
    assert place.cuarl("train", "--resume", "run", "--max-steps", str(newest + 1), "--eval-episodes", "2").code == 0
    assert [row["step"] for row in measured(run)] == list(range(1, newest + 2))


@pytest.mark.parametrize("signals", [[signal.SIGHUP], [signal.SIGINT, signal.SIGTERM, signal.SIGINT]], ids=str)
def test_training_that_is_told_to_end_saves_what_it_has_however_often_it_is_told(place, options, signals):  # noqa: F811
    run = told(place, [*options, *rare(500)], *signals)
    assert ended(place, run) >= 2


@pytest.fixture
def quiet_temporaries(tmp_path, monkeypatch):
    """A folder for temporary files that must be left empty."""
    folder = tmp_path / "temporaries"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    yield
    assert not [path for path in folder.iterdir() if "launch" in path.name or "elastic" in path.name]


@pytest.mark.usefixtures("quiet_temporaries")
def test_several_processes_end_together_and_without_a_launchers_traceback(place, options):  # noqa: F811
    run = told(place, [*options, *rare(500), "--processes", "2"], signal.SIGTERM)
    assert ended(place, run) >= 2


@pytest.mark.slow
def test_processes_end_with_the_launcher_that_is_killed_and_save_what_they_have(place, options):  # noqa: F811
    process = started(place.folder, [*options, *rare(500), "--processes", "2", "--name", "run"])
    run = place.folder / "runs" / "run"
    wait_until(lambda: len(lines(run / "metrics.jsonl")) >= 2, process)
    ranks = [p for p in psutil.Process(process.pid).children(recursive=True) if "LOCAL_RANK" in p.environ()]
    assert len(ranks) == 2
    process.kill()
    assert not psutil.wait_procs(ranks, timeout=120)[1]
    assert ended(place, run) >= 2
    assert finished(process)[0] == -signal.SIGKILL


@pytest.mark.slow
def test_training_by_tinker_saves_the_step_in_hand_and_goes_on(place, options, monkeypatch):  # noqa: F811
    pytest.importorskip("tinker", reason="the extra tinker is not installed")
    pytest.importorskip("uvicorn", reason="the extra web is not installed")
    from cuarl.local.tinker import running, served_base

    small = [
        "train", "--trainer", "tinker", "--tasks", "tasks.json", "--eval-tasks", "tasks.json", "--reward", "luck:luck",
        "--group-size", "3", "--groups-per-batch", "2", "--max-turns", "2", "--max-tokens", "6", "--eval-episodes", "2",
    ]  # fmt: skip
    with running(served_base()) as url:
        for name, value in (("BASE_URL", url), ("API_KEY", "tml-local-key"), ("TELEMETRY", "0")):
            monkeypatch.setenv(f"TINKER_{name}", value)
        run = told(place, [*small, *rare(500)], signal.SIGTERM)
        newest = ended(place, run)
        assert newest >= 2 and (run / "checkpoints" / f"step-{newest:06d}" / "tinker.json").is_file()
        code, err = finished(started(place.folder, ["train", "--resume", "run", "--max-steps", str(newest + 1)]))
        assert code == 0, err
    assert [row["step"] for row in measured(run)] == list(range(1, newest + 2))
