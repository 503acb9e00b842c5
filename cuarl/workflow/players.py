"""Who acts in the episodes of a command: a scripted agent, a policy in this process, or one behind an endpoint."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from anyio import CancelScope

from cuarl.agent import formats
from cuarl.agent.base import Agent
from cuarl.agent.formats import Format
from cuarl.agent.formats.described.format import Described
from cuarl.agent.guided import GuidedAgent, LedAgent
from cuarl.agent.model import ModelAgent
from cuarl.agent.pointing import Pointer
from cuarl.agent.prompt import Window
from cuarl.agent.relay import Followed
from cuarl.agent.scripted import DemonstratingAgent, DoNothingAgent, OracleAgent, RandomAgent
from cuarl.agent.wording import Resize, Wording, Write
from cuarl.config.schema import ExperimentConfig
from cuarl.env.base import AimedEnv, Env
from cuarl.errors import ConfigError
from cuarl.policy.sampler import Message, PromptTooLong, Sampler, SamplingParams
from cuarl.policy.spec import ModelSpec
from cuarl.rollout.setup import MakeAgent
from cuarl.rollout.spec import EpisodeSpec, Guidance
from cuarl.suggest import did_you_mean, nearest
from cuarl.trajectory import Sampled, Trajectory
from cuarl.workflow import signals

if TYPE_CHECKING:
    from cuarl.policy.base import Policy
    from cuarl.policy.prompt import Renderer
    from cuarl.policy.transformers_policy import TransformersPolicy

SCRIPTED: dict[str, Callable[[Env], Agent]] = {
    "oracle": OracleAgent,
    "random": lambda env: RandomAgent(env.capabilities.actions),
    "nothing": lambda env: DoNothingAgent(),
}
AGENTS = ("policy", "demonstration", "human", *SCRIPTED)


async def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Player:
    """How an agent is made for each episode, and what has to happen before the first and after the last."""

    name: str
    make_agent: MakeAgent
    join: Callable[[], AbstractContextManager[object]] = nullcontext
    begin: Callable[[], None] = lambda: None
    """Called before each collection."""
    start: Callable[[], Awaitable[object]] = _nothing
    close: Callable[[], Awaitable[None]] = _nothing
    around: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    """Entered for as long as it plays."""
    attended: bool = False
    """Whether a person is waited for, who plays one episode after the other and takes any time."""
    clock: Callable[[], float] = time.monotonic
    pausable: Callable[[CancelScope], AbstractContextManager[object]] = nullcontext
    """Of one who is attended: a clock that stands still while the person is waited for, and what puts deadlines off."""
    told: Callable[[Trajectory], None] | None = None
    """Is told each episode that is over."""


@dataclass(frozen=True, slots=True)
class ScriptedAgents:
    """Makes agents of ``SCRIPTED``."""

    name: str

    def __call__(self, spec: EpisodeSpec, env: Env) -> Agent:
        """The agent of one episode."""
        return SCRIPTED[self.name](env)


def scripted(name: str) -> Player:
    """One of ``SCRIPTED``."""
    return Player(name, ScriptedAgents(name))


def check_agent(name: str) -> None:
    """Raise ConfigError for an agent that does not exist."""
    if name not in AGENTS:
        near = nearest(name, AGENTS) or AGENTS[0]
        what = f'there is no agent "{name}"{did_you_mean(name, AGENTS)}'
        raise ConfigError(what, where="--agent", hint=f"--agent {near}")


def model_spec(config: ExperimentConfig, *, model: str | None = None, adapter: str | None = None) -> ModelSpec:
    """The policy that ``config`` names, or another base or adapter, to sample from."""
    return ModelSpec(
        model=model or config.model_name,
        adapter=adapter,
        dtype=config.dtype,
        quantization=config.quantization,
        device=config.device,
        trust_remote_code=config.trust_remote_code,
    )


def load_model(config: ExperimentConfig, *, model: str | None = None, adapter: str | None = None) -> TransformersPolicy:
    """Load the policy that ``config`` names, or another base or adapter, to sample from."""
    from cuarl.policy.load import load_policy

    return load_policy(model_spec(config, model=model, adapter=adapter))


def in_process(config: ExperimentConfig, policy: Policy, *, temperature: float, strict: bool, name: str = "") -> Player:
    """``policy``, batched over the episodes. ``strict`` reads its answers as in training."""
    from cuarl.policy.sampling.local import LocalSampler

    sampler, policy.halted = LocalSampler(policy), signals.cutting
    make = model_agents(config, sampler, config.model_name, temperature=temperature, strict=strict)
    return Player(name or policy.name, make, join=sampler.join, begin=policy.forget_prompts)


def demonstrations(config: ExperimentConfig, policy: TransformersPolicy) -> Player:
    """The oracle, its actions said in the words of ``policy``, for supervised training.

    Raises ConfigError where targets are described: an oracle knows points only.
    """
    check_points(config)
    return Player("demonstration", DemonstratingAgents(config, policy))


def check_points(config: ExperimentConfig) -> None:
    """Raise ConfigError where a policy describes what it acts on: who demonstrates points."""
    if config.env.describes:
        raise ConfigError(
            "a demonstration points at what it acts on, and can't describe it",
            where="--coordinate-mode gbox",
            hint="--coordinate-mode direct",
        )


@dataclass(slots=True)
class DemonstratingAgents:
    """Makes oracles that speak in the words of ``policy``; None has it loaded when it is first needed."""

    config: ExperimentConfig
    policy: TransformersPolicy | None

    def __call__(self, spec: EpisodeSpec, env: Env) -> Agent:
        """The agent of one episode."""
        self.policy = policy = self.policy or load_model(self.config)
        around = env.around if isinstance(env, AimedEnv) else None
        return DemonstratingAgent(OracleAgent(env), wording(self.config, policy, env), around=around)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAgents:
    """Makes agents that ask ``sampler``, in the format of ``model``."""

    config: ExperimentConfig
    sampler: Sampler
    model: str
    temperature: float
    strict: bool

    def __call__(self, spec: EpisodeSpec, env: Env) -> Agent:
        """The agent of one episode."""
        config = self.config
        params = SamplingParams(
            temperature=self.temperature, top_p=config.top_p, top_k=config.top_k, max_tokens=config.max_tokens
        )
        if isinstance(env, Followed):
            return env.follow(self.sampler, params, spec.sampling_seed)
        format = _format(config, self.model, env)
        agent = ModelAgent(
            self.sampler,
            format,
            params=params,
            window=_window(config, format),
            strict=self.strict,
            pointer=env if config.env.describes and isinstance(env, Pointer) else None,
            group=spec.group_id,
        )
        return agent if spec.guidance is None else guided(config, agent, spec.guidance, env)


def guided(config: ExperimentConfig, policy: ModelAgent, guidance: Guidance, env: Env) -> Agent:
    """``policy`` with an oracle beside it, which speaks in its words. Raises AgentError where nothing is known."""
    around = env.around if isinstance(env, AimedEnv) else None
    spoken = _wording(config, env, partial(written, _renderer(config)), _renderer(config).seen_size)
    oracle = DemonstratingAgent(OracleAgent(env), spoken, around=around)
    if guidance.first is not None:
        return LedAgent(policy, oracle, turns=guidance.first)
    return GuidedAgent(policy, oracle, share=guidance.share)


def _renderer(config: ExperimentConfig) -> Renderer:
    """What prompts of the model look like; its weights are not needed, which workers don't have."""
    return _loaded_renderer(config.model_name, config.trust_remote_code)


@lru_cache(maxsize=2)
def _loaded_renderer(model: str, trust_remote_code: bool) -> Renderer:
    from cuarl.policy.load import load_renderer

    return load_renderer(ModelSpec(model=model, trust_remote_code=trust_remote_code))


def written(
    renderer: Renderer, messages: Sequence[Message], text: str, max_tokens: int | None
) -> Sampled | PromptTooLong:
    """A record of a given answer as ``TransformersPolicy.written`` makes it, of no policy."""
    prompt = renderer.render(messages, max_tokens=max_tokens)
    if isinstance(prompt, PromptTooLong):
        return prompt
    images = tuple(shot.ref for shot in prompt.screenshots)
    return Sampled(prompt_ids=prompt.ids, images=images, token_ids=renderer.encode_answer(text), text=text)


def wording(config: ExperimentConfig, policy: TransformersPolicy, env: Env) -> Wording:
    """The words of ``policy`` for what is done in one episode of ``env``."""
    return _wording(config, env, policy.written, policy.seen_size)


def _wording(config: ExperimentConfig, env: Env, write: Write, resize: Resize) -> Wording:
    from cuarl.policy.tiny import GRID, is_own

    format = _format(config, config.model_name, env)
    return Wording(
        format,
        write,
        window=_window(config, format),
        resize=resize,
        # our own bases were taught to name points in these steps, and learn little from others
        step=GRID if is_own(config.model_name) else None,
    )


def model_agents(
    config: ExperimentConfig, sampler: Sampler, model: str, *, temperature: float, strict: bool
) -> ModelAgents:
    """Agents that ask ``sampler``, in the format of ``model``."""
    return ModelAgents(config=config, sampler=sampler, model=model, temperature=temperature, strict=strict)


def _window(config: ExperimentConfig, format: Format) -> Window:
    return format.window.but(
        history_images=config.history_images,
        history_turns=config.history_turns,
        history_older=config.history_older,
        max_prompt_tokens=config.max_prompt_tokens,
    )


def _format(config: ExperimentConfig, model: str, env: Env) -> Format:
    kind: Any = env.capabilities.kind
    if config.env.describes:
        return Described(kind)
    name = config.renderer_name if config.renderer_name != "auto" else formats.for_model(model)
    return formats.get(name, kind)
