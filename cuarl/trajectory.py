"""The one record of an episode. Logs, metrics, viewer and training batches are derived from it.

A ``Turn`` holds what the policy saw (prompt ids and image references, exactly as sampled), what it answered (ids and
logprobs) and what came of it. A ``Trajectory`` is the turns of one episode and its verdict; a ``Group`` is several
attempts at one task instance, the unit of cost and of variance reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from cuarl.types import Action, Failure, ImageRef, ParseError, Record, StopReason, Usage

SCHEMA_VERSION = 1

BY, LABEL = "by", "label"
"""Of a turn in ``info["decisions"]``: whose decision it was, and the answer that an oracle would have given."""
BY_ORACLE = "oracle"
"""That it was an oracle's, in a policy's episode."""


class Sampled(Record):
    """One model call, token-exact.

    ``logprobs[i]`` is the natural-log probability of ``token_ids[i]`` under the distribution it was really drawn from
    (after temperature and truncation). Lengths of ids and logprobs are equal; logprobs are absent, never filled with
    zeros, where an endpoint does not give them.
    """

    prompt_ids: tuple[int, ...] = ()
    """Prompt with image placeholders expanded; empty if the endpoint takes text only."""
    images: tuple[ImageRef, ...] = ()
    """Pictures in the window, in prompt order."""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] | None = None
    text: str = ""
    stop: Literal["eos", "length", "stop_string", "special_token"] = "eos"
    """``special_token``: an image or vision token came next, which ended the answer and is not part of it."""
    temperature: float = 1.0
    policy: str = ""
    """Name of the policy (model or adapter) that sampled this."""
    policy_version: int = 0
    exact: bool = True
    """False if ids were recovered from text: such turns are kept out of ratio-based losses."""

    @model_validator(mode="after")
    def _lengths(self) -> Sampled:
        if self.logprobs is not None and len(self.logprobs) != len(self.token_ids):
            raise ValueError(f"{len(self.token_ids)} token ids but {len(self.logprobs)} logprobs")
        return self

    def before_any(self, unsayable: Collection[int], decode: Callable[[Sequence[int]], str]) -> Sampled:
        """This sample up to the first of the ids ``unsayable``, which ends it; itself where there is none.

        What is kept was sampled as it stands, and its logprobs are its own; ``decode`` gives its text.
        """
        at = next((i for i, token in enumerate(self.token_ids) if token in unsayable), None)
        if at is None:
            return self
        kept, logprobs = self.token_ids[:at], self.logprobs
        return self.model_copy(
            update={
                "token_ids": kept,
                "logprobs": None if logprobs is None else logprobs[:at],
                "text": decode(kept),
                "stop": "special_token",
            }
        )

    @property
    def nothing_said(self) -> bool:
        """Whether an image or vision token was all that was sampled: there is nothing to train, and nothing to show."""
        return self.stop == "special_token" and not self.token_ids

    @property
    def usage(self) -> Usage:
        """Tokens and images of this call."""
        return Usage(prompt_tokens=len(self.prompt_ids), sampled_tokens=len(self.token_ids), images=len(self.images))


class Turn(Record):
    """One screenshot, one answer, one effect."""

    index: NonNegativeInt
    screenshot: ImageRef
    """What the device showed before the action."""
    action: Action | None = None
    """The parsed action in pixels of ``screenshot``; None if the output was not an action."""
    parse_error: ParseError | None = None
    warnings: tuple[str, ...] = ()
    """Repairs and clamps that parsing needed."""
    rejected: str | None = None
    """Why the environment did not carry the action out."""
    resized: tuple[PositiveInt, PositiveInt] | None = None
    """Width and height in pixels at which the model saw ``screenshot``: it decides what coordinates in its pixels mean.
    None for scripted agents."""
    sampled: Sampled | None = None
    """None for scripted agents."""
    text: Mapping[str, str] = Field(default_factory=dict)
    """Text fields of the observation."""
    reward: float | None = None
    """The environment's own reward of this step, where it has one."""
    started_at: float = 0.0
    """Unix time, seconds; it ended ``model_s + env_s`` later. 0 where that is not known."""
    model_s: float = 0.0
    env_s: float = 0.0
    settle_ms: float | None = None
    settled: bool | None = None
    changed: bool | None = None
    """Whether the screen after the action differs from the one before."""


class CheckResult(Record):
    """One condition of a task, with the evidence."""

    path: str
    op: str
    expected: Any = None
    actual: Any = None
    passed: bool


class Verdict(Record):
    """Whether a task is done, by the state of the device and the answer given."""

    success: bool
    score: float = Field(ge=0, le=1)
    """Share of the checks that hold; 1.0 exactly when ``success`` and without side effects."""
    checks: tuple[CheckResult, ...] = ()
    side_effects: tuple[str, ...] = ()
    """State paths that changed although the task did not ask for it."""
    claimed: bool | None = None
    """What the agent claimed with its Finish action; None if it never finished."""

    @property
    def false_completion(self) -> bool:
        """The agent claimed success, and it is not so."""
        return self.claimed is True and not self.success


class RewardPart(Record):
    """One term of a reward, with the reason in words."""

    name: str
    value: float
    evidence: str = ""


class Trajectory(Record):
    """One episode, whole."""

    schema_version: int = SCHEMA_VERSION
    episode_id: str
    run_id: str = ""
    group_id: str = ""
    attempt: NonNegativeInt = 0
    """Position in the group."""
    step: NonNegativeInt = 0
    """Training step that asked for the episode; 0 elsewhere."""
    purpose: Literal["train", "eval", "rollout"] = "rollout"
    task_id: str
    goal: str
    category: str = ""
    difficulty: str = ""
    env: str = ""
    backend: str = ""
    """What ran the environment, as ``--env`` names it, e.g. ``gbox``; ``env`` is the kind of device that the task is
    for."""
    device: str = ""
    """The device behind it, by the name that its backend knows: a box, a serial number, a pod. Empty where there is
    none."""
    agent: str = ""
    """Name of the agent, e.g. ``oracle`` or ``qwen3-vl-mobile``."""
    policy: str = ""
    policy_version: int = 0
    seed: int = 0
    """Seed of the environment instance: the same for all attempts of a group."""
    turns: tuple[Turn, ...] = ()
    final_screenshot: ImageRef | None = None
    answer: str | None = None
    """Last text given by Answer, or the message of Finish."""
    stop: StopReason
    failure: Failure | None = None
    verdict: Verdict | None = None
    """None if there is no verdict: never read as a failure of the policy."""
    reward: float | None = None
    """None exactly when the episode must not be scored."""
    reward_parts: tuple[RewardPart, ...] = ()
    started_at: float = 0.0
    """Unix time, seconds."""
    ready_s: float | None = None
    """Seconds from ``started_at`` until the first screen was there: the environment made and reset. None if it never
    was."""
    check_at: float | None = None
    """Unix time at which checking began; None if nothing was checked."""
    check_s: float | None = None
    """Seconds that it took."""
    wall_s: float = 0.0
    info: Mapping[str, Any] = Field(default_factory=dict)

    def decided(self, turn: int) -> Mapping[str, Any]:
        """What was noted of the decision of a turn, by its index."""
        noted: Mapping[str, Any] = self.info.get("decisions", {}).get(str(turn), {})
        return noted

    @property
    def led(self) -> int:
        """In how many turns an oracle decided."""
        return sum(self.decided(turn.index).get(BY) == BY_ORACLE for turn in self.turns)

    @property
    def success(self) -> bool | None:
        """The verdict, or None where there is none."""
        return None if self.verdict is None else self.verdict.success

    @property
    def scored(self) -> bool:
        """Whether this episode may enter rewards, advantages and success rates."""
        return self.reward is not None

    @property
    def usage(self) -> Usage:
        """Sum over the turns."""
        calls = [t.sampled.usage for t in self.turns if t.sampled]
        return Usage(
            prompt_tokens=sum(u.prompt_tokens for u in calls),
            sampled_tokens=sum(u.sampled_tokens for u in calls),
            images=sum(u.images for u in calls),
        )


class Group(Record):
    """Attempts at one task instance (same task, same environment seed)."""

    group_id: str
    task_id: str
    seed: int = 0
    trajectories: tuple[Trajectory, ...]

    @property
    def rewards(self) -> list[float | None]:
        """Reward of each attempt; None where there is none."""
        return [t.reward for t in self.trajectories]
