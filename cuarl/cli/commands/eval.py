"""``cuarl eval``: success rates with honest intervals, and whether one policy is better than another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuarl.cli.complete import run_names, target_names
from cuarl.cli.help import HelpCommand
from cuarl.cli.idle import check_target, given_flags, given_options, refuse
from cuarl.cli.options import Request, experiment_options
from cuarl.cli.usage import finite
from cuarl.config.schema import EnvFields
from cuarl.errors import BarMissed, ConfigError
from cuarl.evaluate.suite import RESULTS, Evaluation, overruled, read_results
from cuarl.evaluate.summary import breakdown
from cuarl.evaluate.summary import compare as compare_outcomes
from cuarl.terminal.curves import show_curves
from cuarl.terminal.output import closing, note, print_json, print_plan, print_table, say_loading
from cuarl.terminal.results import SUMMARY_COLUMNS, headline, percent, print_summaries, print_tasks, summary_cells
from cuarl.workflow import people
from cuarl.workflow.evaluation import EvaluationPlan
from cuarl.workflow.target_evaluation import Evaluated, evaluation_plan
from cuarl.workflow.target_evaluation import evaluate as evaluate_target
from cuarl.workflow.targets import Target, resolve_target

if TYPE_CHECKING:
    from cuarl.evaluate.stats import Comparison

app = typer.Typer()


@app.command(
    cls=HelpCommand,
    epilog="""\b
Examples:
  cuarl eval latest
  cuarl eval my-run@8 --tasks settings --difficulty easy --episodes 200
  cuarl eval --compare base my-run
  cuarl eval --curve my-run --curve my-run-seed1 --out curve.svg
  cuarl eval runs/my-run/checkpoints/step-000064 --fail-under 0.9 --json
  cuarl eval base --grounding screenspot_mobile_v2.json
  cuarl eval http://localhost:8000/v1 --model-name Qwen/Qwen3-VL-8B-Instruct""",
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
    "dtype",
    "quantization",
    "device",
    "eval_temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "renderer_name",
    "history_images",
    "history_turns",
    "history_older",
    "max_prompt_tokens",
    "model_base_url",
    "served_model_name",
)
def evaluate(
    request: Request,
    target: Annotated[
        str | None,
        typer.Argument(
            help="A run (name, path, beginning, latest; RUN@STEP for another checkpoint, RUN@best), a checkpoint's "
            "folder, base, oracle, random, nothing, or the URL of an endpoint.",
            autocompletion=target_names,
        ),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="Is B better than A? Two targets, or folders of evaluations already made.",
            autocompletion=target_names,
        ),
    ] = None,
    curve: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN",
            help="Show how success went along a run's steps, by its evaluations (repeatable).",
            autocompletion=run_names,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="With --curve: draw it into this SVG file.")] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Episodes in all; unset means eval_episodes.")] = None,
    attempts: Annotated[
        int | None, typer.Option(min=1, help="Attempts at each instance, for pass@k; unset: 1.")
    ] = None,
    baselines: Annotated[
        bool | None,
        typer.Option(help="Evaluate doing nothing and acting at random as well; unset: where a policy is asked."),
    ] = None,
    by_task: Annotated[bool, typer.Option("--by-task", help="Print one row a task, too.")] = False,
    fail_under: Annotated[
        float | None,
        typer.Option(callback=finite, min=0, max=1, help="Exit with 3 if the success rate is lower than this share."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Record it in a run of its own with this name; unset: in the run that it evaluates, or in one "
            "whose name is made up.",
        ),
    ] = None,
) -> None:
    """Evaluate success on evaluation tasks, with 95 % intervals that allow for the differences between tasks.

    Instances have seeds that training never uses, and are the same for everything that is evaluated with the same
    --tasks and --seed. A run is evaluated with its own configuration unless flags say otherwise.
    """
    counted = {"--episodes": episodes, "--attempts": attempts}
    single = {"TARGET": target, "--fail-under": fail_under, "--name": name, "--baselines": baselines is not None}
    if curve or out is not None:
        others = {"--compare": compare, **single, **counted, "--by-task": by_task, "--dry-run": request.dry_run}
        given = [*given_options({**others, "--db": request.db}), *given_flags(request)]
        if given or not curve:
            told = f", not {given[0]}" if given else ""
            raise ConfigError(
                f"--curve takes runs and --out alone{told}", hint="cuarl eval --curve RUN --out curve.svg"
            )
        show_curves(
            curve, request.settings, out=out, as_json=request.json, said=people.overruled(request.settings, note)
        )
        return
    if compare is not None:
        if given := given_options(single):
            raise ConfigError(f"--compare takes two targets, and no {given[0]}", hint="cuarl eval --compare A B")
        if all(_made(one) is not None for one in compare):
            idle = [*given_options({**counted, "--dry-run": request.dry_run}), *given_flags(request)]
            refuse(idle, "on evaluations that were made already")
        _compare(request, compare, episodes, attempts or 1, by_task=by_task)
        return
    found = _target(request, target)
    check_target(request, found)
    if found.kind == "policy":
        say_loading(found.name)
    if found.kind == "scripted" and baselines is not None:
        refuse(["--baselines"], f"on {found.name}, which is evaluated alone")
    request = replace(request, name=name)
    what = evaluation_plan(request, found, episodes, attempts or 1)
    if baselines and not what.config.env.scripted:
        refuse(["--baselines"], f"in env {what.config.env.type}, where no scripted agent can act")
    if request.dry_run:
        _print_plan(request, found, what)
        return
    done = evaluate_target(request, found, what, baselines=baselines is not False)
    _report(request, done, found.name, by_task=by_task)
    rate = done.evaluation.overall.success_rate
    closing(
        f"{found.name}: {headline(done.evaluation.overall)}",
        where=done.path,
        then=f"cuarl eval --compare base {target if target and target != 'base' else 'latest'}",
    )
    if fail_under is not None and (rate is None or rate < fail_under):
        raise BarMissed(f"success {percent(rate)} is below {percent(fail_under)}", where=str(done.path))


def _target(request: Request, target: str | None) -> Target:
    url = request.config.model_base_url
    if url is None:
        return resolve_target(target or "latest", request.settings, note)
    if target is not None and target != url:
        raise ConfigError("--model-base-url is a target itself", hint=f"cuarl eval {url}")
    return resolve_target(url, request.settings, note)


# --- one target ----------------------------------------------------------------------------------------------------


def _report(request: Request, done: Evaluated, name: str, *, by_task: bool) -> None:
    evaluation = done.evaluation
    if request.json:
        said = _without_outcomes(evaluation, by_task=by_task)
        print_json({"event": "done", "path": done.path, "evaluation": said}, line=True)
        return
    print_summaries(evaluation.outcomes, done.baselines)
    if max(evaluation.overall.pass_at, default=1) > 1:  # pass@1 is success itself
        ks = ", ".join(f"pass@{k} {percent(v)}" for k, v in evaluation.overall.pass_at.items())
        note(f"{ks}; {', '.join(f'pass^{k} {percent(v)}' for k, v in evaluation.overall.pass_hat.items())}")
    if evaluation.limited:
        note(f"limited: {evaluation.limited}")
    if by_task:
        print_tasks({name: evaluation.outcomes})


def _without_outcomes(evaluation: Evaluation, *, by_task: bool) -> dict[str, Any]:
    told = evaluation.model_dump(mode="json", exclude={"outcomes"})
    if by_task:
        told["by_task"] = {task: s.metrics() for task, s in breakdown(evaluation.outcomes, "task_id").items()}
    return told


def _print_plan(request: Request, target: Target, what: EvaluationPlan) -> None:
    facts = {
        "target": target.name,
        "tasks": len(what.tasks),
        "episodes": what.episodes,
        "attempts": what.attempts,
        "limited": what.limited or None,
        "env": what.config.env.type,
        "profile": getattr(what.config.env, "profile", None),
        "temperature": what.config.eval_temperature,
    }
    print_plan(facts, as_json=request.json)


# --- two targets ---------------------------------------------------------------------------------------------------


def _compare(request: Request, names: tuple[str, str], episodes: int | None, attempts: int, *, by_task: bool) -> None:
    if request.dry_run:
        for name in names:
            if _made(name) is None:
                _print_plan(request, *_planned(request, name, names, episodes, attempts))
        return
    made_already = [_made(name) for name in names]
    said = people.overruled(request.settings, note) if any(made_already) else {}
    evaluations = [
        overruled(made, said) if made else _measured(request, name, names, episodes, attempts)
        for name, made in zip(names, made_already, strict=True)
    ]
    a, b = evaluations
    found = compare_outcomes(a.outcomes, b.outcomes)
    if request.json:
        print_json(
            {
                "event": "comparison",
                "a": names[0],
                "b": names[1],
                **found._asdict(),
                "evaluations": [_without_outcomes(e, by_task=by_task) for e in evaluations],
            },
            line=True,
        )
        return
    rows = [(name, *summary_cells(e.overall)) for name, e in zip(names, evaluations, strict=True)]
    print_table(("target", *SUMMARY_COLUMNS), rows, numeric=set(SUMMARY_COLUMNS))
    if by_task:
        print_tasks({name: e.outcomes for name, e in zip(names, evaluations, strict=True)})
    note(_in_words(found, *names))


def _made(name: str) -> Evaluation | None:
    """An evaluation that lies there already, if ``name`` is its folder or file."""
    path = Path(name)
    return read_results(path) if path.name == RESULTS or (path / RESULTS).is_file() else None


def _measured(request: Request, name: str, names: tuple[str, str], episodes: int | None, attempts: int) -> Evaluation:
    """Evaluate one of two targets."""
    target, what = _planned(request, name, names, episodes, attempts)
    return evaluate_target(request, target, what, baselines=False).evaluation


def _planned(
    request: Request, name: str, names: tuple[str, str], episodes: int | None, attempts: int
) -> tuple[Target, EvaluationPlan]:
    """One of two targets, and the instances that the run among them was evaluated on, so that both meet them."""
    settings = request.settings
    target = resolve_target(name, settings, note)
    others = [resolve_target(n, settings).run for n in names if _made(n) is None]
    run = next((r for r in others if r is not None), None)
    shared = replace(target, run=run) if target.run is None else target
    return target, evaluation_plan(request, shared, episodes, attempts)


def _in_words(found: Comparison, a: str, b: str) -> str:
    sure = "better" if found.low > 0 else "worse" if found.high < 0 else "neither better nor worse for sure"
    return (
        f"{b} minus {a}: {100 * found.difference:+.1f} points (95 % interval {100 * found.low:+.1f} to "
        f"{100 * found.high:+.1f}, p = {found.p_value:.3g}, {found.pairs} instances of {found.tasks} tasks): {b} is "
        f"{sure}"
    )
