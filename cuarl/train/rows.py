"""From trajectories to rows of tokens. Pure Python, no tensors.

One row is one turn: the prompt ids as they were sampled from, then the sampled ids. Only sampled ids are trained, told
apart by their recorded positions and never by comparing ids with an end or padding token: an answer that was cut off
has no end token to learn, and one that ended has exactly the one that was sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cuarl.errors import TrainError
from cuarl.trajectory import BY, BY_ORACLE, Group, Sampled, Trajectory, Turn

Place = tuple[int, int]
"""Position of a turn in its batch: the episode, then the turn."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One sampled turn, ready to be scored."""

    episode: int
    """Position of the episode in the batch."""
    name: str
    """Episode id and turn, for messages."""
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    """The trained tokens, exactly as sampled."""
    images: tuple[str, ...]
    """Digests of the pictures in the window, in prompt order."""
    logprobs: tuple[float, ...] | None
    """Of ``token_ids`` under the distribution they were drawn from; None in supervised training."""
    advantages: tuple[float, ...]
    """Of each trained token."""
    temperature: float
    weight: float = 0.0
    """Weight of each trained token in the loss of its update."""
    turn: int = 0
    group: int = 0
    truncated: bool = False
    """Whether the answer was cut off by the length limit."""
    proximal: tuple[float, ...] = ()
    """Logprobs under the policy at the start of the step, where the loss is decoupled."""
    reference: tuple[float, ...] = ()
    """Logprobs under the reference, where the divergence from it counts or is reported."""
    values: tuple[float, ...] = ()
    """What the critic said at the start of the step: at each token; in an update at turn level, at the first alone."""
    returns: tuple[float, ...] = ()
    """What it should have said, at the same places."""
    value_weight: float = 0.0
    """Weight of each of them in the critic's loss."""
    rehearsed: bool = False
    """Whether this is no turn of an episode, but something that the policy is kept in practice with."""
    imitated: bool = False
    """Whether it is an oracle's turn, to be made likelier beside what is learnt from rewards."""

    def __len__(self) -> int:
        return len(self.prompt_ids) + len(self.token_ids)

    @property
    def place(self) -> Place:
        """Where the turn is in the batch."""
        return self.episode, self.turn


def policy_rows(groups: Sequence[Group]) -> list[TokenRow]:
    """A row for each turn of each scored episode, in order, with advantages of 0.

    None for a turn that said nothing, or that an oracle had in the policy's stead: it was not sampled. Raises
    TrainError for a turn that can't be trained on, by name.
    """
    return [row for place in _numbered(groups) for row in _policy_rows(*place)]


def supervised_rows(groups: Sequence[Group], importance: Mapping[str, float]) -> list[TokenRow]:
    """A row for each turn of each episode, its importance as advantages; logprobs are not needed, ids are.

    ``importance`` is by episode id, and 1 for others. Raises TrainError for a turn without exact ids, by name.
    """
    return [
        _row(
            t,
            turn.index,
            _exact(t, turn.index, turn.sampled),
            group=g,
            episode=e,
            advantage=importance.get(t.episode_id, 1.0),
        )
        for g, e, t in _numbered(groups)
        for turn in _saying(t)
    ]


def _numbered(groups: Sequence[Group]) -> Iterator[tuple[int, int, Trajectory]]:
    episode = 0
    for g, group in enumerate(groups):
        for trajectory in group.trajectories:
            yield g, episode, trajectory
            episode += 1


def _saying(trajectory: Trajectory) -> Iterator[Turn]:
    return (turn for turn in trajectory.turns if turn.sampled is None or not turn.sampled.nothing_said)


def without(
    groups: Sequence[Group], unsayable: frozenset[int], decode: Callable[[Sequence[int]], str]
) -> tuple[Group, ...]:
    """``groups`` with samples ended at the first of the ids ``unsayable``; those that hold none are the same objects.

    Samplers end their answers so. What was stored by others may not be, and an image token has no picture behind it: it
    could be neither scored nor trained.
    """

    def cut(turn: Turn) -> Turn:
        if turn.sampled is None or unsayable.isdisjoint(turn.sampled.token_ids):
            return turn
        return turn.model_copy(update={"sampled": turn.sampled.before_any(unsayable, decode)})

    def cut_all(trajectory: Trajectory) -> Trajectory:
        turns = tuple(map(cut, trajectory.turns))
        changed = any(a is not b for a, b in zip(turns, trajectory.turns, strict=True))
        return trajectory.model_copy(update={"turns": turns}) if changed else trajectory

    def cut_group(group: Group) -> Group:
        attempts = tuple(map(cut_all, group.trajectories))
        changed = any(a is not b for a, b in zip(attempts, group.trajectories, strict=True))
        return group.model_copy(update={"trajectories": attempts}) if changed else group

    return tuple(map(cut_group, groups))


def _policy_rows(group: int, episode: int, trajectory: Trajectory) -> Iterator[TokenRow]:
    for turn in _saying(trajectory) if trajectory.reward is not None else ():
        if trajectory.decided(turn.index).get(BY) == BY_ORACLE:
            continue
        sampled = _exact(trajectory, turn.index, turn.sampled)
        if sampled.logprobs is None:
            raise _refusal(trajectory, turn.index, "has no logprobs of the distribution it was sampled from")
        if not all(math.isfinite(p) for p in sampled.logprobs):
            raise _refusal(trajectory, turn.index, "has a logprob that is not a finite number")
        if sampled.temperature <= 0:
            raise _refusal(trajectory, turn.index, "was decoded greedily, so its logprobs are not those of its choice")
        yield _row(trajectory, turn.index, sampled, group=group, episode=episode, advantage=0.0)


def _exact(trajectory: Trajectory, turn: int, sampled: Sampled | None) -> Sampled:
    if sampled is None:
        raise _refusal(trajectory, turn, "was not sampled from a policy")
    if not sampled.exact or not sampled.prompt_ids or not sampled.token_ids:
        raise _refusal(trajectory, turn, "has no exact token ids: they were recovered from text, or never given")
    return sampled


def _refusal(trajectory: Trajectory, turn: int, why: str) -> TrainError:
    policy = trajectory.policy or trajectory.agent or "unknown"
    return TrainError(
        f"turn {turn} {why}",
        where=f"episode {trajectory.episode_id}, policy {policy}",
        hint="roll out with the policy in process (cuarl train does), at a temperature above 0",
    )


def _row(
    trajectory: Trajectory, turn: int, sampled: Sampled, *, group: int, episode: int, advantage: float
) -> TokenRow:
    return TokenRow(
        episode=episode,
        name=f"{trajectory.episode_id}#{turn}",
        prompt_ids=sampled.prompt_ids,
        token_ids=sampled.token_ids,
        images=tuple(ref.digest for ref in sampled.images),
        logprobs=sampled.logprobs,
        advantages=(advantage,) * len(sampled.token_ids),
        temperature=sampled.temperature,
        turn=turn,
        group=group,
        truncated=sampled.stop == "length",
    )
