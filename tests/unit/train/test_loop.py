"""The loop with parts that write down what was asked of them."""

import anyio
import pytest

from cuarl.errors import RolloutError
from cuarl.train.batch import Batch
from cuarl.train.loop import LoopConfig, train

from .episodes import group


class Diary:
    """Learner, evaluation, sink and checkpoints in one: a list of what happened."""

    def __init__(self):
        self.lines = []
        self.values = {}

    def begin_step(self, step):
        self.lines.append(f"begin {step}")

    def update(self, batch, step):
        assert len(batch.groups) == 1
        self.lines.append(f"update {step}")
        return {"train/tokens": 4.0, "optim/lr": 0.1}

    async def evaluate(self, step):
        self.lines.append(f"eval {step}")
        return {"eval/n": 10.0 + step}

    def save(self, step):
        self.lines.append(f"save {step}")
        return f"folder/{step}"

    def commit(self, step, metrics):
        self.lines.append(f"commit {step} {dict(metrics)}")

    def metrics(self, step, values):
        self.lines.append(f"metrics {step}")
        self.values[step] = dict(values)

    def event(self, kind, data):
        self.lines.append(f"{kind} {data['path']}")

    def close(self):
        pass


def run(diary, config, *, start=0, collect=None):
    async def collected(step, policy_version):
        diary.lines.append(f"collect {step} with version {policy_version}")
        return Batch((group(1.0, 0.0),), {})

    return anyio.run(train, config, diary, collect or collected, diary.evaluate, diary, diary, start)


def test_a_run_goes_through_its_phases_in_order_and_commits_last():
    diary = Diary()
    outcome = run(diary, LoopConfig(max_steps=3, eval_every=2, save_every=2))
    assert diary.lines == [
        "eval 0", "metrics 0",
        "begin 1", "collect 1 with version 0", "update 1", "metrics 1",
        "begin 2", "collect 2 with version 1", "update 2", "save 2", "eval 2", "metrics 2", "commit 2 {'eval/n': 12.0}",
        "checkpoint folder/2",
        "begin 3", "collect 3 with version 2", "update 3", "save 3", "eval 3", "metrics 3", "commit 3 {'eval/n': 13.0}",
        "checkpoint folder/3",
    ]  # fmt: skip
    assert (outcome.first_eval, outcome.last_eval) == ({"eval/n": 10.0}, {"eval/n": 13.0})
    assert (outcome.steps, outcome.checkpoint) == (3, "folder/3")


def test_each_step_reports_episodes_updates_and_times_together():
    diary = Diary()
    run(diary, LoopConfig(max_steps=2, eval_every=0, save_every=0))
    first, last = diary.values[1], diary.values[2]
    assert (first["reward/mean"], first["optim/lr"], first["policy/lag_max"]) == (0.5, 0.1, 0.0)
    assert {n for n in first if n.startswith("time/")} == {"time/rollout_s", "time/train_s", "time/step_s"}
    assert {n for n in last if n.startswith("time/")} >= {"time/save_s", "time/eval_s"}
    assert first["perf/tokens_per_s"] > 0
    assert (last["eval/n"], "eval/n" in first) == (12.0, False)


def test_a_resumed_run_begins_after_the_restored_step_without_a_baseline():
    diary = Diary()
    outcome = run(diary, LoopConfig(max_steps=3), start=2)
    assert diary.lines[:2] == ["begin 3", "collect 3 with version 2"]
    assert outcome.first_eval is None


def test_a_finished_run_has_nothing_left_to_do():
    diary = Diary()
    assert run(diary, LoopConfig(max_steps=3), start=3).checkpoint is None
    assert diary.lines == []


def test_the_baseline_is_left_out_when_asked():
    diary = Diary()
    run(diary, LoopConfig(max_steps=1, skip_baseline=True))
    assert diary.lines[0] == "begin 1"


def test_what_was_learnt_is_saved_when_collecting_fails():
    diary = Diary()

    async def collect(step, policy_version):
        if step == 4:
            raise RolloutError("the devices are gone")
        return Batch((group(1.0, 0.0),), {})

    with pytest.raises(RolloutError, match="gone"):
        run(diary, LoopConfig(max_steps=9, save_every=2, skip_baseline=True), collect=collect)
    assert diary.lines[-3:] == ["begin 4", "save 3", "commit 3 {}"]


def test_what_was_learnt_is_saved_when_the_run_is_cancelled_while_collecting():
    diary = Diary()

    async def cancelled_in_step_two():
        with anyio.CancelScope() as scope:

            async def collect(step, policy_version):
                if step == 2:
                    scope.cancel()
                await anyio.sleep(0)
                return Batch((group(1.0, 0.0),), {})

            config = LoopConfig(max_steps=9, save_every=8, skip_baseline=True)
            await train(config, diary, collect, diary.evaluate, diary, diary)

    anyio.run(cancelled_in_step_two)
    assert diary.lines[-3:] == ["begin 2", "save 1", "commit 1 {}"]


def test_nothing_is_saved_twice_when_a_run_is_cut_short():
    diary = Diary()

    async def collect(step, policy_version):
        if step == 3:
            raise RolloutError("the devices are gone")
        return Batch((group(1.0, 0.0),), {})

    with pytest.raises(RolloutError):
        run(diary, LoopConfig(max_steps=9, save_every=2, skip_baseline=True), collect=collect)
    assert [line for line in diary.lines if line.startswith("save")] == ["save 2"]
