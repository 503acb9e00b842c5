"""Every experiment field, its default and its meaning: the one source of flags, files, help and reference.

What every experiment has stands at the top (``group_size: 8``), and the classes below only group it into the panels of
``--help``. What there is one of several of (``env``) is a record with a ``type``: those of environments are in the
packages of their backends. Names that the recipes of the field use are kept. Defaults suit the embedded simulator and
the shipped base on a laptop; presets change them as a set. Rules that span several fields are in ``rules.py``.
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
from cuarl.config.fields import EnvOptions, Fields, Selectors, Share, Trackers, Words, Workers
from cuarl.config.learning import AlgorithmOptions, Learning, complete
from cuarl.config.places import (
    LocalPolicy,
    LocalTrainer,
    OpenAIPolicy,
    PolicyOptions,
    TinkerTrainer,
    TrainerOptions,
    VLLMPolicy,
)
from cuarl.config.unions import ALGORITHM, ENV, POLICY, TRAINER


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
    split: Words = ()
    """Keep only these parts of generated tasks: train, or what is new in those held out: wording, object, kind, app;
    unset means train to train on, and the others to evaluate on."""
    limit: PositiveInt | None = None
    """Keep at most this many tasks, drawn by the seed."""
    seed: NonNegativeInt = 0
    """Seed of everything random: task order, devices, sampling, initialisation."""


class EnvFields(Fields):
    """The device."""

    panel = "Environment"

    env: Annotated[SerializeAsAny[EnvOptions], BeforeValidator(ENV.read)] = Field(default_factory=ENV.usual)
    """Environment: sim is the simulated device inside the process, linux a real desktop on a display of its own,
    browser web pages in Chromium, adb a phone or an emulator, gbox a cloud box, pods a pod of Kubernetes, gym an
    execution of a gym server, gymnasium, browsergym and openenv environments made elsewhere, program an agent program
    of your own, grounding pictures to point at, and package.module:name one of your own in Python."""
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
    workers: Workers = None
    """Processes that run environments and agents, for which this one asks the policy and records: how many; or actors
    of a Ray cluster, one for each free core (ray is this machine's cluster, ray://HOST:PORT another) or so many
    (8@ray). Unset or none runs everything in this process."""
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
    quantization: Literal["auto", "none", "nf4"] = "auto"
    """nf4 keeps the language model's linear layers, frozen, in four bits, so that 8B models train adapters on a card of
    24 GB; embeddings, head, norms and vision tower stay in the dtype. auto is what the checkpoint's adapter was trained
    on, and none without."""
    device: Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")] = "auto"
    """Where the model runs: auto, cpu, cuda, cuda:1, mps."""


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
    """What becomes of an earlier answer whose screenshot is no more in the prompt: it stays, with words in its place,
    or goes, too."""
    max_prompt_tokens: PositiveInt | None = None
    """Most tokens of a prompt: screenshots and answers give way, oldest first, system prompt and task never; unset
    means that an episode ends when the model's context is full."""


class PlaceFields(Fields):
    """Where the policy is sampled from, and where it is trained."""

    panel = "Policy and trainer"

    policy: Annotated[SerializeAsAny[PolicyOptions], BeforeValidator(POLICY.read)] = Field(default_factory=POLICY.usual)
    """What is sampled from: local is the model where it is trained, openai an OpenAI-compatible server, vllm one
    that is started for the run."""
    trainer: Annotated[SerializeAsAny[TrainerOptions], BeforeValidator(TRAINER.read)] = Field(
        default_factory=TRAINER.usual
    )
    """Where weights are trained: local is this process, tinker the Tinker service, which is sampled from, too."""


class AlgorithmFields(Fields):
    """What is learnt from a batch."""

    panel = "Algorithm"

    algorithm: Annotated[SerializeAsAny[AlgorithmOptions], BeforeValidator(ALGORITHM.read)] = Field(
        default_factory=ALGORITHM.usual
    )
    """grpo, dr-grpo, dapo, gspo, cispo, rloo, reinforce++, gigpo, ppo: policy gradients; rejection: imitation of the
    policy's own best episodes; sft: of stored ones. Each has its own options and defaults, see
    docs/how/algorithms.md."""
    reward: str = "finished"
    """Reward: simple, finished, honest, completion, efficiency, shaped, comprehensive, score, env, judge (a model's
    opinion), or the dotted path of a function."""
    judge_base_url: str | None = None
    """Base URL of the OpenAI-compatible server of the model that reward judge asks; its key is JUDGE_API_KEY."""
    judge_model: str | None = None
    """What that model is called there."""
    judge_screens: PositiveInt = 4
    """Last screens of an episode that it is shown."""
    max_steps_off_policy: NonNegativeInt | None = None
    """Train asynchronously, on groups at most so many steps older than the policy they train; unset or 0: in turn with
    it. See docs/guides/off-policy.md."""
    kl_penalty_coef: NonNegativeFloat = 0.0
    """Weight of the KL divergence from the reference."""
    compute_post_kl: bool = False
    """After each step, measure how far it moved the policy; costs a forward pass over the batch."""


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
    validation_split: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Keep this share of the training tasks, drawn by the seed, to choose a checkpoint by (RUN@best): none of their
    goals is trained on or evaluated. 0 means none."""
    validation_episodes: PositiveInt = 100
    """Episodes of validation tasks, played whenever a checkpoint is saved."""
    save_every: NonNegativeInt = 8
    """Save a checkpoint every so many steps; 0 means at the end only."""
    save_total_limit: PositiveInt | None = None
    """Keep only this many newest checkpoints; unset keeps all."""


class TrackFields(Fields):
    """Where else metrics go."""

    panel = "Trackers"

    track: Trackers = ()
    """Trackers that are told metrics, evaluations and a few pictures, too: wandb, tensorboard, mlflow, trackio."""
    track_project: str = "cuarl"
    """Project, or experiment, of the tracker that the run belongs to."""


# pydantic lays fields out from the last base to the first
class ExperimentConfig(
    TrackFields,
    OutputFields,
    OptimFields,
    AlgorithmFields,
    PlaceFields,
    SamplingFields,
    ModelFields,
    EnvFields,
    TaskFields,
):
    """One experiment, whole. ``train`` reads all of it; ``rollout`` and ``eval`` read what concerns them."""

    panel = "Experiment"

    @model_validator(mode="before")
    @classmethod
    def _moved(cls, data: Any) -> Any:
        """Tell where a key is that stood at the top before."""
        for name in data if isinstance(data, Mapping) else ():
            if name not in cls.model_fields:
                from cuarl.config.keys import moved

                if told := moved(name):
                    raise ValueError(told)
        return data

    @model_validator(mode="after")
    def _rules(self) -> ExperimentConfig:
        problems = rules.problems(self)
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @classmethod
    def optimisation(cls) -> tuple[str, ...]:
        """The fields that say how the weights move."""
        return tuple(OptimFields.model_fields)

    @property
    def learning(self) -> Learning:
        """The options of the algorithm, and what of the others is at rest."""
        return complete(self.algorithm)

    @property
    def model_base_url(self) -> str | None:
        """The server that is sampled from; None where the policy is sampled where it is trained."""
        return self.served.base_url

    @property
    def served(self) -> OpenAIPolicy:
        """The options of a policy behind a server; for another policy their defaults."""
        if isinstance(self.policy, VLLMPolicy):
            return OpenAIPolicy(base_url=self.policy.url, keep_adapters=self.policy.keep_adapters)
        return self.policy if isinstance(self.policy, OpenAIPolicy) else OpenAIPolicy()

    @property
    def server_sleeps(self) -> bool:
        """Whether a server of one's own sleeps while something else has its device."""
        return isinstance(self.policy, VLLMPolicy) and self.policy.sleep

    @property
    def local_policy(self) -> LocalPolicy:
        """The options of a policy in this process; for another policy their defaults."""
        return self.policy if isinstance(self.policy, LocalPolicy) else LocalPolicy()

    @property
    def local_trainer(self) -> LocalTrainer:
        """The options of training in this process; for another trainer their defaults."""
        return self.trainer if isinstance(self.trainer, LocalTrainer) else LocalTrainer()

    @property
    def tinker_trainer(self) -> TinkerTrainer:
        """The options of training at Tinker; for another trainer their defaults."""
        return self.trainer if isinstance(self.trainer, TinkerTrainer) else TinkerTrainer()

    @property
    def resumable_fields(self) -> frozenset[str]:
        """Fields that may differ when a run is resumed: they say how long and how often, not what is learnt."""
        fields = {
            "eval_every",
            "eval_episodes",
            "validation_episodes",
            "save_every",
            "save_total_limit",
            "max_concurrent_rollouts",
            "workers",
            "max_failed_share",
            "track",
            "track_project",
        }
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
    TaskFields, EnvFields, ModelFields, SamplingFields, PlaceFields, AlgorithmFields, OptimFields, OutputFields,
    TrackFields,
)  # fmt: skip
"""The groups, in the order in which help and printed configurations show them."""
