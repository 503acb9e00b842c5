"""``cuarl serve``: a policy as an OpenAI-compatible endpoint that records what it samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from cuarl.cli.complete import target_names
from cuarl.cli.help import HelpCommand
from cuarl.cli.idle import check_served
from cuarl.cli.options import Request, experiment_options
from cuarl.cli.usage import finite
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError
from cuarl.policy.sampler import SamplingParams
from cuarl.serve.listen import listening
from cuarl.terminal.output import closing, note, print_json, print_plan
from cuarl.trajectory import Trajectory
from cuarl.types import Screenshot
from cuarl.web.listen import bind, require_web
from cuarl.web.rules import is_loopback, names_of
from cuarl.workflow import episodes as parts
from cuarl.workflow import signals
from cuarl.workflow.targets import Target, resolve_target, with_run_config
from cuarl.workflow.upstream import Upstream, check, upstream

if TYPE_CHECKING:
    from cuarl.run import Run
    from cuarl.serve.app import Service
    from cuarl.store import Store

app = typer.Typer()
UNTRAINABLE = "what it samples is recorded, and can't be trained on exactly"


@app.command(
    cls=HelpCommand,
    epilog="""\b
Examples:
  cuarl serve
  cuarl serve my-run --port 8000 --name recorded
  cuarl serve base --adapters runs --fixed-sampling --temperature 1
  cuarl serve http://localhost:8001/v1 --model-name Qwen/Qwen3-VL-8B-Instruct
  cuarl serve tinker --model-name Qwen/Qwen3-VL-30B-A3B-Instruct
  OPENAI_BASE_URL=http://127.0.0.1:8000/sessions/first/v1 your-agent""",
)
@experiment_options(
    "model_name",
    "trust_remote_code",
    "dtype",
    "quantization",
    "device",
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "model_base_url",
    "served_model_name",
)
def serve(
    request: Request,
    target: Annotated[
        str,
        typer.Argument(
            help="What answers: base, a run (RUN@STEP for another checkpoint than the last), a checkpoint's "
            "folder, the URL of another endpoint, tinker, or the tinker:// path of weights that Tinker keeps.",
            autocompletion=target_names,
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
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Name that clients may ask for besides this machine's own; repeatable.")
    ] = None,
    adapters: Annotated[
        Path | None, typer.Option(help="Folder that adapters may be loaded from while serving; unset means none.")
    ] = None,
    idle: Annotated[
        float, typer.Option(callback=finite, min=1, help="Seconds after which an idle session is over, unscored.")
    ] = 3600.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    name: Annotated[str | None, typer.Option(help="Name of the run; else one is made up.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Delete the run of that name first.")] = False,
) -> None:
    """Serve a policy to any agent that speaks OpenAI's protocols, and record its turns token by token.

    A session's turns become one episode of the store; its id stands in the URL (/sessions/ID/v1) or in the header
    X-Cuarl-Session. Ends with Ctrl-C.
    """
    require_web()
    found = _target(request, target)
    check_served(request, found)
    check(found, named=request.resolved.sources["model_name"] != "default", adapters=adapters is not None)
    if adapters is not None and not adapters.is_dir():
        raise ConfigError("there is no such folder of adapters", where=str(adapters), hint=f"mkdir {adapters}")
    options = _Options(
        host=host,
        port=port,
        names=allow_host or (),
        served_name=served_name,
        fixed=fixed_sampling,
        hosts=tuple(allow_image_host or ()),
        adapters=adapters,
        idle_s=idle,
        seed=seed,
    )
    request = replace(request, name=name, overwrite=overwrite, resolved=_resolved(request, found))
    if request.dry_run:
        _print_plan(request, found, options)
        return
    _serve(request, found, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    host: str
    port: int
    served_name: str | None
    fixed: bool
    hosts: tuple[str, ...]
    names: Sequence[str]
    adapters: Path | None
    idle_s: float
    seed: int


def _target(request: Request, text: str) -> Target:
    url = request.config.model_base_url
    if url is not None and text not in ("base", url):
        raise ConfigError("--model-base-url is a target itself", hint=f"cuarl serve {url}")
    return resolve_target(url or text, request.settings, note)


def _resolved(request: Request, target: Target) -> Any:
    """The configuration with the target in it, so that the record says what was served."""
    config, changes = request.config, dict[str, Any]()
    if target.kind == "endpoint":
        changes["policy"] = config.served.model_copy(update={"base_url": target.name})
    elif target.kind == "tinker":
        if request.resolved.sources["model_name"] == "default":
            changes["model_name"] = with_run_config(request.resolved, target.run).model_name
    elif target.name != "base":
        changes["load_checkpoint_path"] = target.adapter or target.model
        if target.model and target.adapter:
            changes["model_name"] = target.model
    return replace(request.resolved, config=config.model_copy(update=changes))


def _serve(request: Request, target: Target, options: _Options) -> None:
    settings, config = request.settings, request.config
    token = settings.serve_token.get_secret_value() if settings.serve_token else None
    sock = bind(options.host, options.port, token)
    with (
        parts.open_store(settings) as store,
        request.open_run("serve", store) as run,
        upstream(target, config, settings, run, options.served_name, note) as policy,
        _recorded(store, run, config) as counts,
    ):
        service = _service(policy, config, options, token, run, counts.save(store))
        # Ctrl-C is the usual end
        with suppress(KeyboardInterrupt):
            signals.run(partial(_until_stopped, service, policy, sock, request.json, run))
        run.count({"episodes": len(counts.episodes), "turns": service.sessions.recorded})
    closing(
        f"recorded {service.sessions.recorded} turns of {len(counts.episodes)} sessions",
        where=run.path,
        then=f"cuarl rollout verify {run.name}",
    )


def _service(
    policy: Upstream, config: ExperimentConfig, options: _Options, token: str | None, run: Run, save: Any
) -> Service:
    from cuarl.serve.app import Service
    from cuarl.serve.models import Models
    from cuarl.serve.pictures import Pictures
    from cuarl.serve.requests import Defaults
    from cuarl.serve.sessions import Sessions

    params = SamplingParams(
        temperature=config.temperature, top_p=config.top_p, top_k=config.top_k, max_tokens=config.max_tokens
    )
    return Service(
        Models(policy.served, adapters=options.adapters, load=policy.load, find=policy.find),
        Sessions(save, run_id=run.run_id, prefix=run.run_id, idle_s=options.idle_s),
        Pictures(options.hosts),
        Defaults(params, fixed=options.fixed),
        token,
        is_loopback(options.host),
        options.seed,
        names_of(options.names),
    )


async def _until_stopped(service: Service, policy: Upstream, sock: Any, as_json: bool, run: Run) -> None:
    lacking = await policy.start()
    async with listening(service, sock) as url:
        model = policy.served.name
        if as_json:
            started = {"event": "listening", "url": f"{url}/v1", "model": model, "run": run.name, "lacking": lacking}
            print_json(started, line=True)
        else:
            note(
                f"serving {model} at {url}/v1 (sessions at {url}/sessions/ID/v1), recording to {run.path}; Ctrl-C "
                "ends it"
            )
        if lacking:
            note(f"{policy.served.path or model} does not give {' and '.join(lacking)} exactly: {UNTRAINABLE}")
        await anyio.sleep_forever()


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
    """The run's row in the store, from its start to how it ended."""
    from cuarl.workflow.ending import in_store

    with in_store(store, run, config, store.drain):
        yield _Counts()


def _print_plan(request: Request, target: Target, options: _Options) -> None:
    facts = {
        "target": target.name,
        "model": request.config.model_name,
        "address": f"{options.host}:{options.port}",
        "image_hosts": ", ".join(options.hosts) or None,
        "adapters": options.adapters,
        "sampling": "fixed" if options.fixed else "as clients ask",
    }
    print_plan(facts, as_json=request.json)
