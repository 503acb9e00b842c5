"""Supervised training: the stored episodes that each step imitates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cuarl.config.schema import ExperimentConfig
from cuarl.config.sources import Source
from cuarl.config.sources import weights as source_weights
from cuarl.errors import ConfigError
from cuarl.store import Store
from cuarl.train.batch import Batch
from cuarl.trajectory import BY, BY_ORACLE, LABEL, Group, Trajectory, Turn
from cuarl.types import Screenshot
from cuarl.workflow.collector import stretch

_LOOKED_AT = 32
"""Episodes whose token ids are held against the model's."""
Encode = Callable[[str], tuple[int, ...]]
"""Ids of an answer, end of turn included (``Renderer.encode_answer``)."""


class Imitation:
    """Gives a step its share of stored episodes; every process reads the same ones.

    Of an episode in which a person corrected a policy, only what the person did is imitated (DAgger, arXiv:1011.0686).
    """

    def __init__(
        self,
        config: ExperimentConfig,
        store: Store,
        runs_dir: Path,
        *,
        encode: Encode,
        judged_until: float | None = None,
    ) -> None:
        """What people said of episodes after ``judged_until`` (Unix time) doesn't count, as where a run is resumed.

        ``encode`` gives the ids of an oracle's answers.
        """
        from cuarl.run import Run, find_run

        self._config, self._store = config, store
        ids = [Run(find_run(runs_dir, name)).run_id for name in config.learning.sft_runs]
        found = [t for run_id in ids for t in store.trajectories(run=run_id)]
        said = {i: s for run_id in ids for i, s in store.overruled(run=run_id, before=judged_until).items()}
        weights = source_weights(config.learning.sft_weights)
        least = config.learning.sft_min_reward
        good = (t for t in found if is_labelled(t) or earned(t, least, said.get(t.episode_id)))
        worth = [shown(t, encode) for t in good]
        self._episodes = [t for t in worth if _can_be_imitated(t) and weights[source_of(t)]]
        self._importance = {t.episode_id: weights[source_of(t)] for t in self._episodes}
        _check_ids(config, self._episodes, encode)
        if not self._episodes and config.learning.sft_runs:
            raise ConfigError(
                f"none of the {len(found)} episodes can be imitated: they need token ids and a reward of at least "
                f"{config.learning.sft_min_reward:g}",
                where=f"algorithm.runs {', '.join(config.learning.sft_runs)}",
                hint="cuarl rollout --agent demonstration",
            )

    @property
    def ids(self) -> list[str]:
        """Of the episodes, in their order."""
        return [trajectory.episode_id for trajectory in self._episodes]

    async def __call__(self, step: int, policy_version: int) -> Batch:
        """A ``train.loop.Collect``."""
        count = self._config.groups_per_batch * self._config.group_size
        chosen = list(stretch(self._episodes, self._config.seed, step, count))
        return Batch(alone(chosen), self.pictures(chosen), importance=self._importance)

    @property
    def episodes(self) -> Sequence[Trajectory]:
        """All of them, as they are imitated."""
        return self._episodes

    @property
    def importance(self) -> Mapping[str, float]:
        """How much each counts, by its id."""
        return self._importance

    def pictures(self, chosen: Sequence[Trajectory]) -> dict[str, Screenshot]:
        """Of the prompts of some episodes, from the store."""
        digests = {ref.digest for t in chosen for turn in t.turns if turn.sampled for ref in turn.sampled.images}
        return {digest: self._store.blobs.get(digest) for digest in sorted(digests)}


def alone(chosen: Sequence[Trajectory]) -> tuple[Group, ...]:
    """Each episode as a group."""
    return tuple(Group(group_id=t.group_id, task_id=t.task_id, seed=t.seed, trajectories=(t,)) for t in chosen)


def source_of(trajectory: Trajectory) -> Source:
    """Who showed an episode."""
    who = trajectory.agent.partition(":")[0]
    known: Mapping[str, Source] = {"human": "human", "assisted": "corrected", "oracle": "plan", "guided": "plan"}
    return known.get(who, "policy")


def is_labelled(trajectory: Trajectory) -> bool:
    """Whether an oracle stood beside the policy."""
    return trajectory.agent.startswith("guided:")


def labelled(trajectory: Trajectory, encode: Encode) -> Trajectory:
    """``trajectory`` as the oracle beside it would have it: its own turns, and in the policy's what it would have said.

    The prompts stay those that the policy was given. Turns of which it knew nothing are left out.
    """
    turns: list[Turn] = []
    for turn in trajectory.turns:
        decided = trajectory.decided(turn.index)
        if decided.get(BY) == BY_ORACLE and turn.rejected is None:
            turns.append(turn)
        elif (text := decided.get(LABEL)) and turn.sampled is not None:
            said = {"text": text, "token_ids": encode(text), "logprobs": None, "stop": "eos"}
            turns.append(turn.model_copy(update={"sampled": turn.sampled.model_copy(update=said)}))
    return trajectory.model_copy(update={"turns": tuple(turns)})


def shown(trajectory: Trajectory, encode: Encode) -> Trajectory:
    """``trajectory`` with the turns alone that are worth imitating: carried out, and of a correction the person's."""
    if is_labelled(trajectory):
        return labelled(trajectory, encode)
    corrected, decisions = source_of(trajectory) == "corrected", trajectory.info.get("decisions", {})
    turns = tuple(
        turn
        for turn in trajectory.turns
        if turn.rejected is None and not (corrected and decisions.get(str(turn.index), {}).get("by") != "human")
    )
    return trajectory if len(turns) == len(trajectory.turns) else trajectory.model_copy(update={"turns": turns})


def earned(trajectory: Trajectory, min_reward: float, said: bool | None) -> bool:
    """Whether an episode went well enough.

    ``said``: the verdict of a person, who knows better than the reward; None where nobody said anything.
    """
    enough = trajectory.reward is not None and trajectory.reward >= min_reward
    return enough if said is None else said


def _check_ids(config: ExperimentConfig, episodes: Sequence[Trajectory], encode: Encode) -> None:
    """Raise ConfigError where the ids of the answers are not those of their texts: another tokenizer made them."""
    answers = [turn.sampled for t in episodes[:_LOOKED_AT] for turn in t.turns if turn.sampled is not None]
    # a policy may spell a text in other ids now and then, and one that was cut off has no end
    same = sum(encode(answer.text)[: len(answer.token_ids)] == tuple(answer.token_ids) for answer in answers)
    if 2 * same < len(answers):
        raise ConfigError(
            f"the episodes hold token ids of another model than {config.model_name}",
            where=f"algorithm.runs {', '.join(config.learning.sft_runs)}",
            hint=f"cuarl rollout --agent demonstration --model-name {config.model_name}",
        )


def _can_be_imitated(trajectory: Trajectory) -> bool:
    exact = all(t.sampled is not None and t.sampled.exact and t.sampled.prompt_ids for t in trajectory.turns)
    return bool(trajectory.turns) and exact
