"""Rollouts: episodes collected into the store, by any agent, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cuarl.errors import ConfigError
from cuarl.rollout import reward
from cuarl.rollout.spec import plan
from cuarl.tasks.task import Task
from cuarl.trajectory import Group, Trajectory
from cuarl.workflow import environments, players, preflight, signals
from cuarl.workflow import episodes as parts
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.players import Player
from cuarl.workflow.targets import checkpoint
from cuarl.workflow.workers import hire

if TYPE_CHECKING:
    from cuarl.run import Run
    from cuarl.workflow.human import Page


class Collected(NamedTuple):
    """A rollout that is over."""

    run: Run
    trajectories: Sequence[Trajectory]


def collect(experiment: Experiment, tasks: Sequence[Task], group_size: int, player: Player) -> Collected:
    """Run one group of each of ``tasks`` (which may come again) in a run of its own."""
    config = experiment.config
    reward.get(config.reward)  # a wrong name is refused before anything is made
    workers = hire.crew(config, experiment.settings)
    backend = hire.backend(config, tasks, experiment.settings, workers)
    with (
        parts.open_store(experiment.settings) as store,
        experiment.open_run("rollout", store, actor=player.name if player.name in players.AGENTS else None) as run,
    ):
        specs = plan(tasks, group_size=group_size, run_seed=config.seed, prefix=run.run_id, run_id=run.run_id)
        experiment.watcher.event("start", {"run": run.name, "run_id": run.run_id, "episodes": len(specs)})
        with (
            parts.recording(store, run, config, tasks) as record,
            experiment.watcher.progress(player.name, len(specs)) as progress,
        ):
            record.live.begin("collecting", episodes=len(specs))
            setup = parts.setup(config, backend, player, record)
            if player.told is not None:
                record.told.append(player.told)
            most = 1 if player.attended else None

            async def work() -> list[Group]:
                async with hire.employed(workers), parts.playing(player, backend):
                    return await parts.collected(
                        specs,
                        setup,
                        backend,
                        config,
                        save=record.save,
                        on_cancel=record.cut,
                        progress=progress,
                        most=most,
                    )

            trajectories = [t for group in signals.run(work) for t in group.trajectories]
            run.count({"episodes": len(trajectories)})
    return Collected(run, trajectories)


def plan_of(experiment: Experiment, agent: str, tasks: Sequence[Task]) -> dict[str, str]:
    """See that all is there for a rollout, before anything is loaded. What it takes, for people.

    Raises ConfigError, TaskError, RunExists, PrerequisiteError or CheckpointError.
    """
    config = experiment.config
    reward.get(config.reward)
    preflight.check_place(experiment)
    made = environments.check(config, tasks, experiment.settings)
    if agent in ("oracle", "demonstration"):
        preflight.check_oracle(made, tasks)
    if agent in players.SCRIPTED:
        return {}
    if agent == "policy" and config.model_base_url is not None:
        from cuarl.workflow import endpoint

        endpoint.check_there(config, config.model_base_url, experiment.settings)
        return {}
    from cuarl.policy.load import examine

    spec = players.model_spec(config)
    if agent == "policy" and config.load_checkpoint_path is not None:
        found = checkpoint(Path(config.load_checkpoint_path), experiment.watcher.note)
        spec = players.model_spec(config, model=found.model, adapter=found.adapter)
    return preflight.model_facts(experiment, spec, examine(spec), trained=False)


def player_of(experiment: Experiment, agent: str, page: Page | None = None, episodes: int = 0) -> Player:
    """Who acts: one of ``players.AGENTS``. Loads the policy where it is one of this process.

    ``page`` is where a person acts or corrects the policy, in so many episodes.
    """
    config = experiment.config
    if agent in players.SCRIPTED:
        return players.scripted(agent)
    if agent == "demonstration":
        return players.demonstrations(config, players.load_model(config))
    if agent == "human":
        from cuarl.workflow import human

        if page is None:
            raise ConfigError("a person acts on the command's page", hint="cuarl rollout --agent human")
        return human.player(config, players.load_model(config), page, episodes)
    if config.model_base_url is not None:
        from cuarl.workflow import endpoint

        return endpoint.player(
            config,
            config.model_base_url,
            experiment.settings,
            temperature=config.temperature,
            strict=True,
            note=experiment.watcher.note,
        )
    if config.load_checkpoint_path is None:
        policy = players.load_model(config)
    else:
        found = checkpoint(Path(config.load_checkpoint_path), experiment.watcher.note)
        policy = players.load_model(config, model=found.model, adapter=found.adapter)
        policy.updated(found.step)
    acting = players.in_process(config, policy, temperature=config.temperature, strict=True)
    if page is None or not page.assist:
        return acting
    from cuarl.workflow import human

    return human.assisted(config, policy, acting, page, episodes)
