"""Every experiment field, its default and its meaning: the one source of flags, files, help and reference.

What every experiment has stands at the top (``group_size: 8``), and the classes below only group it into the panels of
``--help``. What there is one of several of (``env``) is a record with a ``type``: those of environments are in the packages
of their backends. Names that the recipes of the field use are kept. Defaults suit the embedded simulator and the shipped base on a laptop; presets
change them as a set. Rules that span several fields are in ``rules.py``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SerializeAsAny,
    model_validator,
)

from cuarl.config import rules
from cuarl.config.algorithms import ALGORITHMS
from cuarl.config.fields import EnvOptions, Fields, Selectors, Share, Words
from cuarl.config.unions import ENV


class TaskFields(Fields):
    """What is trained on and what is evaluated on."""

    panel = "Tasks"

    tasks: Selectors = ()
    """Tasks to train on: categories, suites, ids, globs, files, or JSON source objects; unset means every training
    task."""
    eval_tasks: Selectors = ()
    """Tasks to evaluate on; unset means the evaluation tasks that pass the same filters."""
    category: Words = ()
    """Keep only these categories: system, navigation, settings, app, input."""
    difficulty: Words = ()
    """Keep only these difficulties: easy, medium, hard."""
    limit: PositiveInt | None = None
    """Keep at most this many tasks, drawn by the seed."""
    seed: NonNegativeInt = 0
    """Seed of everything random: task order, devices, sampling, initialisation."""


class EnvFields(Fields):
    """The device."""

    panel = "Environment"

    env: Annotated[SerializeAsAny[EnvOptions], BeforeValidator(ENV.read)] = Field(default_factory=ENV.usual)
    """Environment: sim is the simulated device inside the process, linux a real desktop on a display of its own, browser
    web pages in Chromium, adb a phone or an emulator, gbox a cloud box, pods a pod of Kubernetes, gym an execution of a gym server, gymnasium, browsergym
    and openenv environments made elsewhere, and package.module:name one of your own in Python."""
    side_effects: Literal["fail", "report"] = "fail"
    """Whether a change that the task did not ask for fails the task, or is only reported."""
    max_turns: PositiveInt = 20
    """Most turns of an episode; a task's own max_steps holds where it is lower."""
    max_task_time_seconds: PositiveFloat = 1800.0
    """Wall-clock limit of an episode: reset, model, steps and verdict together."""
    max_turn_time_seconds: PositiveFloat = 300.0
    """Wall-clock limit of one turn."""
    max_concurrent_rollouts: PositiveInt = 96
    """Most episodes that run at the same time."""
    max_failed_share: Share = 0.5
    """Stop when more than this share of recent episodes failed for reasons outside the policy."""


class ModelFields(Fields):
    """The policy and what of it is trained."""

    panel = "Model"

    model_name: str = "tiny"
    """Base model: tiny (shipped with cuarl), a folder, or a model id."""
    trust_remote_code: bool = False
    """Run code that comes with a model of a class that transformers doesn't have; read it first."""
    load_checkpoint_path: str | None = None
    """Checkpoint whose weights training starts from."""
    use_lora: bool = True
    """Train a LoRA adapter rather than all weights."""
    lora_rank: PositiveInt = 16
    """Rank of the adapter."""
    lora_alpha: PositiveFloat | None = None
    """Scale of the adapter; unset means twice the rank."""
    lora_target_option: Literal["attention", "mlp", "attention+mlp", "all-linear", "custom"] = "attention+mlp"
    """Layers of the language model that the adapter sits on."""
    lora_target_modules: Words = ()
    """Module names for lora_target_option custom."""
    train_vision: bool = False
    """Train the vision tower, too; its features can't be cached then."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number format of the weights; auto is float32 on a CPU and bfloat16 on a GPU."""
    device: Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")] = "auto"
    """Where the model runs: auto, cpu, cuda, cuda:1, mps."""
    sampler_device: Annotated[str, Field(pattern=r"^(cpu|mps|cuda(:\d+)?)$")] | None = None
    """Where a second copy of the model samples training episodes; unset: where it is trained. See docs/off-policy.md."""
    gradient_checkpointing: bool = False
    """Trade a third more computing for much less activation memory."""
    activation_gib: NonNegativeFloat = 0.0
    """With gradient_checkpointing on a GPU: GiB of activations to keep all the same, which need not be computed again."""
    kv_cache_gib: PositiveFloat | None = None
    """GiB of keys and values that sampling may keep, over turns too; unset: half of a GPU's free memory, 2 on a CPU."""


class SamplingFields(Fields):
    """How the policy is shown the task and how it answers."""

    panel = "Sampling"

    group_size: PositiveInt = 16
    """Attempts at the same task instance, compared with each other."""
    groups_per_batch: PositiveInt = 6
    """Groups that one training step learns from."""
    temperature: PositiveFloat = 1.0
    """Sampling temperature of training episodes."""
    eval_temperature: NonNegativeFloat = 0.5
    """Sampling temperature of evaluations, where nothing needs exploring; 0 takes the most likely token."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Sample from the most likely tokens that make up this share."""
    top_k: NonNegativeInt = 0
    """Sample from this many most likely tokens; 0 means all."""
    max_tokens: PositiveInt = 128
    """Most tokens of one answer."""
    renderer_name: str = "auto"
    """Prompt and tool-call format; auto goes by the model."""
    history_images: PositiveInt | None = None
    """Screenshots in the prompt, the present one included; unset means what is usual in the format."""
    history_turns: NonNegativeInt | None = None
    """Earlier answers in the prompt; unset means what is usual in the format."""
    history_older: Literal["text", "drop"] = "text"
    """What becomes of an earlier answer whose screenshot is no more in the prompt: it stays, with words in its place, or goes,
    too."""
    max_prompt_tokens: PositiveInt | None = None
    """Most tokens of a prompt: screenshots and answers give way, oldest first, system prompt and task never; unset means that
    an episode ends when the model's context is full."""


class RemoteFields(Fields):
    """A policy that is sampled from, or trained, elsewhere."""

    panel = "Remote policy"

    model_base_url: str | None = None
    """URL of an OpenAI-compatible server that the policy is sampled from, such as http://localhost:8000/v1."""
    served_model_name: str | None = None
    """What that server calls the model; unset means the only one it serves, else model_name."""
    rescore: bool = False
    """Train on what that server can't give exactly: answers tokenised anew, their log-probabilities recomputed here."""
    keep_adapters: bool = False
    """Keep the adapter of every step that the server was given, so that rollout verify can prove every turn."""
    trainer: Literal["local", "tinker"] = "local"
    """Where weights are trained and sampled from: in this process, or by the Tinker service."""
    tinker_loss: Literal["ppo", "importance_sampling", "cispo"] = "ppo"
    """Policy loss that Tinker computes: clipped, not clipped, or with clipped weights."""


class AlgorithmFields(Fields):
    """What is learnt from a batch."""

    panel = "Algorithm"

    algorithm: Literal[
        "grpo", "dr-grpo", "dapo", "gspo", "cispo", "rloo", "reinforce++", "gigpo", "ppo", "rejection", "sft"
    ] = "grpo"
    """Policy gradients, imitation of the policy's own best episodes (rejection), or of stored ones (sft); each sets its own
    defaults, see docs/algorithms.md."""
    reward: str = "finished"
    """Reward: simple, finished, completion, efficiency, shaped, comprehensive, score, env, or the dotted path of a
    function."""
    advantage_normalization: Literal["std", "none"] = "std"
    """Divide centred rewards by the group's standard deviation, or only centre them."""
    credit: Literal["episode", "screen"] = "episode"
    """What a turn is credited with: its episode's advantage (plain GRPO), or its own, from the screens that the attempts
    of a group share, which needs screens that repeat."""
    shortest_path_coef: Share = 0.0
    """How much of a success's reward a detour costs, against the group's shortest success; 0 means nothing."""
    overlong_buffer: NonNegativeInt = 0
    """How many tokens before max_tokens an answer begins to cost reward; 0 means never."""
    overlong_penalty: PositiveFloat = 1.0
    """What the longest possible answer costs."""
    credit_lambda: Share = 0.5
    """How far credit by screen looks ahead: 0 one screen, 1 to the end of the episode."""
    discount: Annotated[float, Field(gt=0, le=1)] = 1.0
    """With credit by screen, gigpo and ppo: what a success is worth for each turn that it comes later."""
    gigpo_anchor: Literal["screen", "text"] = "screen"
    """What makes two turns of a group the same state: equal pixels, or equal text fields of the observation."""
    gigpo_weight: NonNegativeFloat = 1.0
    """Weight of the advantage among equal states, against that of the episode."""
    loss_reduction: Literal["token", "turn", "sequence", "constant"] = "token"
    """Average over all tokens of the batch, over turns or episodes first, or divide by a constant."""
    loss_constant_tokens: PositiveInt = 1024
    """Divisor of an episode's sum with loss_reduction constant."""
    mask_truncated: bool = False
    """Leave answers that ran into max_tokens out of the loss."""
    clip_low: Share = 0.2
    """How far below one the probability ratio still gives a gradient."""
    clip_high: PositiveFloat = 0.2
    """How far above one the probability ratio still gives a gradient."""
    decoupled: bool = False
    """Clip against the policy at the start of the step, recomputed, and weigh by its ratio to the one that sampled."""
    importance_cap: PositiveFloat | None = None
    """Upper bound of that weight (truncated importance sampling)."""
    kl_penalty_coef: NonNegativeFloat = 0.0
    """Weight of the KL divergence from the reference."""
    kl_reference: Literal["base", "start"] = "base"
    """The reference: the base with the adapter off, or the policy as it is when the run starts, which differs where training
    goes on from a checkpoint."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Where the divergence counts: as a term of the loss, or against the reward of each token."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    """How the divergence is estimated from sampled tokens."""
    compute_post_kl: bool = False
    """After each step, measure how far it moved the policy; costs a forward pass over the batch."""
    entropy_coef: NonNegativeFloat = 0.0
    """Weight of an entropy bonus."""
    dynamic_sampling_rounds: NonNegativeInt = 0
    """How often a step may collect again in place of groups whose rewards are all equal; 0 means never."""
    replay_per_task: NonNegativeInt = 0
    """Successes kept of each task, to stand in where all attempts of a group fail; 0 means none."""
    replay_max_age: PositiveInt | None = None
    """Steps after which a kept success is forgotten; unset means never."""
    curriculum: Literal["none", "failure-filter", "pools"] = "none"
    """Which tasks come next: all in turn, all but those that keep failing, or more of those solved now and then."""
    curriculum_patience: PositiveInt = 2
    """Groups without success in a row after which a task is set aside."""
    curriculum_cooldown: PositiveInt = 3
    """Rounds through all tasks for which it is set aside."""
    critic_level: Literal["turn", "token"] = "turn"
    """Whether the critic of ppo values each turn or each token."""
    critic_trunk: Literal["detached", "shared"] = "detached"
    """Whether the critic's gradient stops at its head, or trains the policy's layers too."""
    critic_warmup_steps: NonNegativeInt = 0
    """First steps in which only the critic learns."""
    gae_lambda: Share = 0.95
    """How far the advantage looks beyond the critic's next value: 0 one turn or token, 1 to the end."""
    value_clip: NonNegativeFloat = 0.2
    """How far an update may move a value; 0 means no bound."""
    value_loss_coef: PositiveFloat = 0.5
    """Weight of the critic's loss in the policy's layers, with critic_trunk shared."""
    value_learning_rate: PositiveFloat = 1e-3
    """Learning rate of the critic's head."""
    rejection_rule: Literal["threshold", "best-of-group"] = "threshold"
    """Imitate every episode above the threshold, or only the best of each group."""
    reward_threshold: float = 0.0
    """An episode is imitated if its reward is greater than this."""
    max_steps_off_policy: NonNegativeInt | None = None
    """Collect beside training, from groups at most so many steps older than the policy they train; unset or 0: in turn with
    it. See docs/off-policy.md."""
    sft_runs: Words = ()
    """Runs whose stored episodes sft imitates."""
    sft_min_reward: float = 1.0
    """Least reward of an episode that sft imitates."""


class OptimFields(Fields):
    """How the weights move."""

    panel = "Optimisation"

    max_steps: PositiveInt = 32
    """Training steps; each collects one batch."""
    learning_rate: PositiveFloat | None = None
    """Peak learning rate; unset means 2e-4 with LoRA (7e-4 for the shipped base, which is tiny) and 1e-5 without."""
    lr_schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Course of the learning rate after the warm-up."""
    warmup_steps: NonNegativeInt = 0
    """Steps over which the learning rate rises from zero."""
    num_substeps: PositiveInt = 1
    """Optimiser steps per batch, each on its own share of the groups."""
    num_epochs: PositiveInt = 1
    """Passes over each batch."""
    micro_batch_tokens: PositiveInt = 8192
    """Most tokens, padding included, of one forward and backward pass."""
    pack_turns: bool = True
    """Compute turns that extend one another as one sequence: the same loss, each token computed once. Only a history of
    earlier answers makes turns extend one another."""
    max_grad_norm: PositiveFloat = 1.0
    """Gradients are scaled down to this norm."""
    weight_decay: NonNegativeFloat = 0.0
    """Decoupled weight decay."""
    adam_beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """Decay of the optimiser's first moment."""
    adam_beta2: Annotated[float, Field(ge=0, lt=1)] = 0.999
    """Decay of the optimiser's second moment."""
    adam_eps: PositiveFloat = 1e-8
    """Term that keeps the optimiser's division finite."""


class OutputFields(Fields):
    """When to evaluate and to save."""

    panel = "Evaluation and checkpoints"

    eval_every: NonNegativeInt = 16
    """Evaluate every so many steps; 0 means at the end only."""
    eval_episodes: PositiveInt = 200
    """Episodes of one evaluation."""
    skip_baseline: bool = False
    """Skip the evaluation before the first step."""
    save_every: NonNegativeInt = 8
    """Save a checkpoint every so many steps; 0 means at the end only."""
    save_total_limit: PositiveInt | None = None
    """Keep only this many newest checkpoints; unset keeps all."""


# pydantic lays fields out from the last base to the first
class ExperimentConfig(
    OutputFields, OptimFields, AlgorithmFields, RemoteFields, SamplingFields, ModelFields, EnvFields, TaskFields
):
    """One experiment, whole. ``train`` reads all of it; ``rollout`` and ``eval`` read what concerns them."""

    panel = "Experiment"

    @model_validator(mode="before")
    @classmethod
    def _algorithm_defaults(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        known = ALGORITHMS.get(str(data.get("algorithm", "grpo")))
        return {**known.defaults, **data} if known else data

    @model_validator(mode="after")
    def _rules(self) -> ExperimentConfig:
        problems = rules.problems(self)
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def resumable_fields(self) -> frozenset[str]:
        """Fields that may differ when a run is resumed: they say how long and how often, not what is learnt."""
        fields = {
            "eval_every", "eval_episodes", "save_every", "save_total_limit", "max_concurrent_rollouts",
            "max_failed_share",
        }  # fmt: skip
        # any other schedule is stretched over all steps
        return frozenset(fields | {"max_steps"} if self.lr_schedule == "constant" else fields)

    @property
    def effective_learning_rate(self) -> float:
        """The learning rate, with the rule for an unset one applied."""
        if self.learning_rate is not None:
            return self.learning_rate
        if not self.use_lora:
            return 1e-5
        return 7e-4 if self.model_name == "tiny" else 2e-4

    @property
    def canonical_json(self) -> str:
        """All fields, sorted, without white space: what the digest is taken of."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def digest(self) -> str:
        """SHA-256 of ``canonical_json``, hexadecimal: equal exactly when the experiments are."""
        return hashlib.sha256(self.canonical_json.encode()).hexdigest()


PANELS: tuple[type[Fields], ...] = (
    TaskFields, EnvFields, ModelFields, SamplingFields, RemoteFields, AlgorithmFields, OptimFields, OutputFields,
)  # fmt: skip
"""The groups, in the order in which help and printed configurations show them."""
