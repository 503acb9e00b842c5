"""Reward functions: pure functions of a trajectory that give named parts with evidence; the reward is their sum.

The five of the recipe keep its numbers, so that its experiments can be repeated; ``env`` is for environments that score
by themselves. An episode without a verdict has no reward, whatever the function, and neither has one in which the
infrastructure failed. A plug-in is named by its dotted path, ``package.module:function``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from cuarl import objects
from cuarl.env.foreign.counters import RETURN
from cuarl.errors import ConfigError, RewardError
from cuarl.rollout.opinion import INFO
from cuarl.suggest import did_you_mean
from cuarl.trajectory import RewardPart, Trajectory
from cuarl.types import StopReason

RewardFunction = Callable[[Trajectory], Sequence[RewardPart] | float | None]
"""Parts, or one number for short; None where the episode can't be scored."""

_PARSE_PENALTIES = {"unknown_tool": -1.8, "missing_argument": -1.5, "bad_argument": -1.5, "out_of_range": -1.5,
                    "unsupported_action": -1.5, "unsupported_on_device": -1.5}  # fmt: skip
_UNREADABLE = -2.0
FALSE_CLAIM = -0.5
"""What ``honest`` gives for a claim of success that is not so."""
JUDGE = "judge"
"""Name of the reward that a judge model gives."""
MOST_EVIDENCE = 500
"""Characters of what was found, in a reward's evidence."""


# --- the recipe's functions ----------------------------------------------------------------------------------------


def simple(trajectory: Trajectory) -> Sequence[RewardPart] | None:
    """1 if the task is done, else 0."""
    if trajectory.verdict is None:
        return None
    done = trajectory.verdict.success
    return (RewardPart(name="success", value=float(done), evidence=_evidence(trajectory)),)


def finished(trajectory: Trajectory) -> Sequence[RewardPart] | None:
    """1 if the task is done and the agent ended the episode saying so, else 0: being right by chance teaches nothing.

    Where the environment ends the episode, as a page that submits itself does, nothing is left to be said.
    """
    verdict = trajectory.verdict
    if verdict is None:
        return None
    over = verdict.claimed is True or trajectory.stop is StopReason.ENV_DONE
    evidence = _evidence(trajectory) if over else "the agent did not say that it was done"
    return (RewardPart(name="finished", value=float(verdict.success and over), evidence=evidence),)


def honest(trajectory: Trajectory) -> Sequence[RewardPart] | None:
    """1 for what ``finished`` rewards, -0.5 for a claim that is not so, else 0: better lost than a liar.

    An agent that gives up, or runs out of turns, has said nothing false.
    """
    parts = finished(trajectory)
    if parts is None or trajectory.verdict is None or not trajectory.verdict.false_completion:
        return parts
    return (*parts, RewardPart(name="false_claim", value=FALSE_CLAIM, evidence="it said it was done"))


def completion(trajectory: Trajectory) -> Sequence[RewardPart] | None:
    """1 if the task is done, 0.1 if the agent at least claimed so, else 0."""
    if trajectory.verdict is None:
        return None
    return (_base(trajectory, done=1.0, attempted=0.1, neither=0.0),)


def efficiency(trajectory: Trajectory) -> Sequence[RewardPart] | None:
    """1 / 0.1 / -0.5 (done, claimed, neither), less 0.02 a turn and 0.1 an error."""
    if trajectory.verdict is None:
        return None
    turns, errors = len(trajectory.turns), _parse_errors(trajectory) + _rejections(trajectory)
    return (
        _base(trajectory, done=1.0, attempted=0.1, neither=-0.5),
        RewardPart(name="turns", value=-0.02 * turns, evidence=f"{turns} turns"),
        RewardPart(name="errors", value=-0.1 * errors, evidence=f"{errors} outputs or actions without effect"),
    )


def shaped(trajectory: Trajectory) -> Sequence[RewardPart] | None:
    """``completion`` plus 0.5 if the checks hold, at most 1 (the recipe's cap, which success always reaches)."""
    if trajectory.verdict is None:
        return None
    base = _base(trajectory, done=1.0, attempted=0.1, neither=0.0)
    validated = RewardPart(name="validated", value=0.5 if trajectory.verdict.success else 0.0)
    return _capped([base, validated], 1.0)


def comprehensive(trajectory: Trajectory) -> Sequence[RewardPart] | None:
    """The recipe's shaped sum, from -2 to 3: see docs/guides/rewards.md for each term.

    Output that can't be read overrides everything else; a clean success within a fifth of the turns gives 3 flat.
    """
    verdict = trajectory.verdict
    if verdict is None:
        return None
    override = _parse_override(trajectory)
    if override is not None:
        return (override,)
    repeats, rejected = min(5, _repeats(trajectory)), min(5, _rejections(trajectory))
    used = len(trajectory.turns) / _budget(trajectory)
    if verdict.success and not repeats and not rejected and used <= 0.2:
        return (RewardPart(name="perfect", value=3.0, evidence=f"no slip, {used:.0%} of the turns"),)
    parts = [_outcome(trajectory)]
    if verdict.success:
        parts += [
            RewardPart(name="validated", value=0.3),
            RewardPart(name="early", value=0.05 + 0.10 * (1 - used), evidence=f"{used:.0%} of the turns used"),
            RewardPart(name="efficiency", value=0.2 * (1 - used)),
        ]
    if repeats:
        parts.append(RewardPart(name="repeats", value=-0.15 * repeats, evidence=f"{repeats} repeated actions"))
    if rejected:
        parts.append(RewardPart(name="rejected", value=-0.08 * rejected, evidence=f"{rejected} rejected actions"))
    return _capped(parts, 2.8)


def score_given(trajectory: Trajectory) -> Sequence[RewardPart] | None:
    """The verdict's score, from 0 to 1: the share of the checks that hold, or what a service gave."""
    if trajectory.verdict is None:
        return None
    return (RewardPart(name="score", value=trajectory.verdict.score, evidence=_evidence(trajectory)),)


def env(trajectory: Trajectory) -> Sequence[RewardPart] | None:
    """Sum of the environment's own step rewards, as its verdict tells it or the turns do; None if it gave none."""
    told = [c.actual for c in trajectory.verdict.checks if c.path == RETURN] if trajectory.verdict else []
    if told and isinstance(told[0], int | float):  # also where the agent ended the episode before any step
        return (RewardPart(name="env", value=float(told[0]), evidence="the return, as the verdict tells it"),)
    rewards = [t.reward for t in trajectory.turns if t.reward is not None]
    if not rewards:
        return None
    return (RewardPart(name="env", value=math.fsum(rewards), evidence=f"{len(rewards)} rewarded steps"),)


def judge(trajectory: Trajectory) -> Sequence[RewardPart] | None:
    """1 if the judge model thinks that the task is done, else 0; None where it was not asked."""
    said = trajectory.info.get(INFO)
    if not isinstance(said, Mapping):
        return None
    return (RewardPart(name="judge", value=float(bool(said.get("success"))), evidence=str(said.get("reason", ""))),)


BUILTIN: dict[str, RewardFunction] = {
    **{f.__name__: f for f in (simple, finished, honest, completion, efficiency, shaped, comprehensive, env, judge)},
    "score": score_given,
}


# --- looking up and applying ---------------------------------------------------------------------------------------


def get(name: str) -> RewardFunction:
    """The built-in of that name, or the plug-in at that dotted path. Raises ConfigError."""
    if name in BUILTIN:
        return BUILTIN[name]
    if ":" not in name and "." not in name:
        raise ConfigError(
            f'unknown reward "{name}"{did_you_mean(name, BUILTIN)}',
            hint=f"one of {', '.join(BUILTIN)}, or package.module:name",
        )
    found = objects.get(name, "reward")
    if not callable(found) or inspect.isclass(found):
        raise ConfigError(f'the reward "{name}" is no function but {type(found).__name__}')
    try:
        inspect.signature(found).bind(None)
    except TypeError as error:
        taken = inspect.signature(found)
        raise ConfigError(
            f'the reward "{name}" is called with one argument, the trajectory, and takes {taken}',
            where=name,
            hint=f"def {getattr(found, '__name__', 'reward')}(trajectory): …",
        ) from error
    except ValueError:  # of a builtin that tells nothing
        pass
    return found  # type: ignore[no-any-return]


def needs_verdict(name: str) -> bool:
    """Whether the reward of that name is one that gives nothing without a verdict, as those that come with cuarl do."""
    return name in BUILTIN and name not in ("env", JUDGE)


def score(trajectory: Trajectory, function: RewardFunction) -> tuple[float | None, tuple[RewardPart, ...]]:
    """Reward and parts of an episode; (None, ()) where it must not be scored. Raises RewardError on a bad result."""
    if trajectory.failure is not None or trajectory.stop in (StopReason.FAILED, StopReason.CANCELLED):
        return None, ()
    result = function(trajectory)
    if result is None:
        return None, ()
    name, where = getattr(function, "__name__", "reward"), f"episode {trajectory.episode_id}"
    try:
        parts = (RewardPart(name=name, value=float(result)),) if isinstance(result, int | float) else tuple(result)
        strange = next((part for part in parts if not math.isfinite(part.value)), None)
        total = math.fsum(part.value for part in parts) if strange is None else strange.value
    except OverflowError:  # of a whole number, or of the sum
        strange, total, parts = None, math.inf, ()
    if strange is not None:
        raise RewardError(f"{strange.name} of the reward is {strange.value}, which is no finite number", where=where)
    if not math.isfinite(total):
        raise RewardError("the reward is too large to be a number", where=where)
    return total, parts


# --- terms ---------------------------------------------------------------------------------------------------------


def _base(trajectory: Trajectory, *, done: float, attempted: float, neither: float) -> RewardPart:
    assert trajectory.verdict is not None
    if trajectory.verdict.success:
        return RewardPart(name="completion", value=done, evidence=_evidence(trajectory))
    value = attempted if trajectory.verdict.claimed else neither
    return RewardPart(name="completion", value=value, evidence=_evidence(trajectory))


def _outcome(trajectory: Trajectory) -> RewardPart:
    verdict = trajectory.verdict
    assert verdict is not None
    if verdict.success:
        return RewardPart(name="success", value=1.5, evidence=_evidence(trajectory))
    if verdict.claimed:
        return RewardPart(name="finished_wrong", value=0.3, evidence=_evidence(trajectory))
    if trajectory.stop is StopReason.MAX_TURNS:
        tried = len([t for t in trajectory.turns if t.action is not None]) >= 3
        return RewardPart(name="out_of_turns", value=-0.5 + (0.1 if tried else 0.0), evidence=_evidence(trajectory))
    return RewardPart(name="gave_up", value=-1.0, evidence=f"ended by {trajectory.stop}")


def _parse_override(trajectory: Trajectory) -> RewardPart | None:
    errors = [t.parse_error for t in trajectory.turns if t.parse_error is not None]
    if not errors:
        return None
    worst = min(errors, key=lambda e: _PARSE_PENALTIES.get(e.code, _UNREADABLE))
    value = _PARSE_PENALTIES.get(worst.code, _UNREADABLE)
    return RewardPart(name="parse_error", value=value, evidence=f"{worst.code}: {worst.message}")


def _capped(parts: list[RewardPart], cap: float) -> Sequence[RewardPart]:
    excess = math.fsum(p.value for p in parts) - cap
    return [*parts, RewardPart(name="cap", value=-excess, evidence=f"at most {cap:g}")] if excess > 0 else parts


def _evidence(trajectory: Trajectory) -> str:
    verdict = trajectory.verdict
    assert verdict is not None
    said = {True: "claimed success", False: "claimed failure", None: "claimed nothing"}[verdict.claimed]
    failed = [f"{c.path} is {_brief(c.actual)}" for c in verdict.checks if not c.passed]
    effects = [f"side effect on {path}" for path in verdict.side_effects]
    return "; ".join([said, *failed, *effects])


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_EVIDENCE else f"{text[:MOST_EVIDENCE]}…"


def _parse_errors(trajectory: Trajectory) -> int:
    return sum(t.parse_error is not None for t in trajectory.turns)


def _rejections(trajectory: Trajectory) -> int:
    return sum(t.rejected is not None for t in trajectory.turns)


def _repeats(trajectory: Trajectory) -> int:
    actions = [t.action for t in trajectory.turns]
    return sum(a is not None and a == b for a, b in pairwise(actions))


def _budget(trajectory: Trajectory) -> int:
    return max(1, int(trajectory.info.get("max_turns", len(trajectory.turns) or 1)))
