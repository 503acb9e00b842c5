import math
import re
from pathlib import Path

import pytest

from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.curriculum import CurriculumConfig
from cuarl.train.learner import Learner
from cuarl.train.loop import LoopConfig, train
from cuarl.train.loss import LossConfig
from cuarl.train.metrics import METRICS, rollout_metrics
from cuarl.train.replay import ReplayConfig
from cuarl.train.shaping import Shaping
from cuarl.trajectory import Group, RewardPart, Trajectory, Turn, Verdict
from cuarl.types import Click, Failure, ParseError, Swipe

from .episodes import SCREEN, group, sampled, trajectory
from .policies import played, tiny_policy

FAILURE = Failure(boundary="env", kind="EnvError", message="gone")
DOCS = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


def turns_of(*kinds):
    made = []
    for i, kind in enumerate(kinds):
        fields = {"parse_error": ParseError(code="no_call")} if kind is None else {"action": kind}
        made.append(Turn(index=i, screenshot=SCREEN, sampled=sampled((1, 2), (3, 4, 5), policy_version=i), **fields))
    return tuple(made)


def episode(reward, **fields):
    return trajectory(reward).model_copy(update=fields)


def test_rewards_and_verdicts_are_over_the_scored_episodes_only():
    lost = episode(None, stop="failed", failure=FAILURE)
    claimed = episode(0.0, verdict=Verdict(success=False, score=0.0, claimed=True))
    values = rollout_metrics([group(1.0, claimed, lost)], policy_version=0)
    assert values["reward/mean"] == 0.5
    assert values["reward/std"] == 0.5
    assert values["episode/success_rate"] == 0.5
    assert values["episode/false_completion_rate"] == 0.5
    assert values["episode/failed_rate"] == values["failure/env"] == values["stop/failed"] == pytest.approx(1 / 3)
    assert sum(v for n, v in values.items() if n.startswith("stop/")) == pytest.approx(1)


def test_groups_are_counted_by_what_they_teach():
    groups = [group(1.0, 0.0), group(1.0, 1.0), group(0.0, 0.0), group(None, None)]
    values = rollout_metrics(groups, policy_version=0)
    assert (values["group/frac_mixed"], values["group/frac_all_pass"], values["group/frac_all_fail"]) == (0.25,) * 3


def test_actions_tokens_and_lags_are_over_the_turns():
    tap, slide = Click(x=1, y=1), Swipe(x=1, y=1, x2=2, y2=2)
    values = rollout_metrics([group(episode(1.0, turns=turns_of(tap, tap, slide, None)))], policy_version=3)
    assert values["action/parse_failure_rate"] == 0.25
    assert values["action/click_share"] == pytest.approx(2 / 3)
    assert values["action/swipe_share"] == pytest.approx(1 / 3)
    assert (values["tokens/prompt_mean"], values["tokens/sampled_mean"], values["tokens/total"]) == (3, 2, 20)
    assert (values["policy/lag_mean"], values["policy/lag_max"]) == (1.5, 3)


def test_parts_of_the_reward_are_averaged_by_name():
    parts = [episode(r, reward_parts=(RewardPart(name="success", value=r),)) for r in (1.0, 0.0)]
    assert rollout_metrics([group(*parts)], policy_version=0)["reward/success/mean"] == 0.5


def test_what_has_no_data_is_absent_and_everything_else_finite():
    nothing = Trajectory(episode_id="e", task_id="t", goal="", stop="failed", failure=FAILURE)
    values = rollout_metrics([Group(group_id="g", task_id="t", trajectories=(nothing,))], policy_version=0)
    assert not {"reward/mean", "episode/success_rate", "tokens/prompt_mean", "policy/lag_max"} & set(values)
    assert all(math.isfinite(v) for v in values.values())
    assert rollout_metrics([], policy_version=0) == {}


def documented(name):
    return [d for d in METRICS if re.fullmatch(re.sub(r"<\w+>", "[^/]+", d), name)]


async def emitted(learner, batches):
    """Names that a whole run emits."""
    names = set()

    class Names:
        def metrics(self, step, values):
            assert all(math.isfinite(v) for v in values.values())
            names.update(values)

        def event(self, kind, data): ...

        def close(self): ...

        def save(self, step):
            return Path()

        def commit(self, step, metrics, pending): ...

    async def collect(step, version):
        return batches[step - 1]

    async def evaluate(step):
        return None

    await train(LoopConfig(max_steps=len(batches)), learner, collect, evaluate, Names(), Names())
    return names


@pytest.mark.anyio
async def test_emitted_metrics_are_the_documented_ones():
    policy = tiny_policy()
    config = LearnerConfig(loss=LossConfig(kl_penalty_coef=0.1), batch=BatchConfig(num_substeps=2))
    odd = episode(
        1.0, turns=turns_of(Click(x=1, y=1), None), reward_parts=(RewardPart(name="success", value=1),), failure=FAILURE
    )
    mixed = played(policy, [(1, 0), (0, 1)])
    names = await emitted(Learner(policy, config), [mixed, played(policy, [(1, 1), (None, None)])])
    rehearsing = Batch(mixed.groups, mixed.pictures, rehearsal=mixed.groups)
    names |= await emitted(Learner(policy, LearnerConfig(objective="imitation")), [rehearsing])
    for config in [
        LearnerConfig(loss=LossConfig(decoupled=True), compute_post_kl=True, replay=ReplayConfig(per_task=2)),
        LearnerConfig(batch=BatchConfig(baseline="critic", shaping=Shaping(overlong_buffer=2))),
    ]:
        names |= await emitted(Learner(tiny_policy(), config), [mixed])
    helped = LearnerConfig(hint_turns=2, imitation_coef=0.1, entropy_floor=0.5)
    failures, led = played(policy, [(0, 0)]), mixed.groups[0]
    batch = Batch(failures.groups, failures.pictures | mixed.pictures, led={"g0": led}, demonstrated={"g0": led})
    names |= await emitted(Learner(tiny_policy(), helped), [batch])
    for kind in ("failure-filter", "pools"):
        learner = Learner(tiny_policy(), LearnerConfig(curriculum=CurriculumConfig(kind=kind)))
        learner.curriculum.choose(["t"], 2)
        names |= await emitted(learner, [Batch(mixed.groups, mixed.pictures, mixed.groups)])
    names |= set(rollout_metrics([group(odd)], policy_version=0))
    assert [n for n in names if not documented(n)] == []
    # those of collecting and sampling are looked for where these are tested
    sampled = ("async/", "sampler/", "sampling/", "time/sampling_s", "perf/idle_frac")
    here = {m for m in METRICS if not m.startswith(sampled)}
    missing = here - {d for n in names for d in documented(n)}
    assert missing == {"perf/peak_gib"}  # on an accelerator only


def test_the_documentation_lists_every_metric():
    text = DOCS.read_text()
    assert [name for name in METRICS if f"| `{name}` | {METRICS[name]} |" not in text] == []
