"""``cuarl train`` where whole groups fail: led by an oracle, and imitating it; killed and resumed, and with workers."""

import signal

import pytest

from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401
from tests.integration.test_train_cli import checkpoint, finished, lines, measured, options, place, started, wait_until  # noqa: F401

pytestmark = pytest.mark.integration

LED = '''
"""A policy that knows nothing fails whole by itself; led, it has luck, so that there is something to compare."""
import hashlib

def luck(trajectory):
    answers = repr([turn.sampled.token_ids for turn in trajectory.turns if turn.sampled])
    return float(bool(trajectory.led) and int(hashlib.sha256(answers.encode()).hexdigest(), 16) % 3)
'''


@pytest.fixture
def failing(place, options):  # noqa: F811
    (place.folder / "luck.py").write_text(LED)
    helps = {"hint-turns": 1, "imitation-coef": 0.2, "entropy-floor": 99, "max-turns": 9}
    given = [word for name, value in helps.items() for word in (f"--{name}", str(value))]
    return [*options, *given, "--skip-baseline", "--eval-every", "0", "--eval-episodes", "2"]


def test_failures_are_led_and_demonstrated_and_figures_of_episodes_do_not_know(place, failing):  # noqa: F811
    result = place.cuarl(*failing, "--max-steps", "2", "--name", "one")
    assert result.code == 0, result.err
    rows = [row for row in measured(place.folder / "runs" / "one") if "hints/groups" in row]
    assert [row["hints/groups"] for row in rows] == [2, 2] == [row["imitation/groups"] for row in rows]
    assert all(row["reward/mean"] == 0 and row["optim/updates"] == 1 for row in rows)
    assert [row["policy/entropy_coef"] for row in rows] == [0, 0.005]
    with place.store() as store:
        (run,) = store.runs()
        told = list(store.trajectories(run=run.id, purpose="train"))
    kinds = {kind: [t for t in told if t.group_id.endswith(kind)] for kind in (".hint", ".demo")}
    own = [t for t in told if not t.group_id.endswith((".hint", ".demo"))]
    assert (len(own), len(kinds[".hint"]), len(kinds[".demo"])) == (12, 12, 4)
    assert all(t.led == 0 for t in own) and all(t.led == 1 for t in kinds[".hint"] if t.step == 1)
    assert all(t.success and t.led == len(t.turns) for t in kinds[".demo"])
    assert {(t.task_id, t.seed) for t in kinds[".hint"]} == {(t.task_id, t.seed) for t in own}

    # by processes of their own it is the same
    assert place.cuarl(*failing, "--max-steps", "2", "--name", "two", "--workers", "2").code == 0
    runs = place.folder / "runs"
    assert measured(runs / "two") == measured(runs / "one")
    one, two = (checkpoint(runs / name, 2)["adapter_model.safetensors"] for name in ("one", "two"))
    assert one == two


@pytest.mark.slow
def test_a_run_with_an_oracles_help_that_is_killed_and_resumed_equals_one_that_was_not(place, failing):  # noqa: F811
    failing = [*failing, "--group-size", "2", "--max-turns", "7"]
    code, err = finished(started(place.folder, [*failing, "--name", "whole"]))  # with as many threads as the others
    assert code == 0, err
    whole, cut = (place.folder / "runs" / name for name in ("whole", "cut"))
    process = started(place.folder, [*failing, "--name", "cut"])
    wait_until(lambda: len(lines(cut / "metrics.jsonl")) >= 2, process)
    process.kill()
    assert finished(process)[0] == -signal.SIGKILL
    code, err = finished(started(place.folder, ["train", "--resume", "cut"]))
    assert code == 0, err
    assert measured(cut) == measured(whole)
    assert checkpoint(cut)["adapter_model.safetensors"] == checkpoint(whole)["adapter_model.safetensors"]
    state = "checkpoints/trainer/step-000004/state.pt"
    assert (cut / state).read_bytes() == (whole / state).read_bytes()
