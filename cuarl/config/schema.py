"""Every experiment field, its default and its meaning: the one source of flags, files, help and reference.

The fields are flat (``group_size: 8``), and the classes below only group them into the panels of ``--help``. Names that
the recipes of the field use are kept. Defaults suit the embedded simulator and the shipped base on a laptop; presets
change them as a set. Rules that span several fields are in ``rules.py``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from cuarl.config import rules
from cuarl.config.algorithms import ALGORITHMS
from cuarl.config.kinds import kind_of
from cuarl.types import Record

Share = Annotated[float, Field(ge=0, le=1)]


def _words(value: Any) -> Any:
    """Accept ``a,b`` for a list of words."""
    items = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(item, str) for item in items):
        return value
    return tuple(word.strip() for item in items for word in item.split(",") if word.strip())


def _selectors(value: Any) -> Any:
    """Accept one selector for a list of them, and source objects as objects or as text (kept as canonical JSON)."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"broken JSON: {error}") from error
    if isinstance(value, list | tuple):
        return tuple(selector for item in value for selector in _selectors(item))
    return (json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value,)


def _table(value: Any) -> Any:
    """Accept a mapping for its canonical JSON."""
    return json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Table = Annotated[str, BeforeValidator(_table)]
Selectors = Annotated[tuple[str, ...], BeforeValidator(_selectors)]


class Fields(Record):
    """One panel of experiment fields."""

    model_config = ConfigDict(allow_inf_nan=False)

    panel: ClassVar[str]

    @field_validator("*", mode="before")
    @classmethod
    def _boolean_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and kind_of(cls.model_fields[info.field_name or ""]).base is not bool:
            raise ValueError(f"{str(value).lower()} is neither a number nor text; put text in quotes")
        return value


class TaskFields(Fields):
    """What is practised and what is measured."""

    panel = "Tasks"

    tasks: Selectors = ()
    """Tasks to practise: categories, suites, ids, globs, files, or JSON source objects; unset means every training
    task."""
    eval_tasks: Selectors = ()
    """Tasks to measure on; unset means the evaluation tasks that pass the same filters."""
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

    env: str = "sim"
    """Environment: sim is the simulated device inside the process, linux a real desktop on a display of its own, browser
    web pages in Chromium, adb a phone or an emulator, gbox a cloud box, pods a pod of Kubernetes, gym an execution of a gym server, gymnasium, browsergym
    and openenv environments made elsewhere, and package.module:name one of your own in Python."""
    profile: Literal["small", "phone", "tall"] = "small"
    """Screen of the simulated phone: small is 192x384, phone 360x640, tall 1080x2400 pixels."""
    clutter: Share = 0.1
    """Share of simulated episodes with something in the way, such as a pop-up."""
    linux_screen: Annotated[str, Field(pattern=r"^[1-9]\d{2,3}x[1-9]\d{2,3}$")] = "640x480"
    """Size of a Linux desktop in pixels, as WIDTHxHEIGHT."""
    linux_settle_ms: PositiveFloat = 60.0
    """How long a Linux desktop must be still after an action; twice as long is waited for a first change."""
    linux_displays: PositiveInt = 8
    """Most Linux desktops at the same time on this machine, within max_concurrent_rollouts."""
    browser_actions: Literal["desktop", "phone"] = "desktop"
    """What a policy can do in a browser: mouse and keyboard, or a phone's touches (the shipped base knows these best)."""
    browser_viewport: Annotated[str, Field(pattern=r"^[1-9]\d{2,3}x[1-9]\d{2,3}$")] = "1280x720"
    """Size of a page given by its address, as WIDTHxHEIGHT; pages of MiniWoB++ are 160x210."""
    browser_scale: Annotated[float, Field(ge=1, le=4)] = 1.0
    """Pixels of the screenshot for each pixel of the page."""
    browser_settle: Literal["auto", "frame", "idle", "fixed"] = "auto"
    """When a page is looked at after an action: at once (frame), once it is still (idle), after a fixed time; auto is frame
    for MiniWoB++ and idle elsewhere."""
    browser_settle_ms: PositiveFloat = 100.0
    """The fixed time, or how long a page must be still with idle."""
    browser_reset: Literal["load", "script"] = "load"
    """How an episode on MiniWoB++ begins: its page is loaded in a new context (load), or a kept page starts anew by its own
    script, which is faster but leaves a trace of the last episode on some pages (script)."""
    browser_contexts: PositiveInt = 16
    """Most pages at the same time in a browser, within max_concurrent_rollouts."""
    browser_origins: Words = ()
    """Further origins (http://HOST:PORT) that pages may load from; a task's own origin or folder is always allowed."""
    browser_dialogs: Literal["accept", "dismiss"] = "accept"
    """How confirm and prompt dialogs are answered, which a page's picture does not show."""
    browser_instruction: Literal["keep", "mask"] = "keep"
    """Whether pages of MiniWoB++ show their instruction, or only the prompt tells it."""
    gbox_box_type: Literal["android", "linux"] = "android"
    """Box for tasks whose env is gbox; tasks for a phone get android, those for a desktop linux."""
    gbox_expires_in: Annotated[str, Field(pattern=r"^[1-9]\d*(ms|s|m|h)$")] = "60m"
    """When GBox ends a box by itself, whatever becomes of this process."""
    gbox_start_seconds: PositiveFloat = 120.0
    """How long a box may take to start."""
    gbox_settle_ms: PositiveFloat = 300.0
    """How long a box's screen must be still after an action; twice as long is waited for a first change."""
    gbox_boxes: PositiveInt = 64
    """Most boxes at the same time, within max_concurrent_rollouts; set it to the account's quota."""
    gbox_starting: PositiveInt = 8
    """Most boxes that are being started at the same time, so that a service refuses few of them."""
    coordinate_mode: Literal["direct", "gbox"] = "direct"
    """Who says where to act: direct is the policy itself, gbox a model of GBox, to which the policy describes the target."""
    adb_settle_ms: PositiveFloat = 300.0
    """How long the screen of a device behind adb must be still after an action; twice as long is waited for a first change."""
    adb_reset: Literal["none", "home", "force-stop", "clear", "snapshot"] = "home"
    """How a device behind adb comes back before an episode whose task does not say it: not at all, to its home screen, with
    the task's apps stopped or their data deleted, or as a snapshot of the emulator has it."""
    adb_snapshot: str | None = None
    """Name of that snapshot."""
    adb_rotation: Literal["portrait", "landscape", "free"] = "portrait"
    """How the screen of a device behind adb is held during an episode; free leaves it to the device."""
    adb_reconnect_seconds: NonNegativeFloat = 20.0
    """How long a device that drops off adb is waited for before its episode fails."""
    gym_id: str = "umetrip"
    """Which gym of the gym server."""
    gym_actor: Literal["cuarl", "mini-agent"] = "cuarl"
    """Who acts in a gym's device: cuarl itself, or gbox-mini-agent, whose model cuarl serves and records."""
    gym_action_space: Literal["mobile", "pc"] = "mobile"
    """What the gym's devices are: phones or desktops."""
    gym_train_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.8
    """Share of the gym's tasks that train; the others measure."""
    gym_seed: NonNegativeInt = 42
    """Draws that share."""
    gym_eval_number_range: Annotated[str, Field(pattern=r"^\d+-\d+$")] | None = None
    """Measure on the tasks with these numbers, such as 001-032, and train on the others, instead of by share."""
    gym_tags: Words = ()
    """Keep only the gym's tasks that have one of these tags."""
    gym_creates: PositiveInt = 1
    """Most executions that the gym is asked to start at the same time."""
    gym_executions: PositiveInt = 16
    """Most executions at the same time, within max_concurrent_rollouts."""
    gym_settle_ms: PositiveFloat = 300.0
    """How long a gym's device must be still after an action of cuarl's."""
    gym_agent: Literal["mai-ui", "qwen3-vl"] = "mai-ui"
    """Which agent gbox-mini-agent runs."""
    gym_poll_seconds: PositiveFloat = 1.0
    """How often gbox-mini-agent is asked what its agent has done."""
    gym_listen: Annotated[str, Field(pattern=r"^\S+:\d+$")] = "127.0.0.1:0"
    """Where the model is served to gbox-mini-agent, as HOST:PORT; any other host than this needs CUARL_SERVE_TOKEN."""
    gym_model_url: str | None = None
    """Base URL by which gbox-mini-agent reaches that, if it is another."""
    gym_picture_hosts: Words = ()
    """Hosts that screenshots may be fetched from, where gbox-mini-agent names them by URL."""
    gymnasium_id: str | None = None
    """Gymnasium environment to practise in, such as CartPole-v1, or MODULE:ID to import a module first; unset: tasks name
    theirs."""
    gymnasium_kwargs: Words = ()
    """Arguments of its making, as NAME=VALUE."""
    gymnasium_goal: str | None = None
    """What its agent is told to do."""
    gymnasium_goal_from: str | None = None
    """Where it words the goal itself, such as observation.mission or info.goal."""
    gymnasium_success: Words = ()
    """When an episode is a success, as 'PATH OPERATOR VALUE' over return, reward, steps, terminated, truncated and info.KEY."""
    gymnasium_actions: Table = "auto"
    """What actions are sent as: auto, buttons (with LABELS), grid ROWSxCOLUMNS, point, or a table; see docs/gymnasium.md."""
    gymnasium_picture: str = "auto"
    """What is shown: auto, render, observation, or observation.KEY."""
    gymnasium_scale: Annotated[int, Field(ge=1, le=32)] = 1
    """Pixels shown for each pixel of its picture."""
    gymnasium_repeat: PositiveInt = 1
    """Steps of the environment for each action."""
    gymnasium_device: Literal["phone", "desktop"] = "desktop"
    """What a policy is offered: mouse and keyboard, or a phone's touches."""
    gymnasium_processes: PositiveInt = 4
    """Most Gymnasium environments at the same time, each in a process, within max_concurrent_rollouts."""
    browsergym_tasks: Words = ()
    """Tasks of BrowserGym to practise, such as miniwob.click-test; unset: tasks name theirs."""
    browsergym_kwargs: Words = ()
    """Arguments of their environment, as NAME=VALUE; task.NAME=VALUE for those of the task."""
    browsergym_success: Words = ()
    """When an episode of them is a success, as with gymnasium_success; unset means 'return ge 1'."""
    browsergym_actions: Literal["desktop", "phone"] = "desktop"
    """What a policy is offered in BrowserGym: mouse and keyboard, or a phone's touches."""
    browsergym_processes: PositiveInt = 4
    """Most environments of BrowserGym at the same time, each with browsers of its own, within max_concurrent_rollouts."""
    openenv_url: str | None = None
    """OpenEnv server to practise on, such as http://localhost:8000."""
    openenv_goal: str | None = None
    """What the agent is told to do, where the server has no list of tasks."""
    openenv_goal_from: str | None = None
    """Where the server words the goal, such as observation.goal."""
    openenv_success: Words = ()
    """When an episode is a success, as with gymnasium_success; unset means 'return ge 1', and cuarl's servers judge
    themselves."""
    openenv_reset: Words = ()
    """Further arguments of a reset, as NAME=VALUE."""
    openenv_actions: Table = "auto"
    """What actions are sent as: auto, by the server's schema, or a table; see docs/openenv.md."""
    openenv_picture: str = "auto"
    """Where the picture is in an observation, such as screenshot; auto looks for it."""
    openenv_device: Literal["phone", "desktop"] = "desktop"
    """What a policy is offered, where the server does not tell: mouse and keyboard, or a phone's touches."""
    openenv_sessions: PositiveInt = 1
    """Most sessions at the same time; many servers allow one."""
    pods_manifest: str | None = None
    """File with the manifest of a session's pod; unset means the shipped one."""
    pods_image: str = "cuarl-session"
    """Image that the manifest names as ${image}."""
    pods_session_type: str = "linux"
    """What the manifest names as ${session_type} for tasks whose env is pods; others name their device: phone, desktop,
    linux."""
    pods_namespace: str | None = None
    """Namespace of the pods; unset means the one of the kubeconfig's context."""
    pods_at_once: PositiveInt = 64
    """Most pods at the same time, within max_concurrent_rollouts; set it to what the cluster has room for."""
    pods_starting: PositiveInt = 8
    """Most pods that are being started at the same time."""
    pods_start_seconds: PositiveFloat = 300.0
    """How long a pod may take until its session answers."""
    pods_expires_seconds: PositiveInt = 3600
    """When Kubernetes ends a pod by itself, whatever becomes of this process."""
    pods_settle_ms: PositiveFloat = 300.0
    """How long a session's screen must be still after an action; twice as long is waited for a first change."""
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
    """When to measure and to save."""

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
