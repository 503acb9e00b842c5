from __future__ import annotations

import subprocess
import sys

from cuarl.rollout.seeds import EVAL_SEEDS, TRAIN_SEEDS, digest, environment_seed, sampling_seed, turn_seed
from cuarl.rollout.spec import plan
from cuarl.tasks.task import Task

TASK = Task(id="volume", description="Set the volume to {level}", params={"level": (10, 20, 30, 40, 50)})


def test_digest_is_the_same_in_every_process():
    code = "from cuarl.rollout.seeds import digest; print(digest('a', 1))"
    out = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": s}, capture_output=True, check=True
        ).stdout.strip()
        for s in ("0", "1")
    }
    assert out == {str(digest("a", 1)).encode()}
    assert 0 <= digest("a", 1) < 2**63


def test_digest_tells_parts_apart():
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("a", 1), digest("a", "1")}) == 5


def test_evaluation_seeds_are_never_training_seeds():
    for group in range(200):
        assert environment_seed(0, "t", group, "train") in TRAIN_SEEDS
        assert environment_seed(0, "t", group, "rollout") in TRAIN_SEEDS
        assert environment_seed(0, "t", group, "eval") in EVAL_SEEDS
    assert TRAIN_SEEDS[-1] < EVAL_SEEDS[0]


def test_attempts_share_the_instance_and_sample_differently():
    specs = plan([TASK, TASK], group_size=3, run_seed=5, prefix="run.train.0")
    assert [s.group_id for s in specs] == ["run.train.0.0000"] * 3 + ["run.train.0.0001"] * 3
    assert [s.episode_id for s in specs[:2]] == ["run.train.0.0000.0", "run.train.0.0000.1"]
    first, second = specs[:3], specs[3:]
    assert len({s.seed for s in first}) == len({s.task.goal for s in first}) == 1
    assert first[0].seed != second[0].seed
    assert len({s.sampling_seed for s in specs}) == 6


def test_task_met_again_later_in_the_run_is_a_new_instance():
    early = plan([TASK], group_size=1, run_seed=5, prefix="a")
    late = plan([TASK], group_size=1, run_seed=5, prefix="b", first_group=12)
    assert early[0].seed != late[0].seed
    assert plan([TASK], group_size=1, run_seed=5, prefix="a") == early


def test_turns_of_an_episode_draw_differently():
    seed = sampling_seed(0, "t", 0, 0)
    assert len({turn_seed(seed, i) for i in range(50)}) == 50
