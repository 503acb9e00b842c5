"""A training run around a learner that learns nothing: what is planned, told, recorded and left behind."""

import json
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cuarl.errors import CuarlError, RolloutError
from cuarl.store import Store
from cuarl.train.shutdown import Shutdown
from cuarl.workflow import training
from cuarl.workflow.collector import Collector, InTurn
from cuarl.workflow.environments import backend
from cuarl.workflow.job import Job
from cuarl.workflow.players import scripted
from cuarl.workflow.source import Source
from cuarl.workflow.trainer import Collecting, Trainer, recorded
from cuarl.workflow.training import train
from tests.unit.workflow.switch import TASKS, experiment

SHORT = {"max_steps": 2, "groups_per_batch": 2, "group_size": 2, "max_turns": 1, "eval_episodes": 2, "save_every": 1}


class Unmoved:
    """A learner that counts."""

    def __init__(self):
        self.seen = []

    def begin_step(self, step):
        pass

    def undo_step(self):
        pass

    def update(self, batch, step):
        self.seen.append((step, len(batch.groups)))
        return {"optim/updates": 0.0}


class Committed:
    def __init__(self):
        self.steps = []

    def save(self, step):
        return Path()

    def commit(self, step, metrics, pending=None):
        self.steps.append(step)


def unmoved(monkeypatch, job, *, start=0, shutdown=None):
    """Have ``train`` run a trainer that learns nothing; its learner and saver."""
    learner, saver = Unmoved(), Committed()

    @asynccontextmanager
    async def collecting(sink, place):
        collector = Collector(
            config=job.config,
            tasks=job.tasks,
            run_id=place.run.run_id,
            record=place.record,
            backend=backend(job.config, job.tasks, job.experiment.settings),
        )
        yield Collecting(InTurn(collector, Source(scripted("nothing")), watcher=job.experiment.watcher))

    @contextmanager
    def opened():
        with recorded(job) as place:
            yield (
                place,
                Trainer(
                    learner,
                    saver,
                    start,
                    None,
                    scripted("nothing"),
                    lambda sink: collecting(sink, place),
                    shutdown or Shutdown(),
                ),
            )

    monkeypatch.setattr(training, "_of_this_process", lambda job: (job, opened()))
    return learner, saver


def test_a_run_is_planned_trained_evaluated_and_recorded(tmp_path, monkeypatch):
    job = Job.of(experiment(tmp_path, **SHORT))
    learner, saver = unmoved(monkeypatch, job)
    done = train(job)
    watcher = job.experiment.watcher
    assert watcher.events[0] == ("plan", job.plan())
    assert (watcher.steps, learner.seen, saver.steps) == ([0, 1, 2], [(1, 2), (2, 2)], [1, 2])
    assert watcher.parts == [
        ("evaluation at step 0", True),
        ("step 1 of 2", True),
        ("step 2 of 2", True),
        ("evaluation at step 2", True),
    ]
    assert done.main and done.run.status == "success" and done.last == done.after
    assert done.before.overall.success_rate == done.after.overall.success_rate == 0.5
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as store:
        purposes = [t.purpose for t in store.trajectories(run=done.run.run_id)]
    assert (purposes.count("train"), purposes.count("eval")) == (8, 4)


def test_a_run_that_skips_the_baseline_has_none(tmp_path, monkeypatch):
    job = Job.of(experiment(tmp_path, **SHORT, skip_baseline=True))
    unmoved(monkeypatch, job)
    done = train(job)
    assert done.before is None and done.after is not None and job.experiment.watcher.steps == [1, 2]


def test_checkpoints_are_chosen_by_tasks_that_are_neither_trained_on_nor_evaluated(tmp_path, monkeypatch):
    asked = experiment(
        tmp_path,
        **SHORT | {"max_steps": 3, "save_every": 2},
        validation_split=0.5,
        validation_episodes=3,
        skip_baseline=True,
    )
    job = Job.of(replace(asked, eval_tasks=[TASKS[0].model_copy(update={"id": "dim", "description": "Dim it"})]))
    unmoved(monkeypatch, job)
    done = train(job)
    [trained], [aside] = job.tasks, job.validation_plan.tasks
    assert {trained.id, aside.id} == {"lamp_on", "lamp_off"}
    assert job.plan()["tasks"].startswith("1 for training, 1 for validation, 1 for evaluation")
    kept = json.loads((done.run.path / "tasks.json").read_text())
    assert [task["id"] for task in kept["validation"]] == [aside.id]
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as store:
        played = {(t.purpose, t.task_id) for t in store.trajectories(run=done.run.run_id)}
        made = sorted((e.suite, e.step) for e in store.evaluations())
    assert played == {("train", trained.id), ("eval", aside.id), ("eval", "dim")}
    assert made == [("tasks", 3), ("validation", 2), ("validation", 3)]
    assert done.last.label == "tasks"
    told = [json.loads(line) for line in done.run.metrics_path.read_text().splitlines()]
    assert [line["step"] for line in told if "eval/validation/success_rate" in line] == [2, 3]


def test_a_run_that_is_told_to_end_says_how_to_go_on(tmp_path, monkeypatch):
    job, shutdown = Job.of(experiment(tmp_path, **SHORT)), Shutdown()
    _, saver = unmoved(monkeypatch, job, shutdown=shutdown)
    job.experiment.watcher.metrics = lambda step, values: shutdown.request() if step == 1 else None
    with pytest.raises(KeyboardInterrupt):
        train(job)
    *warned, note = job.experiment.watcher.notes
    assert any(said.endswith("success on them says little about others") for said in warned)
    assert note.startswith("resume with: cuarl train --resume") and saver.steps == [1]


def test_a_run_whose_server_is_gone_says_so(tmp_path):
    job = Job.of(experiment(tmp_path, **SHORT))
    with pytest.raises(RolloutError), recorded(job) as place:
        raise RolloutError("gone")
    *warned, note = job.experiment.watcher.notes
    assert any(said.endswith("success on them says little about others") for said in warned)
    assert note == f"once that is fixed, resume with: cuarl train --resume {place.run.name}"
    assert place.run.status == "failed"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"algorithm": "grpo", "top_p": 0.9}, "top_p or top_k cut it off"),
        ({"model_base_url": "http://127.0.0.1:9/v1", "use_lora": False}, "adapters only"),
        ({"reward": "tests.unit.workflow.test_training:gone"}, "can't be imported"),
        ({"env": "nowhere"}, 'no environment "nowhere"'),
        ({"sampler_device": "cuda:77"}, "cuda"),
    ],
    ids=["distribution", "whole model", "reward", "environment", "device"],
)
def test_what_can_not_work_is_refused_before_there_is_a_run(tmp_path, fields, said):
    with pytest.raises(CuarlError, match=said):
        Job.of(experiment(tmp_path, **fields))
    assert not (tmp_path / "runs").exists()


def test_the_plan_says_how_much_there_is_to_do(tmp_path):
    plan = Job.of(experiment(tmp_path, **SHORT, eval_every=1, algorithm="rejection")).plan()
    assert plan["training"] == "2 steps of 2 groups of 2: 8 episodes of at most 1 turns"
    assert plan["tasks"].startswith("2 for training, 2 for evaluation")
    assert plan["evaluation"] == "2 episodes before, every 1 steps, at the end"
