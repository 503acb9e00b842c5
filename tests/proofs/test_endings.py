"""Every way in which training is ended from outside × every way in which it goes on: what is left, and what comes of
it.

Each run is told to end, or is killed, at a moment that a seed decides, then resumed, and compared with a run that
nobody touched. Prints a table; ``ENDINGS_MOMENTS`` says how many moments a row has.
"""

import contextlib
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import psutil
import pytest

from cuarl.run.checkpoints import marked_step
from tests.integration.rollout_place import Place
from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401
from tests.integration.test_train_cli import LUCK, ROOT, checkpoint, lines, measured, options  # noqa: F401

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(7200)]

TERM, INT, HUP, KILL = signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL
NO_GRACE = "no grace"
SIGNALS = {
    "SIGTERM": [TERM],
    "SIGINT": [INT],
    "SIGHUP": [HUP],
    "twice": [TERM, INT],
    "kill -9": [KILL],
    NO_GRACE: [TERM],  # steps that are being learnt are undone, and nothing that is collected meanwhile is waited for
}
STEPS = 6
MOMENTS = int(os.environ.get("ENDINGS_MOMENTS", "2"))
GRACE_S = 30.0
MODES = {"in turn": [], "asynchronous": ["--max-steps-off-policy", "1"], "two processes": ["--processes", "2"]}
KINDS = [(mode, algorithm) for mode in MODES for algorithm in ("grpo", "ppo", "sft")]
KINDS.remove(("asynchronous", "sft"))  # refused by name
KINDS.append(("in turn", "rejection"))

PRELOADED = [
    "torch",
    "transformers",
    "peft",
    "accelerate",
    "cuarl.cli.commands.train",
    "cuarl.workflow.from_config",
    "cuarl.train.learner",
]
FORKS = multiprocessing.get_context("forkserver")


@dataclass
class Row:
    """What came of the runs of one row of the table."""

    counts: Counter = field(default_factory=Counter)
    slowest_s: float = 0.0
    wrong: list = field(default_factory=list)


TABLE: dict[tuple[str, str, str], Row] = {}


def command(folder, args, said, environment):
    """A child: ``cuarl *args`` in ``folder``, with standard error in ``said``."""
    os.environ.update(environment)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    with said.open("w") as file:
        os.dup2(file.fileno(), 2)
        os.dup2(file.fileno(), 1)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    from cuarl.cli.app import main

    main(args)


class Bench:
    """Runs of one kind in one folder."""

    def __init__(self, folder, args):
        self.folder, self.args = folder, args

    def start(self, args, name, grace_s=GRACE_S):
        environment = {
            "PYTHONPATH": f"{ROOT}:{self.folder}",
            "OMP_NUM_THREADS": "1",
            "CUARL_GRACE_SECONDS": str(grace_s),
        }
        child = FORKS.Process(target=command, args=(self.folder, args, self.folder / f"{name}.err", environment))
        child.start()
        return child

    def finish(self, args, name):
        child = self.start(args, name)
        child.join(240)
        assert child.exitcode == 0, (self.folder / f"{name}.err").read_text()

    def run(self, name):
        return self.folder / "runs" / name

    def untouched(self):
        self.finish([*self.args, "--name", "whole"], "whole")
        return self.run("whole")

    def cut(self, name, numbers, moment, grace_s):
        """A run that gets the signals at a moment: its exit code, the seconds that it took to end, and rows at that
        time."""
        child = self.start([*self.args, "--name", name], name, grace_s)
        run, rows = self.run(name), 1 + moment.randrange(STEPS - 2)
        while len(lines(run / "metrics.jsonl")) < rows:
            assert child.is_alive(), (self.folder / f"{name}.err").read_text()
            time.sleep(0.01)
        time.sleep(moment.random() * self.step_s(run))
        ranks = psutil.Process(child.pid).children(recursive=True)
        known, began = len(lines(run / "metrics.jsonl")), time.monotonic()
        for number in numbers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, number)
            time.sleep(0.05)
        child.join(240)
        left = psutil.wait_procs(ranks, timeout=120)[1]
        assert not left, f"{left} live on"
        return child.exitcode, time.monotonic() - began, known

    def step_s(self, run):
        return lines(run / "metrics.jsonl")[-1].get("time/step_s", 0.1)


@pytest.fixture(scope="module", autouse=True)
def table():
    """Printed when all is done."""
    FORKS.set_forkserver_preload(PRELOADED)
    yield
    print(
        f"\n\n{'mode':<14}{'algorithm':<11}{'signal':<9}{'runs':>5}{'orderly':>9}{'equal':>7}"
        f"{'over before':>13}{'slowest':>10}"
    )
    for (mode, algorithm, name), row in TABLE.items():
        c = row.counts
        print(
            f"{mode:<14}{algorithm:<11}{name:<9}{c['runs']:>5}{c['orderly']:>9}{c['equal']:>7}"
            f"{c['over']:>13}{row.slowest_s:>8.1f} s"
        )
        for what in row.wrong:
            print(f"    {what}")
    total = sum((row.counts for row in TABLE.values()), Counter())
    print(f"{'all':<34}{total['runs']:>5}{total['orderly']:>9}{total['equal']:>7}{total['over']:>13}")


@pytest.fixture
def bench(request, tmp_path, options, qwen3_folder):  # noqa: F811
    mode, algorithm = request.param
    Place(tmp_path, None)
    (tmp_path / "luck.py").write_text(LUCK)
    short = ["--max-steps", str(STEPS), "--save-every", "2", "--eval-every", "3", "--eval-episodes", "2"]
    made = Bench(tmp_path, [*options, *short, *MODES[mode]])
    if algorithm == "sft":
        shown = ["rollout", "--tasks", "tasks.json", "--agent", "demonstration", "--model-name", str(qwen3_folder)]
        made.finish([*shown, "--episodes", "4", "--name", "shown"], "shown")
        made.args = made.args[:1] + made.args[made.args.index("--eval-tasks") :]  # no task is trained on
        made.args = [word for word in made.args if word not in ("--reward", "luck:luck")]
        made.args += ["--algorithm", "sft", "--sft-runs", "shown"]
    elif algorithm != "grpo":
        made.args += ["--algorithm", algorithm]
    return made


@pytest.mark.parametrize("bench", KINDS, indirect=True, ids=lambda kind: "-".join(kind))
def test_whatever_ends_training_nothing_is_lost_and_all_that_is_written_agrees(bench, request):
    mode, algorithm = request.node.callspec.params["bench"]
    whole = bench.untouched()
    for signal_name, numbers in SIGNALS.items():
        row = TABLE.setdefault((mode, algorithm, signal_name), Row())
        for number in range(MOMENTS):
            moment = random.Random(f"{mode}/{algorithm}/{signal_name}/{number}")
            name = f"{signal_name.replace(' ', '')}-{number}"
            for fault in one(bench, whole, name, numbers, moment, row):
                row.wrong.append(f"{name}: {fault}")
    wrong = [what for (m, a, _), row in TABLE.items() if (m, a) == (mode, algorithm) for what in row.wrong]
    assert wrong == []


def one(bench, whole, name, numbers, moment, row):
    """One run: cut, looked at, resumed and compared. What is wrong with it."""
    code, seconds, known = bench.cut(name, numbers, moment, 0.001 if name.startswith("nograce") else GRACE_S)
    run = bench.run(name)
    row.counts["runs"] += 1
    if code == 0 or (code == -KILL and states_of(run) == "success"):  # killed after its last word
        row.counts["over"] += 1
        return
    faults = list(killed(bench, run, code) if numbers == [KILL] else ended(bench, run, code, known))
    if numbers != [KILL]:
        row.slowest_s = max(row.slowest_s, seconds)
        faults += [f"it took {seconds:.0f} s to end"] if seconds > GRACE_S else []
    row.counts["orderly"] += not faults
    yield from faults
    # how many processes share the work is no part of a run, and decides which sequences share a pass
    shared = MODES["two processes"] if "--processes" in bench.args else []
    bench.finish(["train", "--resume", name, *shared], f"{name}-resumed")
    same = list(differences(run, whole))
    row.counts["equal"] += not same
    # what is in flight then goes on with newer weights
    yield from same if "--max-steps-off-policy" not in bench.args or not name.startswith("nograce") else ()


def states(bench, run):
    manifest = json.loads((run / "manifest.json").read_text())
    with Place(bench.folder, None).store() as store:
        (record,) = [r for r in store.runs() if r.name == run.name]
    return manifest["status"], manifest["attempts"][-1]["status"], manifest["exit_code"], record.status


def ended(bench, run, code, known):
    """Faults of a run that was told to end when it had reported ``known`` rows."""
    err = (bench.folder / f"{run.name}.err").read_text()
    if code != 130:
        yield f"exit code {code}"
    if (found := states(bench, run)) != ("cancelled", "cancelled", 130, "cancelled"):
        yield f"states {found}"
    if "Traceback" in err or f"resume with: cuarl train --resume {run.name}" not in err:
        yield f"said {err[-300:]!r}"
    saved = marked_step(run / "checkpoints") or 0
    reported = [line["step"] for line in lines(run / "metrics.jsonl")]
    pending = (run / "checkpoints" / "trainer" / f"step-{saved:06d}" / "pending.json").exists()
    # step 0 has a row of its own; a step whose evaluation is pending has none yet
    if reported != list(range(saved + 1 - pending)) or saved < known - 1:
        yield f"reported {reported}, {known} of them before the signal, saved {saved}{' pending' if pending else ''}"


def killed(bench, run, code):
    """Faults of a run that was killed: nothing can have been written of it, and nothing must look as if it were
    alive."""
    from cuarl.run import Run

    if code != -KILL:
        yield f"exit code {code}"
    alone = states(bench, run)[0] == "running"
    if alone and Run(run).status != "killed":
        yield f"status {Run(run).status}"
    if not alone and states(bench, run) != ("cancelled", "cancelled", 130, "cancelled"):  # its ranks had time to end
        yield f"states {states(bench, run)}"


def differences(run, whole):
    """What is not as in the run that nobody touched."""
    if states_of(run) != "success":
        yield f"status {states_of(run)} in the end"
    if checkpoint(run, STEPS)["adapter_model.safetensors"] != checkpoint(whole, STEPS)["adapter_model.safetensors"]:
        yield "another adapter in the end"
    mine, theirs = measured(run), measured(whole)
    if [row["step"] for row in mine] != [row["step"] for row in theirs]:
        yield f"steps {[row['step'] for row in mine]}"
    odd = sorted({n for a, b in zip(mine, theirs, strict=False) for n in a.keys() | b.keys() if a.get(n) != b.get(n)})
    if odd:
        yield f"other metrics: {', '.join(odd)}"


def states_of(run):
    return json.loads((run / "manifest.json").read_text())["status"]
