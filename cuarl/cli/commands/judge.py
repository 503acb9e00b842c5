"""``cuarl rollout judge``: a judge model held against the verdicts of a run's stored episodes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from cuarl.cli.complete import run_names
from cuarl.errors import ConfigError
from cuarl.terminal.output import note, print_json, print_table
from cuarl.terminal.results import percent
from cuarl.terminal.state import load_settings

EXAMPLES = """\b
Examples:
  cuarl rollout judge latest --judge-base-url http://localhost:8000/v1 --judge-model Qwen/Qwen3-VL-8B-Instruct"""


def judge(
    run: Annotated[
        str, typer.Argument(help="Name, path or unique beginning of a run, or latest.", autocompletion=run_names)
    ] = "latest",
    judge_base_url: Annotated[
        str | None, typer.Option(help="Base URL of an OpenAI-compatible server; its key is JUDGE_API_KEY.")
    ] = None,
    judge_model: Annotated[str | None, typer.Option(help="What the model is called there.")] = None,
    judge_screens: Annotated[int, typer.Option(min=1, help="Last screens of an episode that it is shown.")] = 4,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many episodes.")] = None,
    runs_dir: Annotated[Path | None, typer.Option(help="Folder of the runs (CUARL_RUNS_DIR; else runs).")] = None,
    db: Annotated[str | None, typer.Option("--db", help="Database URL; else DATABASE_URL, POSTGRES_*.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask a model which of a run's episodes are done, and count how often it agrees with their checks.

    Before a model's opinion is trained on (--reward judge), this says how far it can be trusted. Opinions are kept in
    the run's folder, and nothing is asked twice.
    """
    from cuarl.run import Run, find_run
    from cuarl.workflow import agreement, signals
    from cuarl.workflow import episodes as parts
    from cuarl.workflow.judged import judge_model as made

    if judge_base_url is None or judge_model is None:
        missing = "--judge-base-url http://HOST:PORT/v1" if judge_base_url is None else "--judge-model NAME"
        raise ConfigError("there is no judge named", hint=missing)
    settings = load_settings(database_url=db, runs_dir=runs_dir)
    found = Run(find_run(settings.runs_dir, run))
    asked = made(judge_base_url, judge_model, judge_screens, settings)
    with parts.open_store(settings) as store:
        stored = [one for one in store.trajectories(run=found.run_id) if agreement.checked(one)][:limit]
        if not stored:
            raise ConfigError("no episode of it has a verdict to hold a judge against", where=str(found.path))
        kept = agreement.Kept(found.path / agreement.KEPT)
        work = partial(agreement.compared, stored, store.blobs.get, asked, kept, note=note)
        counts = signals.run(work)
    if as_json:
        print_json({**counts.model_dump(), "share": counts.share, "interval": counts.interval, "kappa": counts.kappa})
        return
    rows = [("done", counts.done_done, counts.done_not), ("not done", counts.not_done, counts.not_not)]
    print_table(("by the checks", "judge: done", "judge: not done"), rows, numeric={"judge: done", "judge: not done"})
    low, high = counts.interval
    note(
        f"{judge_model} agrees in {percent(counts.share)} of {counts.n} episodes (95 % interval {100 * low:.1f}–"
        f"{100 * high:.1f} %), kappa {counts.kappa:.2f}; {counts.tokens_in} tokens in, {counts.tokens_out} out"
    )
