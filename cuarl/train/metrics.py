"""What a training step reports: the documented names, and the part that follows from its groups alone. Pure Python.

Every value is finite; a metric without data (the mean reward where nothing was scored) is absent rather than NaN.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from cuarl.policy.work import Work
from cuarl.train.advantage import group_advantages
from cuarl.trajectory import Group, Trajectory, Turn
from cuarl.types import StopReason

METRICS: dict[str, str] = {
    "reward/mean": "mean reward of the scored episodes of the step",
    "reward/std": "their standard deviation",
    "reward/<part>/mean": "mean of one term of the reward over the scored episodes",
    "group/frac_mixed": "share of groups whose rewards differ: those that teach",
    "group/frac_all_pass": "share of groups in which every verdict is a success",
    "group/frac_all_fail": "share of groups in which every verdict is a failure",
    "episode/success_rate": "share of successes among the episodes with a verdict",
    "episode/steps_mean": "mean number of turns",
    "episode/truncated_rate": "share of episodes cut off by a limit on turns, time or context",
    "episode/failed_rate": "share of episodes lost to infrastructure; they are not scored",
    "episode/false_completion_rate": "share of verdicts in which success was claimed and is not so",
    "stop/<reason>": "share of episodes that ended for this reason; the shares sum to one",
    "failure/<boundary>": "share of episodes in which this boundary failed",
    "action/parse_failure_rate": "share of turns whose output was not an action",
    "action/special_token_rate": "share of turns in which a server sampled an image or vision token, "
    "which ended the answer",
    "action/rejected_rate": "share of turns whose action the device refused",
    "action/<kind>_share": "share of this kind among the parsed actions",
    "tokens/prompt_mean": "mean prompt tokens of a turn, image tokens included",
    "tokens/sampled_mean": "mean sampled tokens of a turn",
    "tokens/images_mean": "mean pictures in the window of a turn",
    "tokens/total": "prompt and sampled tokens of the step",
    "sampling/prompt_tokens": "tokens of the distinct prompts that were answered, image tokens included; like "
    "those below, where the policy is sampled in this process, in turn with training",
    "sampling/prefilled_tokens": "those of them that were computed; the others were known from earlier turns",
    "sampling/decoded_tokens": "sampled tokens behind the first of each answer, which comes with its prompt",
    "sampling/idle_frac": "share of the decoding passes' rows whose answer was over",
    "sampling/pictures": "pictures that were encoded for it",
    "policy/loss": "the loss that was minimised, mean over the updates of the step",
    "policy/entropy": "mean entropy in nats of the policy at the trained tokens",
    "policy/kl_ref": "KL(policy ‖ reference) at the trained tokens, k3 estimate; only with a KL penalty",
    "policy/kl_sampler": "KL(sampler ‖ policy) at the trained tokens, k3 estimate",
    "policy/kl_sampler_k1": "the same, k1 estimate: unbiased too, noisier, may be negative",
    "policy/logprob_diff_mean": "mean |log ratio| before the first update of the step: sampler against trainer",
    "policy/importance_mean": "mean weight of a token for the policy that sampled it; only where the loss is decoupled",
    "policy/kl_post": "KL(sampler ‖ policy) after the updates of the step, k3 estimate; only with compute_post_kl",
    "policy/kl_post_k1": "the same, k1 estimate",
    "policy/ratio_mean": "mean probability ratio of policy and sampler, or, decoupled, "
    "the policy at the start of the step",
    "policy/clip_frac_low": "share of trained tokens whose gradient the lower clip took away",
    "policy/clip_frac_high": "share of trained tokens whose gradient the upper clip took away",
    "policy/clamp_frac": "share of trained tokens whose log ratio was beyond the numeric limit",
    "policy/entropy_coef": "weight of the entropy bonus that the floor adds in the step; only with entropy_floor",
    "policy/lag_mean": "mean number of steps between the policy that sampled and the one that is trained",
    "policy/lag_max": "the largest of them",
    "async/staleness_mean": "mean age of the groups of the step, by their oldest turns; only with max_steps_off_policy",
    "async/staleness_max": "the largest of them, at most max_steps_off_policy",
    "async/dropped": "groups dropped during the step because they got older than max_steps_off_policy",
    "async/waiting": "complete groups in hand at the end of the step",
    "async/unfinished": "groups in flight at the end of the step",
    "sampler/<server>/answers": "turns that a server answered since the step before, by its place among several URLs",
    "sampler/<server>/version_lag": "steps by which its weights are older than the policy's: 0 unless it is gone",
    "sampler/<server>/gone": "1 while it does not answer, else 0",
    "value/loss": "the critic's loss, mean over the updates of the step",
    "value/mean": "mean value before the first update, at the places that are trained",
    "value/return_mean": "mean of the returns that the critic learns",
    "value/explained_variance": "share of the returns' variance that the values before the update explain",
    "value/clip_frac": "share of the values whose gradient the clip took away",
    "sft/nll": "mean negative log-likelihood of a demonstrated token",
    "rehearsal/nll": "mean negative log-likelihood of a rehearsed token; only with rehearsal",
    "rehearsal/token_frac": "share of the trained tokens that rehearse",
    "group/discarded": "groups collected and left out for they teach nothing; only with dynamic sampling",
    "replay/used": "groups of failures that a kept success was put into; only with replay",
    "replay/size": "successes kept; only with replay",
    "curriculum/set_aside": "tasks set aside for failing; only with that curriculum",
    "curriculum/<pool>": "tasks in the pool unseen, unsolved, learning or solved; only with that curriculum",
    "hints/groups": "groups that had failed whole and were collected again, led by an oracle; only with hints",
    "hints/success_rate": "share of the led attempts that have a reward for their success; in no other figure",
    "hints/turns_mean": "mean number of turns in which the oracle led",
    "imitation/groups": "groups that failed whole and whose task an oracle demonstrated; only with imitation_coef",
    "imitation/nll": "mean negative log-likelihood of a token of these demonstrations; only where there are some",
    "reward/overlong_cost": "mean reward taken off for long answers; only with an overlong buffer",
    "optim/lr": "learning rate of the step",
    "optim/grad_norm": "norm of the whole gradient before clipping, mean over the updates",
    "optim/updates": "optimiser updates made in the step",
    "optim/skipped_flat": "updates left out because no token had a gradient",
    "optim/skipped_nonfinite": "updates left out because the gradient was not finite",
    "train/rows": "turns that were scored with gradient",
    "train/tokens": "tokens that were trained",
    "train/packed_frac": "share of the scored turns that were computed inside a later turn's sequence",
    "train/padding_frac": "share of padding in the forward passes: 0 where layers run without it",
    "train/pictures": "pictures that were encoded for training; others were known from sampling",
    "time/rollout_s": "seconds spent collecting episodes; asynchronous: those in which training waited for them",
    "time/sampling_s": "seconds of time/rollout_s in which answers were computed, in turn with training",
    "time/train_s": "seconds spent on updates",
    "time/save_s": "seconds spent writing the checkpoint",
    "time/eval_s": "seconds spent evaluating",
    "time/step_s": "seconds of the whole step",
    "perf/tokens_per_s": "tokens of the step by seconds of updates",
    "perf/episodes_per_min": "episodes of the step by minutes of the whole step",
    "perf/idle_frac": "share of time/rollout_s and time/train_s in which nothing was sampled or trained: where the "
    "policy waited for environments and for the record",
    "perf/rss_gib": "memory of the main process at the end of the step, GiB; on Linux only",
    "perf/peak_gib": "peak memory of the accelerator, GiB",
}
"""Documented names. ``<…>`` stands for one path segment, or a part of one."""

_TRUNCATED = {StopReason.MAX_TURNS, StopReason.DEADLINE, StopReason.CONTEXT_FULL}


def rollout_metrics(groups: Sequence[Group], *, policy_version: int) -> dict[str, float]:
    """Everything that follows from the episodes of a step, before any forward pass."""
    episodes = [t for g in groups for t in g.trajectories]
    if not episodes:
        return {}
    turns = [turn for t in episodes for turn in t.turns]
    return (
        _reward_metrics(episodes)
        | _group_metrics(groups)
        | _episode_metrics(episodes)
        | _turn_metrics(turns)
        | _lag_metrics(turns, policy_version)
    )


def sampling_metrics(work: Work | None) -> dict[str, float]:
    """What it took to sample, in turn with training; nothing where nobody counted."""
    if work is None or not work.prompts:
        return {}
    found = {
        "sampling/prompt_tokens": float(work.prompt_tokens),
        "sampling/prefilled_tokens": float(work.prompt_tokens - work.reused_tokens),
        "sampling/decoded_tokens": float(work.decoded_tokens),
        "sampling/pictures": float(work.pictures),
        "time/sampling_s": work.seconds,
    }
    if work.decode_rows:
        found["sampling/idle_frac"] = 1 - work.decoded_tokens / work.decode_rows
    return found


def _reward_metrics(episodes: Sequence[Trajectory]) -> dict[str, float]:
    scored = [t for t in episodes if t.reward is not None]
    rewards = [t.reward for t in scored if t.reward is not None]
    if not rewards:
        return {}
    mean = math.fsum(rewards) / len(rewards)
    parts: dict[str, float] = defaultdict(float)
    for t in scored:
        for part in t.reward_parts:
            parts[part.name] += part.value
    return {
        "reward/mean": mean,
        "reward/std": math.sqrt(math.fsum((r - mean) ** 2 for r in rewards) / len(rewards)),
    } | {f"reward/{name}/mean": value / len(scored) for name, value in sorted(parts.items())}


def _group_metrics(groups: Sequence[Group]) -> dict[str, float]:
    outcomes = [[t.success for t in g.trajectories if t.success is not None] for g in groups]
    return {
        "group/frac_mixed": _share(group_advantages(g.rewards).mixed for g in groups),
        "group/frac_all_pass": _share(bool(o) and all(o) for o in outcomes),
        "group/frac_all_fail": _share(bool(o) and not any(o) for o in outcomes),
    }


def _episode_metrics(episodes: Sequence[Trajectory]) -> dict[str, float]:
    stops = Counter(t.stop for t in episodes)
    failures = Counter(t.failure.boundary for t in episodes if t.failure)
    verdicts = [t.verdict for t in episodes if t.verdict is not None]
    values = {
        "episode/steps_mean": _mean([len(t.turns) for t in episodes]),
        "episode/truncated_rate": _share(t.stop in _TRUNCATED for t in episodes),
        "episode/failed_rate": _share(t.failure is not None for t in episodes),
    }
    if verdicts:
        values["episode/success_rate"] = _share(v.success for v in verdicts)
        values["episode/false_completion_rate"] = _share(v.false_completion for v in verdicts)
    values |= {f"stop/{reason}": count / len(episodes) for reason, count in sorted(stops.items())}
    return values | {f"failure/{boundary}": count / len(episodes) for boundary, count in sorted(failures.items())}


def _turn_metrics(turns: Sequence[Turn]) -> dict[str, float]:
    if not turns:
        return {}
    kinds = Counter(turn.action.kind for turn in turns if turn.action)
    usages = [turn.sampled.usage for turn in turns if turn.sampled]
    values = {
        "action/parse_failure_rate": _share(turn.parse_error is not None for turn in turns),
        "action/special_token_rate": _share(t.sampled is not None and t.sampled.stop == "special_token" for t in turns),
        "action/rejected_rate": _share(turn.rejected is not None for turn in turns),
    } | {f"action/{kind}_share": count / kinds.total() for kind, count in sorted(kinds.items())}
    if usages:
        values |= {
            "tokens/prompt_mean": _mean([u.prompt_tokens for u in usages]),
            "tokens/sampled_mean": _mean([u.sampled_tokens for u in usages]),
            "tokens/images_mean": _mean([u.images for u in usages]),
            "tokens/total": float(sum(u.prompt_tokens + u.sampled_tokens for u in usages)),
        }
    return values


def _lag_metrics(turns: Sequence[Turn], policy_version: int) -> dict[str, float]:
    sampled = [turn.sampled for turn in turns if turn.sampled and turn.sampled.logprobs is not None]
    lags = [policy_version - one.policy_version for one in sampled]
    return {"policy/lag_mean": _mean(lags), "policy/lag_max": float(max(lags))} if lags else {}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _share(statements: Iterable[bool]) -> float:
    return _mean([float(s) for s in statements])
