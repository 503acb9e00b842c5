"""The loop with parts that write down what was asked of them."""

import asyncio
from functools import partial

import anyio
import pytest

from cuarl.errors import RolloutError
from cuarl.train.batch import Batch
from cuarl.train.loop import LoopConfig, train
from cuarl.train.shutdown import Shutdown, StepUndone

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

    def undo_step(self):
        self.lines.append("undo")

    def commit(self, step, metrics, pending):
        self.lines.append(f"commit {step} {dict(metrics)}" + (" pending" if pending else ""))
        self.pending = pending

    def metrics(self, step, values):
        self.lines.append(f"metrics {step}")
        self.values[step] = dict(values)

    def event(self, kind, data):
        self.lines.append(f"{kind} {data['path']}")

    def close(self):
        pass


def run(diary, config, *, start=0, collect=None, **more):
    async def collected(step, policy_version):
        diary.lines.append(f"collect {step} with version {policy_version}")
        return Batch((group(1.0, 0.0),), {})

    loop = partial(train, **more)
    return anyio.run(loop, config, diary, collect or collected, diary.evaluate, diary, diary, start)


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


def test_where_sampling_is_timed_each_step_tells_how_long_nothing_was_computed():
    class Timed(Diary):
        def update(self, batch, step):
            return {**super().update(batch, step), "time/sampling_s": 0.0}

    diary = Timed()
    run(diary, LoopConfig(max_steps=1))
    told = diary.values[1]
    assert told["perf/idle_frac"] == told["time/rollout_s"] / (told["time/rollout_s"] + told["time/train_s"])


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
    assert diary.lines[-3:] == ["undo", "save 3", "commit 3 {}"]


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
    assert diary.lines[-3:] == ["undo", "save 1", "commit 1 {}"]


def test_nothing_is_saved_twice_when_a_run_is_cut_short():
    diary = Diary()

    async def collect(step, policy_version):
        if step == 3:
            raise RolloutError("the devices are gone")
        return Batch((group(1.0, 0.0),), {})

    with pytest.raises(RolloutError):
        run(diary, LoopConfig(max_steps=9, save_every=2, skip_baseline=True), collect=collect)
    assert [line for line in diary.lines if line.startswith("save")] == ["save 2"]


LONG = LoopConfig(max_steps=9, save_every=0, eval_every=0, skip_baseline=True)


class Signalled(Diary):
    """Is asked to end at a line of its own; what is awaited then is cancelled, as by ``cli.signals.run``."""

    def __init__(self, when, *, undo=False):
        super().__init__()
        self.when, self.undo, self.shutdown = when, undo, Shutdown()

    def hear(self):
        if self.lines[-1] == self.when:
            self.shutdown.request()

    def update(self, batch, step):
        values = super().update(batch, step)
        self.hear()
        if self.undo and self.shutdown.requested:
            raise StepUndone
        return values

    async def evaluate(self, step):
        values = await super().evaluate(step)
        self.hear()
        await anyio.sleep(0.01)
        return values

    async def collect(self, step, policy_version):
        self.lines.append(f"collect {step}")
        self.hear()
        await anyio.sleep(0.01)
        return Batch((group(1.0, 0.0),), {})

    def loop(self, config, start=0, **more):
        async def work():
            self.shutdown.soon = asyncio.get_running_loop().call_soon_threadsafe
            loop = partial(train, shutdown=self.shutdown, **more)
            return await loop(config, self, self.collect, self.evaluate, self, self, start)

        return anyio.run(work)


def test_a_step_that_is_being_learnt_is_finished_and_saved():
    diary = Signalled("update 2")
    outcome = diary.loop(LONG)
    assert diary.lines[-5:] == ["update 2", "save 2", "metrics 2", "commit 2 {}", "checkpoint folder/2"]
    assert (outcome.interrupted, outcome.steps) == (True, 2)


def test_a_step_whose_episodes_are_collected_is_undone_and_the_one_before_it_saved():
    diary = Signalled("collect 3")
    outcome = diary.loop(LONG)
    assert diary.lines[-4:] == ["collect 3", "undo", "save 2", "commit 2 {}"]
    assert (outcome.interrupted, outcome.steps) == (True, 2)


def test_a_step_that_another_process_could_not_collect_is_undone():
    diary = Diary()

    async def collect(step, policy_version):
        if step == 3:
            raise StepUndone
        return Batch((group(1.0, 0.0),), {})

    outcome = run(diary, LONG, collect=collect)
    assert [line for line in diary.lines[-5:] if line != "undo"] == ["begin 3", "save 2", "commit 2 {}"]
    assert (outcome.interrupted, outcome.steps) == (True, 2)


def test_an_update_that_gave_up_in_time_is_undone():
    diary = Signalled("update 3", undo=True)
    outcome = diary.loop(LONG)
    assert diary.lines[-4:] == ["update 3", "undo", "save 2", "commit 2 {}"]
    assert (outcome.interrupted, outcome.steps) == (True, 2)


@pytest.mark.parametrize("when", ["update 2", "eval 2"])
@pytest.mark.parametrize("save_every", [0, 2])
def test_a_pending_evaluation_is_made_first_when_a_run_goes_on(when, save_every):
    config = LoopConfig(max_steps=3, save_every=save_every, eval_every=2, skip_baseline=True)
    diary = Signalled(when)
    diary.loop(config)
    assert diary.lines[-1] == "commit 2 {} pending"
    assert [line for line in diary.lines if line.startswith(("save", "metrics"))] == ["metrics 1", "save 2"]
    again = Signalled("never")
    outcome = again.loop(config, 2, pending=diary.pending)
    assert again.lines[:4] == ["eval 2", "metrics 2", "commit 2 {'eval/n': 12.0}", "begin 3"]
    assert again.values[2]["eval/n"] == 12.0 and again.values[2]["reward/mean"] == 0.5
    assert outcome.last_eval == {"eval/n": 13.0}


def test_a_failing_evaluation_costs_no_step():
    class Failing(Diary):
        async def evaluate(self, step):
            raise RolloutError("the devices are gone")

    diary = Failing()
    with pytest.raises(RolloutError, match="gone"):
        run(diary, LoopConfig(max_steps=9, save_every=0, eval_every=2, skip_baseline=True))
    assert diary.lines[-2:] == ["save 2", "commit 2 {} pending"]


def test_the_others_are_told_of_a_baseline_that_was_cut_short():
    told = []
    diary = Signalled("eval 0")
    diary.shutdown = Shutdown(agreed=lambda mine: told.append(mine) or mine)
    assert diary.loop(LoopConfig(max_steps=9)).interrupted
    assert (diary.lines, told) == (["eval 0"], [True])


def test_a_run_asked_to_end_in_its_last_evaluation_is_not_over():
    diary = Signalled("eval 3")
    assert diary.loop(LoopConfig(max_steps=3, save_every=0, eval_every=0, skip_baseline=True)).interrupted
    again = Signalled("never")
    outcome = again.loop(LoopConfig(max_steps=3), 3, pending=diary.pending)
    assert again.lines == ["eval 3", "metrics 3", "commit 3 {'eval/n': 13.0}"]
    assert not outcome.interrupted


class Still:
    """Collecting beside training that comes to a stand when it is let."""

    def __init__(self, diary, patience):
        self.diary, self.asked = diary, 0
        diary.shutdown = Shutdown(patience)

    async def __call__(self):
        self.asked += 1
        if self.diary.lines[-1] == "update 2":
            self.diary.shutdown.request()
            await anyio.sleep(0.05 if self.asked == 3 else 0.5)
        return {"async/waiting": 1.0}


@pytest.mark.parametrize(("grace", "stands"), [(60, True), (0.03, False)])
def test_collecting_beside_training_has_until_the_grace_period_is_over_to_stand_still(grace, stands):
    diary = Signalled("never")
    settled = Still(diary, grace)
    outcome = diary.loop(LONG, settled=settled)
    assert diary.lines[-4:] == ["save 2", "metrics 2", "commit 2 {}", "checkpoint folder/2"]
    assert (outcome.interrupted, settled.asked, "async/waiting" in diary.values[2]) == (True, 3, stands)


async def collected_beside(diary):
    """What comes of something that goes on beside the loop when the loop is told to end while it learns."""
    ran = []

    async def beside():
        with anyio.fail_after(5):
            while diary.lines[-1:] != ["update 2"] or not diary.shutdown.requested:
                await anyio.sleep(0.01)
            await anyio.sleep(0.05)
            ran.append("to its end")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beside)
        diary.shutdown.soon = asyncio.get_running_loop().call_soon_threadsafe

        async def settled():
            while diary.shutdown.requested and not ran:
                await anyio.sleep(0.01)
            return {}

        with diary.shutdown.cutting():
            loop = partial(train, shutdown=diary.shutdown)
            return await loop(LONG, diary, diary.collect, diary.evaluate, diary, diary, 0, settled), ran


def test_what_is_collected_beside_training_runs_on_until_it_stands_still():
    outcome, ran = anyio.run(collected_beside, Signalled("update 2"))
    assert (outcome.interrupted, outcome.steps, ran) == (True, 2, ["to its end"])


def test_whoever_asks_twice_does_not_wait():
    now = 100.0
    shutdown = Shutdown(30, clock=lambda: now)
    assert shutdown.left_s == float("inf")
    for later in (0, 1, 2):
        now = 100.0 + later
        shutdown.request()
        assert shutdown.left_s == 20 - later
    now = 103.0
    shutdown.request()
    assert shutdown.left_s == 0


def test_all_processes_end_where_one_is_asked_to():
    asked = iter([False, True])
    heard = []
    shutdown = Shutdown(agreed=lambda mine: heard.append(mine) or next(asked))
    assert [shutdown.agree(), shutdown.agree()] == [False, True], "what all know, whatever happens to one just then"
    assert shutdown.requested and heard == [False, False]
