"""What one step tells of a whole run."""

import pytest

from cuarl.config.load import resolve
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.probe import _probed, probe

SMALL = {
    "tasks": ["train_02_enable_wifi"], "group_size": 2, "groups_per_batch": 1, "max_turns": 2, "max_tokens": 8,
    "max_steps": 40, "eval_every": 16, "eval_episodes": 10,
}  # fmt: skip


def test_a_probe_leaves_nothing_behind_and_finds_what_a_step_takes(tmp_path):
    settings = Settings(_env_file=None, runs_dir=tmp_path / "runs")
    found = probe(Experiment(resolved=resolve(flags=SMALL), settings=settings, name="mine"))
    assert list(tmp_path.iterdir()) == []
    assert 0 < found.collecting_s < found.step_s and found.total_s > 40 * found.step_s
    assert found.peak_gib > 0 and found.step_bytes > 1000 and found.checkpoint_bytes > 1_000_000


@pytest.mark.parametrize(
    ("flags", "evaluations"),
    [({}, 4), ({"skip_baseline": True}, 3), ({"eval_every": 0}, 2), ({"eval_every": 40}, 2), ({"eval_every": 39}, 3)],
)
def test_all_steps_and_evaluations_are_counted(flags, evaluations):
    config = resolve(flags=SMALL | flags).config
    told = {"time/step_s": 9.0, "time/rollout_s": 4.0, "time/eval_s": 2.0, "perf/peak_gib": 3.0}
    found = _probed(config, told, 5, 6)
    assert (found.step_s, found.evaluation_s, found.peak_gib) == (7.0, 20.0, 3.0)
    assert found.total_s == 40 * 7.0 + evaluations * 20.0


def test_validation_counts_with_each_checkpoint():
    config = resolve(flags=SMALL | {"validation_split": 0.5, "validation_episodes": 20, "save_every": 10}).config
    found = _probed(config, {"time/step_s": 9.0, "time/rollout_s": 4.0, "time/eval_s": 2.0}, 5, 6)
    assert found.total_s == 40 * 7.0 + 4 * 20.0 + 4 * 40.0


def test_a_service_that_charges_is_not_probed(tmp_path):
    asked = Experiment(resolved=resolve(flags={"trainer": "tinker"}), settings=Settings(_env_file=None))
    with pytest.raises(ConfigError, match="Tinker"):
        probe(asked)
