"""``cuarl rollout``: collect episodes into the store, show them, verify what was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cuarl.cli import idle
from cuarl.cli.commands.judge import EXAMPLES, judge
from cuarl.cli.complete import episode_ids, run_names
from cuarl.cli.help import HelpGroup
from cuarl.cli.idle import given_options
from cuarl.cli.options import Request, experiment_options
from cuarl.cli.usage import finite
from cuarl.config.load import recorded
from cuarl.config.schema import (
    EnvFields,
)
from cuarl.errors import ConfigError
from cuarl.evaluate.summary import Outcome, summarise
from cuarl.run.log import logged
from cuarl.tasks.task import Task
from cuarl.terminal.output import closing, note, print_json, print_plan, print_table, say_loading
from cuarl.terminal.results import headline, print_summaries
from cuarl.terminal.state import load_settings
from cuarl.trajectory import Trajectory
from cuarl.workflow import episodes as parts
from cuarl.workflow import players
from cuarl.workflow.human import Page
from cuarl.workflow.proof_record import said_of
from cuarl.workflow.rollouts import collect, plan_of, player_of

if TYPE_CHECKING:
    from cuarl.run import Run
    from cuarl.store import EpisodeFilter

app = typer.Typer()

Db = Annotated[
    str | None, typer.Option("--db", help="Database URL; else DATABASE_URL, POSTGRES_* or a file in the runs folder.")
]
RunsDir = Annotated[Path | None, typer.Option(help="Folder of the runs (CUARL_RUNS_DIR; else runs).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_PAGE = "A page of one's own"
_PERSON = "A person at the device"


# --- collect -------------------------------------------------------------------------------------------------------


@app.callback(
    cls=HelpGroup,
    invoke_without_command=True,
    epilog="""\b
Examples:
  cuarl rollout --tasks settings --agent oracle
  cuarl rollout --tasks train_02_enable_wifi --episodes 8 --group-size 8
  cuarl rollout --tasks settings --limit 10 --agent human
  cuarl tasks filter --difficulty easy --ids | cuarl rollout --tasks - --agent random --json""",
)
@experiment_options(
    "tasks",
    "category",
    "difficulty",
    "split",
    "limit",
    "seed",
    EnvFields,
    "model_name",
    "trust_remote_code",
    "load_checkpoint_path",
    "dtype",
    "quantization",
    "device",
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "renderer_name",
    "history_images",
    "history_turns",
    "history_older",
    "max_prompt_tokens",
    "policy",
    "model_base_url",
    "served_model_name",
    "rescore",
    "reward",
    "judge_base_url",
    "judge_model",
    "judge_screens",
)
def rollout(
    request: Request,
    ctx: typer.Context,
    agent: Annotated[
        str,
        typer.Option(
            help="policy, oracle, random or nothing; demonstration: the oracle, in the policy's words; human: you, on "
            "a page, in its words."
        ),
    ] = "policy",
    episodes: Annotated[
        int | None, typer.Option(min=1, help="Episodes in all, the tasks in turn; unset means one group a task.")
    ] = None,
    group_size: Annotated[int, typer.Option(min=1, help="Attempts at the same instance of a task.")] = 1,
    name: Annotated[str | None, typer.Option(help="Name of the run; else one is made up.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Delete the run of that name first.")] = False,
    assist: Annotated[
        bool, typer.Option("--assist", help="With --agent policy: correct it on the page.", rich_help_panel=_PERSON)
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port of a person's page; unset takes a free one.", rich_help_panel=_PERSON
        ),
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Don't open that page in a browser.", rich_help_panel=_PERSON)
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(help="With --env browser: a page to act on, instead of --tasks.", rich_help_panel=_PAGE),
    ] = None,
    task: Annotated[str | None, typer.Option(help="With --url: the goal.", rich_help_panel=_PAGE)] = None,
    check: Annotated[
        list[str] | None,
        typer.Option(
            help="With --url: what must hold at its end, as 'PATH OPERATOR VALUE' over url, title, text, answer "
            "…, or 'js:' and a JavaScript expression; repeatable.",
            rich_help_panel=_PAGE,
        ),
    ] = None,
) -> None:
    """Collect episodes into the store, and nothing else."""
    if ctx.invoked_subcommand is not None:
        return
    players.check_agent(agent)
    idle.check_agent(request, agent, {"--port": port, "--no-open": no_open}, assist=assist)
    if agent == "human" or assist:
        from cuarl.web.listen import require_web

        require_web()
    if agent in ("policy", "human"):
        say_loading(request.config.model_name)
    request = replace(request, name=name, overwrite=overwrite)
    tasks = _tasks(request, url, task, check or [])
    request = request.for_tasks(tasks)
    facts = plan_of(request, agent, tasks)
    groups = -(-episodes // group_size) if episodes else len(tasks)
    in_turn = [tasks[i % len(tasks)] for i in range(groups)]
    if episodes and episodes % group_size:
        note(f"{groups * group_size} episodes are played, not {episodes}: {groups} whole groups of {group_size}")
    if request.dry_run:
        _print_plan(request, agent, in_turn, group_size, facts)
        if url is None and (said := said_of(request.settings, tasks, request.config.tasks)):
            note(said)
        return
    page = Page(request.watcher, port or 0, not no_open, assist)
    player = player_of(request, agent, page, len(in_turn) * group_size)
    run, trajectories = collect(request, in_turn, group_size, player)
    with logged(run.log_path):
        _report(run, trajectories, as_json=request.json)


def _tasks(request: Request, url: str | None, goal: str | None, checks: Sequence[str]) -> Sequence[Task]:
    """The tasks that were selected, or the one that ``--url`` makes."""
    if url is None:
        if goal or checks:
            raise ConfigError(
                f"{'--task' if goal else '--check'} goes with --url", hint="--url ADDRESS, or leave it out"
            )
        return parts.select_tasks(request.config, request.settings, "train", note).tasks
    from cuarl.workflow.page_task import page_task

    if request.config.env.type != "browser":
        raise ConfigError("--url is for pages in a browser", hint=f"--env browser --url {url}")
    given = [name for name in ("tasks", "category", "difficulty", "split", "limit") if getattr(request.config, name)]
    if given:
        raise ConfigError(f"--{given[0]} selects among known tasks and has no effect with --url", hint="leave it out")
    return [page_task(url, goal, checks)]


def _report(run: Run, trajectories: Sequence[Trajectory], *, as_json: bool) -> None:
    outcomes = [Outcome.of(t) for t in trajectories]
    summary = summarise(outcomes)
    if as_json:
        done = {"event": "done", "run": run.name, "run_id": run.run_id, "path": run.path, "summary": summary}
        print_json(done, line=True)
    else:
        print_summaries(outcomes)
    closing(headline(summary), where=run.path, then=f"cuarl rollout show {trajectories[0].episode_id}")


def _print_plan(request: Request, agent: str, tasks: Sequence[Task], group_size: int, needs: Mapping[str, str]) -> None:
    config = request.config
    facts = {
        "agent": agent,
        "tasks": len({t.id for t in tasks}),
        "groups": len(tasks),
        "group_size": group_size,
        "episodes": len(tasks) * group_size,
        "at_once": config.max_concurrent_rollouts,
        "workers": config.workers,
        "env": config.env.type,
        "profile": getattr(config.env, "profile", None),
        "model": config.model_name if agent in ("policy", "human", "demonstration") else None,
        "reward": config.reward,
        **needs,
    }
    print_plan(facts, as_json=request.json)


# --- show ----------------------------------------------------------------------------------------------------------


@app.command(
    short_help="Draw what an episode did, screenshot by screenshot.",
    epilog="""\b
Examples:
  cuarl rollout show latest
  cuarl rollout show 3f2a9c41d0e7b856.0004.0 --out pictures
  cuarl rollout show latest --turn 3
  cuarl rollout show latest --gif episode.gif""",
)
def show(
    episode: Annotated[
        str,
        typer.Argument(
            help="Id of an episode, a unique beginning of one, a run (its last one), or latest.",
            autocompletion=episode_ids,
        ),
    ] = "latest",
    out: Annotated[Path | None, typer.Option(help="Folder for the pictures; else one in the run's folder.")] = None,
    gif: Annotated[Path | None, typer.Option(help="One moving picture of it all, written to this file, too.")] = None,
    turn: Annotated[
        int | None, typer.Option(min=1, help="Print this turn's prompt and raw answer, and draw nothing.")
    ] = None,
    columns: Annotated[int, typer.Option(min=8, help="Width of the pictures in the terminal, in characters.")] = 36,
    pictures: Annotated[bool, typer.Option(help="Draw pictures in the terminal, where it has colours.")] = True,
    runs_dir: RunsDir = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Draw what an episode did: each screenshot with the action on it, as PNG files and in the terminal."""
    from cuarl.store.url import require_database
    from cuarl.terminal.episode_view import show_episode, show_turn
    from cuarl.workflow.monitoring import token_texts
    from cuarl.workflow.stored_episodes import find_episode, pictures_folder

    drawing = given_options({"--out": out, "--gif": gif, "--json": as_json})
    if turn is not None and drawing:
        raise ConfigError(f"--turn draws nothing, so {drawing[0]} has no effect", hint="leave one out")
    settings = load_settings(database_url=db, runs_dir=runs_dir)
    require_database(settings.db_url)
    with parts.open_store(settings) as store:
        trajectory = find_episode(store, episode)
        if turn is not None:
            model = store.run(trajectory.run_id).model if trajectory.run_id else ""
            show_turn(trajectory, turn, partial(token_texts, model))
            return
        folder = out or pictures_folder(store, trajectory, settings.runs_dir)
        show_episode(trajectory, store.blobs.get, folder, columns=columns if pictures else 0, as_json=as_json, gif=gif)


app.command(short_help="Hold a judge model against recorded verdicts.", epilog=EXAMPLES)(judge)


# --- verify --------------------------------------------------------------------------------------------------------


@app.command(
    short_help="Prove recorded log-probabilities by recomputing them.",
    epilog="""\b
Examples:
  cuarl rollout verify latest
  cuarl rollout verify my-run --step 8 --json""",
)
def verify(
    run: Annotated[
        str, typer.Argument(help="Name, path or unique beginning of a run, or latest.", autocompletion=run_names)
    ] = "latest",
    step: Annotated[int | None, typer.Option(min=0, help="Only episodes of this training step.")] = None,
    bar: Annotated[
        float | None,
        typer.Option(
            min=0,
            callback=finite,
            help="Largest difference that passes, in nats; unset goes by the number format: 0.0001 in float32, 0.03 in "
            "float16, 0.25 in bfloat16.",
        ),
    ] = None,
    dtype: Annotated[
        Literal["float32", "float16", "bfloat16"] | None,
        typer.Option(help="Format in which the turns were sampled, where a server or another machine did that."),
    ] = None,
    runs_dir: RunsDir = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Recompute the log-probabilities of a run's stored turns, and compare with what was recorded.

    Takes the pictures and token ids from the store, and the weights from the run's checkpoints. Turns that nobody
    sampled, such as a person's, have none: they are counted, and a run of nothing else is refused. Exit code 3 if a
    difference is above the bar, which is what rounding explains in the coarser of the two number formats: that in which
    the turns were sampled, and that in which they are recomputed.
    """
    from cuarl.run import Run, find_run
    from cuarl.workflow.verification import judged
    from cuarl.workflow.verification import verify as recompute

    settings = load_settings(database_url=db, runs_dir=runs_dir)
    found = Run(find_run(settings.runs_dir, run))
    config = recorded(found.config_path)
    where: EpisodeFilter = {"run": found.run_id} if step is None else {"run": found.run_id, "step": step}
    with parts.open_store(settings) as store:
        stored = store.trajectories(**where)
        versions = list(recompute(config, found.path, found.manifest.kind, stored, store.blobs.get, dtype))
    if as_json:
        print_json(versions)
    else:
        rows = [
            (v.policy_version, v.turns, v.unproved, v.tokens, v.shown, v.shown_mean, v.worst or None) for v in versions
        ]
        columns = ("policy version", "turns", "nothing to prove", "tokens", "largest difference", "mean", "at")
        print_table(columns, rows, numeric=set(columns[:6]))
    note(judged(versions, bar, found.path, elsewhere=config.model_base_url is not None))
