"""``cuarl train``: one command from tasks to a trained, evaluated policy."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated

import typer

from cuarl import garbage
from cuarl.cli import idle, launching
from cuarl.cli.help import HelpCommand
from cuarl.cli.options import Request, experiment_options
from cuarl.config.schema import PANELS
from cuarl.evaluate.suite import Evaluation
from cuarl.monitor.lines import span
from cuarl.run.log import logged
from cuarl.terminal.output import closing, note, print_json, print_text, say_loading
from cuarl.terminal.results import headline, interval, percent, print_summaries
from cuarl.train.launch import check_launched, launch_asked_for
from cuarl.workflow.job import Job
from cuarl.workflow.probe import Probed
from cuarl.workflow.probe import probe as make_probe
from cuarl.workflow.training import Finished
from cuarl.workflow.training import train as run_training
from cuarl.workflow.watcher import SILENT

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
@experiment_options(*PANELS, resumable=True, follows=launching.follows)
def train(
    request: Request,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Processes a machine, one a GPU; more than one go through accelerate. (default: 1)"),
    ] = None,
    accelerate: Annotated[
        str | None,
        typer.Option(
            help="How accelerate starts them: a preset (ddp, fsdp2) or a configuration file; unset means ddp."
        ),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Machines that train together; the same command is run on each.")
    ] = None,
    node_rank: Annotated[
        int | None, typer.Option(min=0, help="Which of them this is. Node 0 keeps the run, and tells the others of it.")
    ] = None,
    rendezvous: Annotated[
        str | None, typer.Option(help="HOST:PORT at which they meet: node 0's address, and a free port of it.")
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Only make one step, and say what the run would take.")
    ] = False,
) -> None:
    """Train a policy on tasks with reinforcement learning, and evaluate it before and after.

    A run that was interrupted is resumed with --resume as if nothing had happened.
    """
    say_loading(request.config.model_name)
    check_launched(os.environ)
    launch = launch_asked_for(
        processes=processes, accelerate=accelerate, nodes=nodes, node_rank=node_rank, rendezvous=rendezvous
    )
    idle.check_launch(launch, accelerate, os.environ.get("WORLD_SIZE"), probe=probe)
    with launching.as_node(launch, request):
        with garbage.loading():
            from cuarl.workflow.from_config import check_alone

            job = Job.of(replace(request, watcher=SILENT) if launching.is_told_elsewhere(launch, request) else request)
        if job.config.trainer.type == "local":
            check_alone(job.config, launch.world)
        launching.check(job, launch)
        if launch.world > 1 and not request.dry_run:
            raise typer.Exit(launching.launched(request, job, launch))
    if request.dry_run:
        request.watcher.event("plan", job.plan())
        note("nothing was started" if not probe else "leave --dry-run out to probe")
    elif probe:
        request.watcher.event("plan", job.plan())
        _tell(make_probe(request), as_json=request.json)
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
