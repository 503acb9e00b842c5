"""Evaluations of whatever a target means: runs, checkpoints, endpoints and agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError
from cuarl.evaluate.suite import Evaluation
from cuarl.evaluate.summary import Outcome, summarise
from cuarl.workflow import environments, players, preflight, signals
from cuarl.workflow import episodes as parts
from cuarl.workflow.evaluation import EvaluationPlan, evaluate_baselines, home, keep, run_evaluation
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.players import Player
from cuarl.workflow.targets import Target, with_run_config


class Evaluated(NamedTuple):
    """An evaluation that was made, and where it was written."""

    evaluation: Evaluation
    baselines: Mapping[str, Sequence[Outcome]]
    path: Path


def evaluation_plan(experiment: Experiment, target: Target, episodes: int | None, attempts: int) -> EvaluationPlan:
    """What is evaluated, with the configuration of the target's run where it has one. Raises CuarlError."""
    resolved = experiment.resolved
    config = with_run_config(resolved, target.run)
    if target.run is None and resolved.sources["tasks"] != "default":  # whoever names tasks means those to evaluate on
        config = config.model_copy(update={"eval_tasks": config.tasks})
    tasks = parts.tasks_of(replace(experiment, resolved=replace(resolved, config=config)), "eval")
    if target.run is None:
        config = replace(experiment, resolved=replace(resolved, config=config)).for_tasks(tasks).config
    made = environments.check(config, tasks, experiment.settings)
    preflight.check_place(experiment)
    if target.kind == "scripted" and target.name == "oracle":
        preflight.check_oracle(made, tasks)
    if target.kind == "endpoint":
        from cuarl.workflow import endpoint

        if resolved.sources["model_name"] == "default":
            raise ConfigError("an endpoint needs the name of its model", where=target.name, hint="--model-name NAME")
        endpoint.check_there(config, target.name, experiment.settings)
    if target.kind == "policy":
        from cuarl.policy.load import examine

        examine(players.model_spec(config, model=target.model, adapter=target.adapter))
    # of pairs of a picture and an instruction each is asked once, where nobody says how many
    every = config.env.type == "grounding" and resolved.sources["eval_episodes"] == "default"
    number = len(tasks) * attempts if every else config.eval_episodes
    return EvaluationPlan(config=config, tasks=tasks, episodes=episodes or number, attempts=attempts)


def evaluate(
    experiment: Experiment, target: Target, what: EvaluationPlan, *, baselines: bool, player: Player | None = None
) -> Evaluated:
    """Evaluate, and record it; ``player`` acts for the target.

    ``baselines`` evaluates doing nothing and acting at random as well.
    """
    from cuarl.store import new_id

    settings, watcher = experiment.settings, experiment.watcher
    scripted = target.name if target.kind == "scripted" else None
    player, evaluation_id = player or _player(experiment, what.config, target), new_id("eval")
    with (
        parts.open_store(settings) as store,
        home(experiment, store, target.run, what, actor=scripted) as (run, record),
        watcher.progress(target.name, what.planned) as progress,
    ):
        watcher.event("start", {"target": target.name, "run": run.name, "episodes": what.episodes})
        evaluation = signals.run(
            partial(
                run_evaluation,
                what,
                player,
                settings,
                prefix=evaluation_id,
                run_id=run.run_id,
                step=target.step,
                record=record,
                progress=progress,
            )
        )
        # where no scripted agent can act, none is evaluated beside the policy
        baselines = baselines and target.kind != "scripted" and what.config.env.scripted
        beside = evaluate_baselines(what, settings, watcher) if baselines else {}
        known = {name: summarise(outcomes) for name, outcomes in beside.items()}
        evaluation = evaluation.model_copy(update={"baselines": known})
        own = run.path != target.run
        return Evaluated(evaluation, beside, keep(store, evaluation, evaluation_id, run, own=own, beside=beside))


def _player(experiment: Experiment, config: ExperimentConfig, target: Target) -> Player:
    if target.kind == "scripted":
        return players.scripted(target.name)
    if target.kind == "endpoint":
        from cuarl.workflow import endpoint

        return endpoint.player(
            config,
            target.name,
            experiment.settings,
            temperature=config.eval_temperature,
            strict=False,
            note=experiment.watcher.note,
        )
    if target.kind == "tinker":
        raise ConfigError(
            "weights that Tinker keeps are evaluated while the run trains, or as an endpoint",
            where=target.name,
            hint=f"cuarl serve {target.name} --model-name {config.model_name}",
        )
    policy = players.load_model(config, model=target.model, adapter=target.adapter)
    policy.updated(target.step)
    # read as strictly as in training, so that the two agree on what is a success
    return players.in_process(config, policy, temperature=config.eval_temperature, strict=True)
