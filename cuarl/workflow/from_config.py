"""The parts of a training run, put together from a configuration: what is trained, practised, imitated and measured."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cuarl.cli.progress import EpisodeProgress, draws
from cuarl.config.load import Resolved
from cuarl.config.rules import LORA_ONLY, default_of
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError
from cuarl.evaluate.suite import Evaluation
from cuarl.policy.load import load_policy
from cuarl.policy.model import PolicyModel
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.rollout.failures import FailureWindow
from cuarl.rollout.pool import collect
from cuarl.rollout.setup import Episode
from cuarl.rollout.spec import plan
from cuarl.store import PolicyRecord, Store
from cuarl.tasks.task import Task
from cuarl.train.assign import Baseline
from cuarl.train.batch import Batch, BatchConfig, teaches
from cuarl.train.card import About
from cuarl.train.checkpoint import Checkpoints
from cuarl.train.credit import ScreenCredit
from cuarl.train.curriculum import CurriculumConfig
from cuarl.train.gigpo import AnchorCredit
from cuarl.train.learner import Learner, LearnerConfig
from cuarl.train.loop import LoopConfig
from cuarl.train.loss import LossConfig
from cuarl.train.processes import gather_batch, sharded, waited_for
from cuarl.train.rejection import Rejection
from cuarl.train.replay import ReplayConfig
from cuarl.train.schedule import OptimConfig
from cuarl.train.shaping import Shaping
from cuarl.train.value import CriticConfig
from cuarl.trajectory import Group, Trajectory
from cuarl.types import Screenshot
from cuarl.workflow import environments
from cuarl.workflow import episodes as parts
from cuarl.workflow.environments import Backend
from cuarl.workflow.evaluation import Measurement, keep, measure
from cuarl.workflow.players import Player
from cuarl.workflow.targets import checkpoint

if TYPE_CHECKING:
    from accelerate import Accelerator

    from cuarl.run import Run

T = TypeVar("T")


# --- what is trained -----------------------------------------------------------------------------------------------


def model_spec(resolved: Resolved, device: str) -> ModelSpec:
    """The policy to train. Raises ConfigError for options that the checkpoint it starts from leaves without effect."""
    config = resolved.config
    start = checkpoint(Path(config.load_checkpoint_path)) if config.load_checkpoint_path else None
    if start is not None and start.adapter is not None:
        given = [name for name in (*LORA_ONLY, "train_vision") if _asked(resolved, name)]
        if given or not config.use_lora:
            what = f"{given[0]} has no effect" if given else "use_lora can't be false"
            raise ConfigError(
                f"{what}: the checkpoint is an adapter, which is trained on as it is", where=start.adapter
            )
        return _spec(config, start.model or config.model_name, device, adapter=start.adapter, train="adapter")
    base = start.model or config.model_name if start else config.model_name
    if not config.use_lora:
        # steps of 1e-5 are lost in the rounding of 16-bit weights
        dtype = "float32" if config.dtype == "auto" else config.dtype
        return _spec(config, base, device, train="full", train_vision=config.train_vision, dtype=dtype)
    custom = config.lora_target_option == "custom"
    lora = LoraSpec(
        rank=config.lora_rank, alpha=config.lora_alpha, vision=config.train_vision, seed=config.seed,
        targets=config.lora_target_modules if custom else config.lora_target_option,
    )  # fmt: skip
    return _spec(config, base, device, lora=lora, train="adapter")


def _asked(resolved: Resolved, name: str) -> bool:
    """Whether somebody wants a field to be what it is. A run's own file and a printed one have every field, usual ones too."""
    usual = getattr(resolved.config, name) == default_of(resolved.config, name)
    return resolved.sources[name].startswith("-") or not usual


def _spec(config: ExperimentConfig, model: str, device: str, **fields: object) -> ModelSpec:
    common = {
        "model": model, "dtype": config.dtype, "device": device, "kv_cache_gib": config.kv_cache_gib,
        "trust_remote_code": config.trust_remote_code,
    }  # fmt: skip
    return ModelSpec.model_validate(common | fields)


def check_alone(config: ExperimentConfig, processes: int) -> None:
    """Raise ConfigError if there are several processes and an option needs a single one."""
    given = [name for name in ("max_steps_off_policy", "sampler_device") if getattr(config, name)]
    if processes > 1 and given:
        flag = f"--{given[0].replace('_', '-')}"
        raise ConfigError(
            f"{given[0]} works in one process, and these are several",
            where="--processes", hint=f"leave --processes or {flag} out",
        )  # fmt: skip


def load_trained(resolved: Resolved, accelerator: Accelerator) -> PolicyModel:
    """Load the policy to train onto this process's device."""
    config = resolved.config
    several = accelerator.num_processes > 1 and config.device == "auto"
    return load_policy(model_spec(resolved, str(accelerator.device) if several else config.device))


def learner_config(config: ExperimentConfig) -> LearnerConfig:
    """How the learner has to learn."""
    objective = {"sft": "imitation", "rejection": "rejection"}.get(config.algorithm, "reward")
    shards = sharded()
    if shards and (config.model_base_url or config.max_steps_off_policy):
        other = "model_base_url" if config.model_base_url else "max_steps_off_policy"
        raise ConfigError(
            f"{other} needs whole weights in every process", where="--accelerate fsdp2", hint="--accelerate ddp"
        )
    return LearnerConfig.model_validate(
        {
            "objective": objective, "sharded": shards, "max_steps": config.max_steps, "seed": config.seed,
            "gradient_checkpointing": config.gradient_checkpointing, "activation_gib": config.activation_gib,
            "compute_post_kl": config.compute_post_kl,
            "rejection": Rejection(rule=config.rejection_rule, threshold=config.reward_threshold),
            "replay": ReplayConfig(per_task=config.replay_per_task, max_age=config.replay_max_age, seed=config.seed),
            "curriculum": _curriculum(config), "batch": _batch_config(config), "loss": _loss_config(config),
            "reference": config.kl_reference,
            "optim": OptimConfig(
                learning_rate=config.effective_learning_rate, lr_schedule=config.lr_schedule,
                warmup_steps=config.warmup_steps, max_grad_norm=config.max_grad_norm, weight_decay=config.weight_decay,
                adam_beta1=config.adam_beta1, adam_beta2=config.adam_beta2, adam_eps=config.adam_eps,
            ),
        }
    )  # fmt: skip


def loop_config(config: ExperimentConfig) -> LoopConfig:
    """How long training takes, and what is done between its steps."""
    return LoopConfig(
        max_steps=config.max_steps, eval_every=config.eval_every, save_every=config.save_every,
        skip_baseline=config.skip_baseline,
    )  # fmt: skip


def _batch_config(config: ExperimentConfig) -> BatchConfig:
    baselines: Mapping[str, Baseline] = {"rloo": "leave-one-out", "reinforce++": "batch", "ppo": "critic"}
    in_reward = config.kl_penalty_coef if config.kl_in == "reward" else 0.0
    return BatchConfig(
        advantage=config.advantage_normalization, baseline=baselines.get(config.algorithm, "group"),
        credit="anchor" if config.algorithm == "gigpo" else config.credit,
        screen=ScreenCredit(trace_lambda=config.credit_lambda, discount=config.discount),
        anchor=AnchorCredit(anchor=config.gigpo_anchor, weight=config.gigpo_weight, discount=config.discount),
        critic=CriticConfig(
            level=config.critic_level, trace_lambda=config.gae_lambda, discount=config.discount, clip=config.value_clip,
            trunk=config.critic_trunk, coef=config.value_loss_coef, learning_rate=config.value_learning_rate,
            warmup_steps=config.critic_warmup_steps, seed=config.seed,
        ),
        kl_coef=in_reward, kl_estimator=config.kl_estimator, shaping=shaping(config), reduction=config.loss_reduction,
        constant_tokens=config.loss_constant_tokens, mask_truncated=config.mask_truncated,
        num_substeps=config.num_substeps, num_epochs=config.num_epochs, max_tokens=config.micro_batch_tokens,
        pack=config.pack_turns,
    )  # fmt: skip


def shaping(config: ExperimentConfig) -> Shaping:
    """How rewards are changed before they are compared."""
    return Shaping(
        shortest_path=config.shortest_path_coef, overlong_buffer=config.overlong_buffer,
        overlong_penalty=config.overlong_penalty, max_tokens=config.max_tokens,
    )  # fmt: skip


def _loss_config(config: ExperimentConfig) -> LossConfig:
    return LossConfig(
        surrogate="weights" if config.algorithm == "cispo" else "clip",
        ratio="answer" if config.algorithm == "gspo" else "token",
        clip_low=config.clip_low, clip_high=config.clip_high, decoupled=config.decoupled,
        importance_cap=config.importance_cap, kl_penalty_coef=config.kl_penalty_coef, kl_in=config.kl_in,
        kl_estimator=config.kl_estimator, entropy_coef=config.entropy_coef,
    )  # fmt: skip


def _curriculum(config: ExperimentConfig) -> CurriculumConfig | None:
    if config.curriculum == "none":
        return None
    return CurriculumConfig(
        kind=config.curriculum,
        patience=config.curriculum_patience,
        cooldown=config.curriculum_cooldown,
        seed=config.seed,
    )


class RecordedCheckpoints:
    """Checkpoints that the store and the manifest know of, and that count only once the store has all up to them."""

    def __init__(self, checkpoints: Checkpoints, about: About, learner: Learner, run: Run, store: Store | None) -> None:
        """The process without a store only calls along."""
        self._checkpoints, self._about, self._learner = checkpoints, about, learner
        self._run, self._store = run, store

    def save(self, step: int) -> Path:
        """Write the checkpoint of ``step``."""
        return self._checkpoints.save(step)

    def commit(self, step: int, metrics: Mapping[str, float], pending: Mapping[str, float] | None = None) -> None:
        """Make it the one to resume from, after all that was submitted to the store is there."""
        if self._store is not None:
            self._store.drain()
            self._store.save_policy(
                PolicyRecord(
                    name=self._learner.policy.name, version=step, run_id=self._run.run_id, step=step,
                    base_model=self._about.base_model, path=str(self._checkpoints.folder(step)),
                )
            )  # fmt: skip
            self._run.count({"steps": step, "episodes": self._learner.episodes})
        self._checkpoints.commit(step, metrics, pending)


# --- what is practised ---------------------------------------------------------------------------------------------


def stretch(items: Sequence[T], seed: int | str, step: int, count: int) -> Iterator[T]:
    """What step ``step`` takes, ``count`` a step, from an endless row of shuffled copies of ``items``."""
    for position in range((step - 1) * count, step * count):
        epoch, at = divmod(position, len(items))
        yield random.Random(f"{seed}/epoch/{epoch}").sample(items, len(items))[at]


def _bar(what: str, *, json: bool) -> AbstractContextManager[EpisodeProgress | None]:
    """Progress for those who watch; in a pipe, a step is one line when it is done."""
    return EpisodeProgress(what, json=json) if json or draws() else nullcontext()


_FURTHER = 10_000_000
"""Where the groups of a further collection are numbered from, clear of those of all steps."""


class Practice:
    """Collects a step's groups with the policy as it is; each process runs every so-manieth of them."""

    def __init__(
        self, config: ExperimentConfig, tasks: Sequence[Task], player: Player, run_id: str, learner: Learner | None,
        record: parts.Recording | None, *, json: bool, backend: Backend | None = None,
    ) -> None:  # fmt: skip
        """``learner`` is None where weights are trained elsewhere: by one process, without a curriculum."""
        self._config, self._tasks, self._run_id, self._json = config, tasks, run_id, json
        self._curriculum = learner.curriculum if learner else None
        self._backend = backend or environments.backend(config, tasks)
        self._setup = parts.setup(config, self._backend, player)
        self._rank, self._world = 0, 1
        if learner:
            self._rank, self._world = learner.accelerator.process_index, learner.accelerator.num_processes
        self._record = record
        self._failures = FailureWindow(max_share=config.max_failed_share)
        self._pictures: dict[str, Screenshot] = {}

    async def __call__(self, step: int, policy_version: int) -> Batch:
        """A ``train.loop.Collect``: once, and again in place of groups that teach nothing (DAPO's dynamic sampling)."""
        config, rounds = self._config, self._config.dynamic_sampling_rounds
        batch = await self._collect(step, 0, config.groups_per_batch)
        if not rounds:
            return batch
        kept, flat, pictures = self._split(batch)
        for number in range(1, rounds + 1):
            missing = config.groups_per_batch - len(kept)
            if not missing:
                break
            further = await self._collect(step, number, missing)
            more, less, seen = self._split(further)
            kept, flat, pictures = kept + more, flat + less, {**pictures, **seen}
        return Batch(tuple(kept), pictures, tuple(flat))

    def _split(self, batch: Batch) -> tuple[list[Group], list[Group], Mapping[str, Screenshot]]:
        """The groups that teach, and those that don't."""
        how = shaping(self._config)
        kept = [group for group in batch.groups if teaches(group, how)]
        return kept, [group for group in batch.groups if group not in kept], batch.pictures

    def _next_tasks(self, step: int, number: int, count: int) -> list[Task]:
        if self._curriculum is not None:
            by_id = {task.id: task for task in self._tasks}
            return [by_id[i] for i in self._curriculum.choose(sorted(by_id), count)]
        seed = f"{self._config.seed}/again/{number}" if number else self._config.seed
        return list(stretch(self._tasks, seed, step, self._config.groups_per_batch))[:count]

    async def _collect(self, step: int, number: int, count: int) -> Batch:
        """``count`` groups; ``number`` says how often the step has collected before."""
        config = self._config
        again = f".again{number}" if number else ""
        specs = plan(
            self._next_tasks(step, number, count), group_size=config.group_size, run_seed=config.seed,
            prefix=f"{self._run_id}.{step:04d}{again}", run_id=self._run_id, step=step, purpose="train",
            first_group=number * _FURTHER + (step - 1) * config.groups_per_batch,
        )  # fmt: skip
        mine = [spec for i, spec in enumerate(specs) if i // config.group_size % self._world == self._rank]
        self._pictures = {}
        with waited_for(), _bar(f"step {step} of {config.max_steps}", json=self._json) as progress:
            async with parts.serving(self._backend):
                groups = await collect(
                    mine, self._setup, failures=self._failures,
                    max_concurrent=self._backend.concurrent(config.max_concurrent_rollouts),
                    save=self._take, progress=progress, on_cancel=self._record.cut if self._record else None,
                )  # fmt: skip
        batch = Batch(tuple(groups), self._pictures)
        batch = gather_batch(batch) if self._world > 1 else batch
        await self._record_others(batch)
        return batch

    async def _take(self, episode: Episode) -> None:
        self._pictures |= episode.pictures
        if self._record is not None:
            await self._record.save(episode)

    async def _record_others(self, batch: Batch) -> None:
        """The main process records for all."""
        if self._record is None:
            return
        for i, group in enumerate(batch.groups):
            if i % self._world != self._rank:
                for trajectory in group.trajectories:
                    await self._record.save(Episode(trajectory, _shown(trajectory, batch.pictures)))


def _shown(trajectory: Trajectory, pictures: Mapping[str, Screenshot]) -> dict[str, Screenshot]:
    refs = [turn.screenshot for turn in trajectory.turns] + [
        ref for turn in trajectory.turns if turn.sampled for ref in turn.sampled.images
    ]
    refs += [trajectory.final_screenshot] if trajectory.final_screenshot else []
    return {ref.digest: pictures[ref.digest] for ref in refs}


# --- what is imitated ----------------------------------------------------------------------------------------------


class Imitation:
    """Gives a step its share of stored episodes; every process reads the same ones."""

    def __init__(self, config: ExperimentConfig, store: Store, runs_dir: Path) -> None:
        from cuarl.run import Run, find_run

        self._config, self._store = config, store
        ids = [Run(find_run(runs_dir, name)).run_id for name in config.sft_runs]
        found = [t for run_id in ids for t in store.trajectories(run=run_id)]
        self._episodes = [t for t in found if _worth_imitating(t, config.sft_min_reward)]
        if not self._episodes:
            raise ConfigError(
                f"none of the {len(found)} episodes can be imitated: they need token ids and a reward of at least "
                f"{config.sft_min_reward:g}",
                where=f"sft_runs {', '.join(config.sft_runs)}",
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
        digests = {ref.digest for t in chosen for turn in t.turns if turn.sampled for ref in turn.sampled.images}
        groups = tuple(Group(group_id=t.group_id, task_id=t.task_id, seed=t.seed, trajectories=(t,)) for t in chosen)
        return Batch(groups, {digest: self._store.blobs.get(digest) for digest in sorted(digests)})


def _worth_imitating(trajectory: Trajectory, min_reward: float) -> bool:
    exact = all(t.sampled is not None and t.sampled.exact and t.sampled.prompt_ids for t in trajectory.turns)
    return bool(trajectory.turns) and exact and trajectory.reward is not None and trajectory.reward >= min_reward


# --- what is measured ----------------------------------------------------------------------------------------------


class Measuring:
    """Evaluates the policy as it is, in the main process, and keeps the first and the last evaluation."""

    def __init__(
        self, what: Measurement, player: Player, run: Run, store: Store | None, record: parts.Recording | None, *,
        json: bool,
    ) -> None:  # fmt: skip
        self._what, self._player, self._run, self._json = what, player, run, json
        self._store, self._record = store, record
        self.last: Evaluation | None = None

    async def __call__(self, step: int) -> dict[str, float] | None:
        """A ``train.loop.Evaluate``."""
        if self._store is None or self._record is None:
            return None
        prefix = f"{self._run.run_id}.eval.{step:04d}"
        with _bar(f"evaluation at step {step}", json=self._json) as progress:
            evaluation = await measure(
                self._what, self._player, prefix=prefix, run_id=self._run.run_id, step=step, record=self._record,
                progress=progress,
            )  # fmt: skip
        keep(self._store, evaluation, prefix, self._run, own=True)
        self.last = evaluation
        return evaluation.metrics()
