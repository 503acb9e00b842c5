"""Policies behind an OpenAI-compatible server: found, checked, played, and kept in step while training."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from cuarl.config.places import VLLMPolicy
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError, CuarlError, PrerequisiteError, SamplerError
from cuarl.policy.remote import adapters
from cuarl.policy.remote.fleet import Fleet
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.policy.remote.probe import check_draws, probe
from cuarl.policy.remote.wire import EndpointFeatures
from cuarl.workflow import players, signals
from cuarl.workflow.players import Player
from cuarl.workflow.source import Source
from cuarl.workflow.watcher import SILENT, Note

if TYPE_CHECKING:
    from cuarl.policy.prompt import Renderer
    from cuarl.policy.sampling.rescore import RescoringSampler
    from cuarl.policy.spec import ModelSpec
    from cuarl.settings import Settings
    from cuarl.train.learner import Learner

_FORGET_S = 20.0
"""How long a server may take to forget an adapter at the end of a run."""


def player(
    config: ExperimentConfig,
    url: str,
    settings: Settings,
    *,
    temperature: float,
    strict: bool,
    note: Note = SILENT.note,
) -> Player:
    """A policy behind a server, to be rolled out or evaluated.

    Prompts are checked against our own rendering where the
    model's tokenizer is here; ``rescore`` loads the model itself, too.
    """
    sampler: Any = _sampler(config, url, settings, *_renderer(config, note))
    join: Callable[[], AbstractContextManager[object]] = nullcontext
    start: Callable[[], Awaitable[object]] = partial(_begin_and_say, sampler, config, temperature, note)
    if config.served.rescore:
        from cuarl.policy.sampling.rescore import RescoringSampler

        sampler = RescoringSampler(sampler, players.load_model(config))
        join = sampler.join
    make = players.model_agents(config, sampler, config.model_name, temperature=temperature, strict=strict)
    return Player(sampler.capabilities.name, make, join=join, start=start, close=sampler.close)


def endpoint(
    config: ExperimentConfig, url: str, settings: Settings, note: Note = SILENT.note
) -> tuple[Asked, Renderer | None, Callable[[], Awaitable[list[str]]]]:
    """A policy behind a server as a plain sampler, with our own rendering if it can be had, and what to await first.

    The latter gives what the server lacks for training.
    """
    renderer, placeholders = _renderer(config, note)
    sampler = _sampler(config, url, settings, renderer, placeholders)

    async def begin() -> list[str]:
        return missing(await _begin_tested(sampler, config, note), config.temperature)

    return sampler, renderer, begin


def missing(features: EndpointFeatures, temperature: float) -> list[str]:
    """What a server lacks for training, in words."""
    found = [] if features.token_ids else ["token ids (return_token_ids)"]
    if not features.logprobs:
        found.append("log-probabilities")
    elif features.wrong_draws:
        found.append(
            f"samples of the distribution that it tells: {features.wrong_draws} (vLLM: --generation-config vllm)"
        )
    elif not features.scaled_logprobs and temperature != 1.0:
        found.append(f"log-probabilities at temperature {temperature:g} (vLLM: --logprobs-mode processed_logprobs)")
    return found


def check_there(config: ExperimentConfig, url: str, settings: Settings) -> None:
    """See that a server answers. Raises PrerequisiteError, and ConfigError for one that only training starts."""
    if isinstance(config.policy, VLLMPolicy):
        raise ConfigError(
            "policy vllm is started by cuarl train, and by nothing else",
            where="--policy vllm",
            hint="start vllm serve, and name it: --model-base-url http://localhost:8000/v1",
        )

    async def ask() -> None:
        sampler = _sampler(config, url, settings)
        try:
            await sampler.models()
        finally:
            await sampler.close()

    signals.run(ask)


def check(config: ExperimentConfig, settings: Settings, spec: ModelSpec, note: Note = SILENT.note) -> None:
    """``checked``, for who has no event loop."""
    signals.run(partial(checked, config, settings, spec, note))


async def checked(config: ExperimentConfig, settings: Settings, spec: ModelSpec, note: Note = SILENT.note) -> None:
    """See that the server is there, gives what training needs, and takes adapters like that of ``spec``.

    Raises ConfigError by name for what it does not give, unless ``rescore`` is set, and PrerequisiteError for an
    adapter that it refuses: before a step is collected for nothing.
    """
    url = config.model_base_url or ""
    sampler = _sampler(config, url, settings)
    try:
        features = await _begin_tested(sampler, config, note)
        await _try_adapter(sampler, spec, settings.runs_dir)
    finally:
        await sampler.close()
    lacking = missing(features, config.temperature)
    if lacking and not config.served.rescore:
        raise ConfigError(
            f"the endpoint does not give {' and '.join(lacking)}, so what it sampled can't be trained on exactly",
            where=url,
            hint="--rescore recomputes it here, approximately; or serve with what is named above, or with cuarl serve",
        )
    if lacking:
        note(f"the endpoint does not give {' and '.join(lacking)}: recomputed here (--rescore)")


def trained(
    config: ExperimentConfig, settings: Settings, learner: Learner, folder: Path, note: Note = SILENT.note
) -> Trained:
    """The server's side of a training run, kept in step with ``learner``; adapters are handed over in ``folder``."""
    policy = learner.policy
    sampler = _sampler(config, config.model_base_url or "", settings, policy, _placeholders(policy))
    if not config.served.rescore:
        return Trained(config, learner, sampler, folder, note, everybody=not config.max_steps_off_policy)
    from cuarl.policy.sampling.rescore import RescoringSampler

    return Trained(config, learner, sampler, folder, note, RescoringSampler(sampler, policy))


@dataclass(slots=True)
class Trained:
    """A server that samples from the policy that is trained here."""

    config: ExperimentConfig
    learner: Learner
    endpoint: Asked
    folder: Path
    note: Note = SILENT.note
    rescoring: RescoringSampler | None = None
    everybody: bool = True
    """Whether all processes that train sample from it, or the main one alone."""
    _ready: bool = False
    _version: int | None = None
    """Which weights it has; None before the first."""
    _loaded: Path | None = field(default=None)
    _asleep: bool = False

    def source(self) -> Source:
        """What training samples from: the server, brought up to date before each step."""
        sampler: Any = self.rescoring or self.endpoint
        join = self.rescoring.join if self.rescoring else nullcontext
        config = self.config
        make = players.model_agents(config, sampler, config.model_name, temperature=config.temperature, strict=True)
        player = Player(self.endpoint.name, make, join=join, close=sampler.close)
        if self.rescoring is None:
            return Source(player, self.refresh, self._rest)
        from cuarl.policy.sampling.rescore import accept

        return Source(player, self.refresh, self._rest, accept)

    def evaluating(self) -> Player:
        """Who is evaluated between the steps of one process: the policy as it is then, sampled by the server.

        So its weights are in this process's memory once. Of several processes only the main one evaluates, and handing
        over takes all of them.
        """
        config = self.config
        make = players.model_agents(
            config, self.endpoint, config.model_name, temperature=config.eval_temperature, strict=True
        )

        async def start() -> None:
            await self.refresh(self.learner.policy.version)

        return Player(self.endpoint.name, make, start=start, close=self._rest)

    async def refresh(self, version: int) -> None:
        """Have the server sample from the learner's weights. Raises SamplerError if it can't load them."""
        if not self._ready:
            await _begin(self.endpoint, self.config)
            await self._forget_earlier()
            self._ready = True
        if version == self._version:
            await self._wake()
            return
        self._version = version
        fresh = version == 0 and self.config.load_checkpoint_path is None
        await self._wake()
        self.endpoint.version = version
        if fresh:  # a new adapter changes nothing: the server's base is the policy
            return
        from cuarl.policy.handover import publish

        path = (self.folder / f"step-{version:06d}").resolve()
        accelerator = self.learner.accelerator
        if accelerator.is_main_process:
            await anyio.to_thread.run_sync(publish, self.learner.policy.model, path)
        self._wait_for_everyone()
        name = f"{self._prefix}{path.name}"
        if accelerator.is_main_process:
            await self.endpoint.load_adapter(name, str(path))
        self._wait_for_everyone()
        self.endpoint.use(name)
        if self._loaded is not None and accelerator.is_main_process and not self.config.served.keep_adapters:
            shutil.rmtree(self._loaded, ignore_errors=True)
        self._loaded = path

    def _wait_for_everyone(self) -> None:
        if self.everybody:
            self.learner.accelerator.wait_for_everyone()

    async def _rest(self) -> None:
        """Nobody asks for a while: connections are closed, and one that may sleeps."""
        if self.config.server_sleeps and self.learner.accelerator.is_main_process and not self._asleep:
            for one in members(self.endpoint):
                await one.endpoint.control("sleep?level=1")
            self._asleep = True
        await self.endpoint.close()

    async def _wake(self) -> None:
        if self._asleep:
            for one in members(self.endpoint):
                await one.endpoint.control("wake_up")
            self._asleep = False

    async def told(self) -> Mapping[str, float]:
        """Metrics of a step: what each server did, where there are several. A ``train.loop.Settled``."""
        return self.endpoint.told() if isinstance(self.endpoint, Fleet) else {}

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Inside, the server is used; afterwards, whatever happened, it forgets the run's adapter."""
        try:
            yield
        finally:
            with anyio.move_on_after(_FORGET_S, shield=True):
                await self._release()

    async def _release(self) -> None:
        # one that sleeps is our own, and ends now
        if not self.learner.accelerator.is_main_process or self._asleep:
            return
        try:
            await self.endpoint.release_adapter()
        except SamplerError as error:  # a server that is gone has nothing to forget
            self.note(f"the server keeps the run's last adapter: {error.what}")
        finally:
            await self.endpoint.close()

    async def _forget_earlier(self) -> None:
        """Have the server forget adapters that this run has loaded before it was killed."""
        if not self.learner.accelerator.is_main_process:
            return
        for one in await self.endpoint.models():
            if one.parent is not None and one.id.startswith(f"{self._prefix}step-"):
                await self.endpoint.unload_adapter(one.id)

    @property
    def _prefix(self) -> str:
        return f"{self.folder.parent.name}-"


# --- parts ---------------------------------------------------------------------------------------------------------


Asked = OpenAISampler | Fleet
"""One server, or several."""


def members(sampler: Asked) -> list[OpenAISampler]:
    """The servers, each by itself."""
    return sampler.members if isinstance(sampler, Fleet) else [sampler]


def _sampler(
    config: ExperimentConfig, url: str, settings: Settings, renderer: Any = None, placeholders: tuple[int, ...] = ()
) -> Asked:
    """What asks the server at ``url``, or those at several with commas between."""
    key = settings.openai_api_key
    found = [
        OpenAISampler(
            one.strip(),
            config.served.served_model_name or config.model_name,
            api_key=key.get_secret_value() if key else None,
            name=Path(config.model_name).name,
            renderer=renderer,
            placeholders=placeholders,
            max_connections=config.max_concurrent_rollouts,
        )
        for one in url.split(",")
    ]
    return found[0] if len(found) == 1 else Fleet(found)


async def _begin(sampler: Asked, config: ExperimentConfig) -> EndpointFeatures:
    """Find the model's name there, unless it was given, and probe; on each server, where there are several.

    Adapters that stand beside the model, left by an earlier run for one, are none of ours.
    """
    for one in members(sampler):
        if config.served.served_model_name is None:
            names = [model.id for model in await one.models() if model.parent is None]
            if len(names) == 1:
                one.use(names[0])
        await probe(one)
    return sampler.features


async def _try_adapter(sampler: Asked, spec: ModelSpec, runs_dir: Path) -> None:
    """Have the server load an adapter like the one that will be trained, and forget it. Raises PrerequisiteError."""
    from cuarl.policy.handover import trial_adapter

    name = f"cuarl-trial-{secrets.token_hex(4)}"
    with trial_adapter(spec, runs_dir) as folder:
        try:
            for one in members(sampler):
                await adapters.load(one.endpoint, name, str(folder))
                await adapters.unload(one.endpoint, name)
        except SamplerError as error:
            raise PrerequisiteError(error.what, where=error.where, hint=error.hint) from error


async def _begin_tested(sampler: Asked, config: ExperimentConfig, note: Note) -> EndpointFeatures:
    """The same, and see whether it samples from what it tells; said is how much that could show."""
    await _begin(sampler, config)
    every = members(sampler)
    for one in every:
        if one.features.logprobs:
            where = f"{one.endpoint.shown}: " if len(every) > 1 else ""
            note(where + (await check_draws(one)).words)
    return sampler.features


async def _begin_and_say(sampler: OpenAISampler, config: ExperimentConfig, temperature: float, note: Note) -> None:
    lacking = missing(await _begin_tested(sampler, config, note), temperature)
    if lacking and not config.served.rescore:
        note(
            f"the endpoint does not give {' and '.join(lacking)}: these episodes can be evaluated, but not trained "
            "on exactly"
        )


def _renderer(config: ExperimentConfig, note: Note) -> tuple[Any, tuple[int, ...]]:
    """Our own rendering, where the model's tokenizer can be read and is of a family that we know."""
    from cuarl.policy.load import load_renderer
    from cuarl.policy.spec import ModelSpec

    try:
        renderer = load_renderer(ModelSpec(model=config.model_name, trust_remote_code=config.trust_remote_code))
    except CuarlError as error:
        note(f"prompts are not checked against our own rendering: {error.what}")
        return None, ()
    return renderer, _placeholders(renderer)


def _placeholders(policy: Renderer) -> tuple[int, ...]:
    return policy.special.suppressed
