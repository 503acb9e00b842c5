"""``cuarl train``: one command from tasks to a trained, evaluated policy."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Annotated

import typer

from cuarl.cli import idle
from cuarl.cli.help import HelpCommand
from cuarl.cli.options import Request, experiment_options
from cuarl.config.schema import PANELS
from cuarl.errors import ConfigError
from cuarl.evaluate.suite import Evaluation
from cuarl.monitor.lines import span
from cuarl.run.log import logged
from cuarl.terminal.output import closing, note, print_json, print_text, say_loading
from cuarl.terminal.results import headline, interval, percent, print_summaries
from cuarl.terminal.state import STATE
from cuarl.train.launch import check_launched, launch_command
from cuarl.workflow import episodes as parts
from cuarl.workflow import inputs, signals
from cuarl.workflow.job import Job
from cuarl.workflow.probe import Probed
from cuarl.workflow.probe import probe as make_probe
from cuarl.workflow.training import Finished
from cuarl.workflow.training import train as run_training

if TYPE_CHECKING:
    from cuarl.run import Run

app = typer.Typer()


@app.command(
    cls=HelpCommand,
    epilog="""\b
Examples:
  cuarl train --tasks settings --difficulty easy
  cuarl train --preset qwen3-vl-lora --processes 4 --name big
  cuarl train --resume latest
  cuarl train --algorithm sft --sft-runs my-demonstrations --max-steps 20""",
)
@experiment_options(*PANELS, resumable=True)
def train(
    request: Request,
    processes: Annotated[
        int, typer.Option(min=1, help="Processes, one a GPU; more than one go through accelerate.")
    ] = 1,
    accelerate: Annotated[
        str | None,
        typer.Option(
            help="How accelerate starts them: a preset (ddp, fsdp2) or a configuration file; unset means ddp."
        ),
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Only make one step, and say what the run would take.")
    ] = False,
) -> None:
    """Train a policy on tasks with reinforcement learning, and evaluate it before and after.

    A run that was interrupted is resumed with --resume as if nothing had happened.
    """
    from cuarl.workflow.from_config import check_alone

    say_loading(request.config.model_name)
    check_launched(os.environ)
    idle.check_launch(processes, accelerate, os.environ.get("WORLD_SIZE"))
    job = Job.of(request)
    if job.config.trainer.type == "local":
        check_alone(job.config, processes)
    if request.dry_run:
        request.watcher.event("plan", job.plan())
        note("nothing was started" if not probe else "leave --dry-run out to probe")
    elif probe:
        request.watcher.event("plan", job.plan())
        _tell(make_probe(request), as_json=request.json)
    elif job.config.trainer.type == "tinker" and processes > 1:
        raise ConfigError("Tinker trains elsewhere, so one process is enough", where="--processes", hint="leave it out")
    elif processes > 1 and "WORLD_SIZE" not in os.environ:
        raise typer.Exit(_launch(request, job, processes, accelerate or "ddp"))
    elif (done := run_training(job)).main:
        with logged(done.run.log_path):
            _report(done, as_json=request.json)


def _tell(found: Probed, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    kept = (found.step_bytes / 2**20, found.checkpoint_bytes / 2**20)
    print_text(
        f"one step took {found.step_s:.1f} s, {found.collecting_s:.1f} s of them for episodes; all steps and "
        f"evaluations take about {span(found.total_s)}\npeak memory {found.peak_gib:.1f} GiB; a step keeps "
        f"{kept[0]:.1f} MiB, a checkpoint {kept[1]:.1f} MiB"
    )
    note("nothing of it was kept")


# --- several processes ---------------------------------------------------------------------------------------------


def _launch(request: Request, job: Job, processes: int, accelerate: str) -> int:
    """Make the run directory here, so that processes don't race for it, and go on with it in all of them."""
    launch_command([], processes=processes, accelerate=accelerate)  # a wrong preset is refused before that
    with parts.open_store(request.settings) as store:
        run = request.open_run("train", store)
    inputs.keep(run, job.inputs)
    options = [("--runs-dir", request.runs_dir), ("--db", request.db), ("--env-file", STATE.env_file)]
    arguments = ["train", "--resume", str(run.path), "--display", STATE.display]
    arguments += [str(word) for name, value in options if value is not None for word in (name, value)]
    flags = {
        "--json": request.json,
        "--quiet": STATE.quiet,
        "--debug": STATE.debug,
        inputs.OPTION: request.accept_changes,
    }
    arguments += [flag for flag, given in flags.items() if given]
    # in a session of its own, or Ctrl-C would reach each process twice
    child = subprocess.Popen(
        launch_command(arguments, processes=processes, accelerate=accelerate),
        start_new_session=True,
        env={**os.environ, **_reporting(request)},
    )
    return _exit_code(run, signals.wait_for(child))


def _reporting(request: Request) -> dict[str, str]:
    """Where the run is reported, for the processes that make it: a token is not for their command lines."""
    settings, token = request.settings, request.settings.project_token
    found = {
        "MONITOR_BASE_URL": settings.monitor_base_url,
        "MONITOR_PROJECT_ID": settings.project_id,
        "MONITOR_PROJECT_TOKEN": token and token.get_secret_value(),
    }
    return {name: value for name, value in found.items() if value}


def _exit_code(run: Run, code: int) -> int:
    """What the run says of how it ended, or else what the launcher says."""
    from cuarl.run import read_manifest

    if code < 0:
        note(f"the launcher was ended by signal {-code}; its processes save what they have and end, too")
    last = read_manifest(run.path).attempts[-1:]
    return last[0].exit_code if last and last[0].exit_code is not None else max(code, 1) if code else 0


# --- afterwards ----------------------------------------------------------------------------------------------------


def _report(done: Finished, *, as_json: bool) -> None:
    """Success before and after, with intervals; where everything is; what to do next."""
    before, after, run = done.before, done.after, done.run
    if as_json:
        told = {"event": "done", "run": run.name, "path": run.path, "before": before and before.overall}
        print_json({**told, "after": after and after.overall}, line=True)
    elif after is not None:
        print_summaries(after.outcomes, {"before": before.outcomes} if before else None)
    best = "@best" if done.job.validation_plan else ""
    closing(_result(before, after), where=run.path, then=f"cuarl eval --compare base {run.name}{best}")


def _result(before: Evaluation | None, after: Evaluation | None) -> str:
    if after is None:
        return "trained, not evaluated"
    if before is None:
        return headline(after.overall)
    was = f"{percent(before.overall.success_rate)} ({interval(before.overall)})"
    return f"success before {was}, after: {headline(after.overall)}"
