"""``cuarl serve``: a policy as an OpenAI-compatible endpoint that records what it samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.to_thread
import typer

from cuarl.cli import episodes as parts
from cuarl.cli import players
from cuarl.cli.experiment import Experiment
from cuarl.cli.options import experiment_options
from cuarl.cli.output import closing, note, print_json, print_table
from cuarl.cli.targets import Target, resolve_target
from cuarl.config.schema import ExperimentConfig, ModelFields, SamplingFields
from cuarl.errors import ConfigError
from cuarl.policy.sampler import SamplingParams
from cuarl.serve.listen import bind, listening, require_web
from cuarl.trajectory import Trajectory
from cuarl.types import Screenshot

if TYPE_CHECKING:
    from cuarl.run import Run
    from cuarl.serve.app import Service
    from cuarl.serve.models import Served
    from cuarl.store import Store

app = typer.Typer()

ADAPTERS = "adapters.json"
"""In a run's folder: which adapter each policy version was, for ``rollout verify``."""


@app.command(
    epilog="""\b
Examples:
  cuarl serve
  cuarl serve my-run --port 8000 --name recorded
  cuarl serve base --adapters runs --fixed-sampling --temperature 1
  OPENAI_BASE_URL=http://127.0.0.1:8000/sessions/first/v1 your-agent"""
)
@experiment_options(
    parts.only(ModelFields, "model_name", "dtype", "device"),
    parts.only(SamplingFields, "temperature", "top_p", "top_k", "max_tokens"),
)
def serve(
    experiment: Experiment,
    target: Annotated[
        str,
        typer.Argument(
            help="What answers: base, a run (RUN@STEP for another checkpoint than the last), or a checkpoint's folder."
        ),
    ] = "base",
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs CUARL_SERVE_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    served_name: Annotated[
        str | None, typer.Option(help="What clients call the model; else the policy's name.")
    ] = None,
    fixed_sampling: Annotated[
        bool, typer.Option("--fixed-sampling", help="Sample as these options say, whatever clients ask for.")
    ] = False,
    allow_image_host: Annotated[
        list[str] | None, typer.Option(help="Host that pictures may be fetched from by URL; repeatable.")
    ] = None,
    adapters: Annotated[
        Path | None, typer.Option(help="Folder that adapters may be loaded from while serving; unset means none.")
    ] = None,
    idle: Annotated[float, typer.Option(min=1, help="Seconds after which an idle session is over, unscored.")] = 3600.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    name: Annotated[str | None, typer.Option(help="Name of the run; else one is made up.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Delete the run of that name first.")] = False,
) -> None:
    """Serve a policy to any agent that speaks OpenAI's protocols, and record its turns token by token.

    A session's turns become one episode of the store; its id stands in the URL (/sessions/ID/v1) or in the header
    X-Cuarl-Session. Ends with Ctrl-C.
    """
    require_web()
    found = resolve_target(target, experiment.settings())
    if found.kind != "policy":
        raise ConfigError(f"{found.name} can't be served", hint="cuarl serve base, or a run")
    if adapters is not None and not adapters.is_dir():
        raise ConfigError("there is no such folder of adapters", where=str(adapters), hint=f"mkdir {adapters}")
    options = _Options(
        host=host, port=port, served_name=served_name, fixed=fixed_sampling, hosts=tuple(allow_image_host or ()),
        adapters=adapters, idle_s=idle, seed=seed,
    )  # fmt: skip
    experiment = replace(experiment, name=name, overwrite=overwrite, resolved=_resolved(experiment, found))
    if experiment.dry_run:
        _print_plan(experiment, found, options)
        return
    _serve(experiment, found, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    host: str
    port: int
    served_name: str | None
    fixed: bool
    hosts: tuple[str, ...]
    adapters: Path | None
    idle_s: float
    seed: int


def _resolved(experiment: Experiment, target: Target) -> Any:
    """The configuration with the checkpoint in it, so that the record says what was served."""
    changes: dict[str, Any] = {"load_checkpoint_path": target.adapter or target.model}
    if target.model and target.adapter:
        changes["model_name"] = target.model
    config = experiment.config.model_copy(update=changes) if target.name != "base" else experiment.config
    return replace(experiment.resolved, config=config)


def _serve(experiment: Experiment, target: Target, options: _Options) -> None:
    settings, config = experiment.settings(), experiment.config
    token = settings.serve_token.get_secret_value() if settings.serve_token else None
    sock = bind(options.host, options.port, token)
    with parts.open_store(settings) as store, experiment.open_run("serve") as run:
        policy = players.load_model(config, model=target.model, adapter=target.adapter)
        policy.updated(target.step)
        with _recorded(store, run, config) as counts:
            loader = _Loader(config, run, target.step)
            service = _service(policy, options, token, run, counts.save(store), loader)
            anyio.run(partial(_until_stopped, service, sock, experiment.json, run))
        run.count({"episodes": len(counts.episodes), "turns": service.sessions.recorded})
    closing(
        f"recorded {service.sessions.recorded} turns of {len(counts.episodes)} sessions", where=run.path,
        then=f"cuarl rollout verify {run.name}",
    )  # fmt: skip


def _service(policy: Any, options: _Options, token: str | None, run: Run, save: Any, loader: _Loader) -> Service:
    from cuarl.serve.app import Service, is_loopback
    from cuarl.serve.asks import Defaults
    from cuarl.serve.models import Models
    from cuarl.serve.pictures import Pictures
    from cuarl.serve.sessions import Sessions

    base = _in_process(policy, options.served_name or policy.name)
    config = loader.config
    params = SamplingParams(
        temperature=config.temperature, top_p=config.top_p, top_k=config.top_k, max_tokens=config.max_tokens
    )
    return Service(
        Models(base, adapters=options.adapters, load=loader.load),
        Sessions(save, run_id=run.run_id, prefix=run.run_id, idle_s=options.idle_s),
        Pictures(options.hosts), Defaults(params, fixed=options.fixed), token, is_loopback(options.host), options.seed,
    )  # fmt: skip


async def _until_stopped(service: Service, sock: Any, as_json: bool, run: Run) -> None:
    async with listening(service, sock) as url:
        model = service.models.base.name
        if as_json:
            print_json({"event": "listening", "url": f"{url}/v1", "model": model, "run": run.name}, line=True)
        else:
            note(
                f"serving {model} at {url}/v1 (sessions at {url}/sessions/ID/v1), recording to {run.path}; Ctrl-C ends it"
            )
        await anyio.sleep_forever()


def _in_process(policy: Any, name: str, *, parent: str | None = None, path: str = "") -> Served:
    from cuarl.policy.local import LocalSampler
    from cuarl.serve.models import Served

    return Served(name, LocalSampler(policy), policy.decode, parent, path)


class _Loader:
    """Puts adapters in: the first as a policy of its own beside the base, later ones into its weights."""

    def __init__(self, config: ExperimentConfig, run: Run, version: int) -> None:
        self.config, self._run, self._version = config, run, version
        self._paths: dict[str, str] = {}

    async def load(self, name: str, folder: Path, old: Served | None) -> Served:
        """A ``Models`` loader. Raises CuarlError if the adapter does not fit."""
        from cuarl.policy.hotswap import swap_adapter

        previous = getattr(old.sampler, "policy", None) if old else None
        load = partial(players.load_model, self.config, adapter=str(folder))
        policy = await anyio.to_thread.run_sync(swap_adapter, previous, folder, load)
        self._version += 1
        policy.updated(self._version)
        self._note(self._version, folder)
        if policy is previous and old is not None:
            return replace(old, name=name, path=str(folder))
        return _in_process(policy, name, parent=self.config.model_name, path=str(folder))

    def _note(self, version: int, folder: Path) -> None:
        import json

        from cuarl.run.atomic import write_text

        self._paths[str(version)] = str(folder)
        write_text(self._run.path / ADAPTERS, json.dumps(self._paths, indent=2) + "\n")


@dataclass(slots=True)
class _Counts:
    episodes: set[str] = field(default_factory=set)

    def save(self, store: Store) -> Callable[[Trajectory, Mapping[str, Screenshot]], Any]:
        """A session's ``Save`` into ``store``."""

        async def save(trajectory: Trajectory, pictures: Mapping[str, Screenshot]) -> None:
            if trajectory.turns:
                self.episodes.add(trajectory.episode_id)
                await store.submit(trajectory, dict(pictures))

        return save


@contextmanager
def _recorded(store: Store, run: Run, config: ExperimentConfig) -> Iterator[_Counts]:
    """The run's row in the store, from its start to how it ended. Ctrl-C is the usual end, not an interruption."""
    from cuarl.store import RunRecord

    store.start_run(
        RunRecord(
            id=run.run_id, name=run.name, command="serve", directory=str(run.path), model=config.model_name,
            seed=config.seed, config=config.model_dump(mode="json"),
        )
    )  # fmt: skip
    try:
        yield _Counts()
    except KeyboardInterrupt:
        pass
    except BaseException as error:
        store.finish_run(run.run_id, "failed", str(error)[:200])
        raise
    store.finish_run(run.run_id)


def _print_plan(experiment: Experiment, target: Target, options: _Options) -> None:
    facts = {
        "target": target.name, "model": experiment.config.model_name, "address": f"{options.host}:{options.port}",
        "image_hosts": ", ".join(options.hosts) or None, "adapters": options.adapters,
        "sampling": "fixed" if options.fixed else "as clients ask",
    }  # fmt: skip
    if experiment.json:
        print_json(facts)
    else:
        print_table(("what", "value"), list(facts.items()))
        note("nothing was started")
