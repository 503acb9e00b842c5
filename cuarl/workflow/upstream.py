"""What ``cuarl serve`` can serve: a policy in this process, one behind another endpoint, or one that Tinker keeps."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError
from cuarl.run.atomic import write_text
from cuarl.workflow import players
from cuarl.workflow.targets import SCHEME, TINKER_BASE, Target
from cuarl.workflow.watcher import SILENT, Note

if TYPE_CHECKING:
    from cuarl.run import Run
    from cuarl.serve.models import Served
    from cuarl.settings import Settings

WEIGHTS = "adapters.json"
"""In a run's folder: which weights each policy version had, where it is not what the run started with."""


async def _exact() -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class Upstream:
    """What answers. ``load`` is None where adapters can't be put in."""

    served: Served
    start: Callable[[], Awaitable[list[str]]] = _exact
    """To be awaited before the first request; gives what training needs and it does not give, in words."""
    load: Callable[[str, Path, Served | None], Awaitable[Served]] | None = None
    find: Callable[[str], Awaitable[Served | None]] | None = None
    """The policy that a client asks for by a name that none has yet; None where there is no such."""


@contextmanager
def upstream(
    target: Target,
    config: ExperimentConfig,
    settings: Settings,
    run: Run,
    served_name: str | None,
    note: Note = SILENT.note,
) -> Iterator[Upstream]:
    """The policy that ``target`` means, released at the end. Raises CuarlError for one that can't be had."""
    if target.kind == "endpoint":
        yield _endpoint(target, config, settings, served_name, note)
    elif target.kind == "tinker":
        with _tinker(target, config, settings, run, served_name) as found:
            yield found
    else:
        policy = players.load_model(config, model=target.model, adapter=target.adapter)
        policy.updated(target.step)
        yield Upstream(_in_process(policy, served_name or policy.name), load=_Loader(config, run, target.step).load)


def check(target: Target, *, named: bool, adapters: bool) -> None:
    """Raise ConfigError for a target that can't be served so. ``named``: whether ``model_name`` was given."""
    if target.kind == "scripted":
        raise ConfigError(f"{target.name} can't be served", hint="cuarl serve base, a run, or the URL of an endpoint")
    if target.kind == "policy":
        return
    if not named and target.run is None:
        raise ConfigError(
            "a policy that is elsewhere needs the name of its model", where=target.name, hint="--model-name NAME"
        )
    if adapters:
        raise ConfigError(
            "adapters can be put into a policy in this process only", where="--adapters", hint="leave --adapters out"
        )


def _in_process(policy: Any, name: str, *, parent: str | None = None, path: str = "") -> Served:
    from cuarl.policy.sampling.local import LocalSampler
    from cuarl.serve.models import Served

    return Served(name, LocalSampler(policy), policy.decode, parent, path)


def _endpoint(
    target: Target, config: ExperimentConfig, settings: Settings, served_name: str | None, note: Note
) -> Upstream:
    from cuarl.serve.models import Served
    from cuarl.workflow import endpoint

    sampler, renderer, start = endpoint.endpoint(config, target.name, settings, note)
    name = served_name or config.served.served_model_name or config.model_name
    return Upstream(Served(name, sampler, renderer.decode if renderer else None, path=target.name), start)


@contextmanager
def _tinker(
    target: Target, config: ExperimentConfig, settings: Settings, run: Run, served_name: str | None
) -> Iterator[Upstream]:
    from cuarl.policy.load import load_renderer
    from cuarl.policy.spec import ModelSpec
    from cuarl.workflow.tinker import service

    renderer = load_renderer(ModelSpec(model=config.model_name, trust_remote_code=config.trust_remote_code))
    key = settings.require("tinker_api_key")
    with service(key, settings.tinker_base_url) as connected:
        there = _AtTinker(connected, renderer, config.model_name, run)
        trained = target.name if target.name != TINKER_BASE else ""
        # weights that were trained there have another version than the base, even where their step is not known
        served = there.served(served_name or there.name, trained, version=max(target.step, 1) if trained else 0)
        yield Upstream(served, find=there.find)


@dataclass(slots=True)
class _AtTinker:
    """Policies of one base model that Tinker keeps: the base, and trained weights by their paths."""

    service: Any
    renderer: Any
    model: str
    run: Run
    _paths: dict[str, str] = field(default_factory=dict)
    """Of the trained ones, by their versions."""

    @property
    def name(self) -> str:
        """What the policy is called in records, whatever its weights."""
        return Path(self.model).name

    def served(self, name: str, path: str, *, version: int) -> Served:
        """The weights in ``path``; empty means the base. Raises PrerequisiteError if the service has none there."""
        from cuarl.errors import PrerequisiteError
        from cuarl.policy.remote.tinker import TinkerSampler, mapped
        from cuarl.serve.models import Served

        with mapped(PrerequisiteError, f"sampling from {path or self.model}"):
            wanted = {"model_path": path} if path else {"base_model": self.model}
            client = self.service.create_sampling_client(**wanted).result()
        if path:
            self._paths[str(version)] = path
            _note_weights(self.run, self._paths)
        sampler = TinkerSampler(client, self.renderer, name=self.name, version=version)
        return Served(name, sampler, self.renderer.decode, path=path)

    async def find(self, name: str) -> Served | None:
        """The weights whose path is the model's name, as Tinker's own endpoint takes it."""
        if not name.startswith(SCHEME):
            return None
        known = {path: int(version) for version, path in self._paths.items()}
        version = known.get(name, max(known.values(), default=0) + 1)
        return await anyio.to_thread.run_sync(partial(self.served, name, name, version=version))


class _Loader:
    """Puts adapters in: the first as a policy of its own beside the base, later ones into its weights."""

    def __init__(self, config: ExperimentConfig, run: Run, version: int) -> None:
        self._config, self._run, self._version = config, run, version
        self._paths: dict[str, str] = {}

    async def load(self, name: str, folder: Path, old: Served | None) -> Served:
        """A ``Models`` loader. Raises CuarlError if the adapter does not fit."""
        from cuarl.policy.adapters.hotswap import swap_adapter

        previous = getattr(old.sampler, "policy", None) if old else None
        load = partial(players.load_model, self._config, adapter=str(folder))
        policy = await anyio.to_thread.run_sync(swap_adapter, previous, folder, load)
        self._version += 1
        policy.updated(self._version)
        self._paths[str(self._version)] = str(folder)
        _note_weights(self._run, self._paths)
        if policy is previous and old is not None:
            return replace(old, name=name, path=str(folder))
        return _in_process(policy, name, parent=self._config.model_name, path=str(folder))


def _note_weights(run: Run, paths: dict[str, str]) -> None:
    write_text(run.path / WEIGHTS, json.dumps(paths, indent=2) + "\n")
