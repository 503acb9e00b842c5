"""What a training run is to do, checked as far as it can be before anything starts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuarl import objects
from cuarl.config.algorithms import RATIO
from cuarl.config.keys import value_of
from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.errors import ConfigError
from cuarl.rollout.reward import needs_verdict
from cuarl.tasks.select import require_checks
from cuarl.tasks.split import kept_aside
from cuarl.tasks.task import Task
from cuarl.workflow import environments, inputs, players, preflight, rehearsal
from cuarl.workflow import episodes as parts
from cuarl.workflow.evaluation import EvaluationPlan
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.inputs import Inputs
from cuarl.workflow.proof_record import said_of
from cuarl.workflow.workers import hire
from cuarl.workflow.workers.crew import Crew


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done, checked as far as it can be without starting anything."""

    experiment: Experiment
    tasks: Sequence[Task]
    """To train on."""
    evaluation_plan: EvaluationPlan
    validation_plan: EvaluationPlan | None
    """What checkpoints are chosen by; None where no tasks are kept for it."""
    inputs: Inputs
    facts: Mapping[str, str]
    """What memory and disk have to hold, for people."""
    workers: Crew | None
    """Who runs the episodes, if it is not this process."""

    @property
    def config(self) -> ExperimentConfig:
        """The configuration."""
        return self.experiment.config

    @property
    def all_tasks(self) -> list[Task]:
        """Of training, validation and evaluation."""
        return [*self.tasks, *(self.validation_plan.tasks if self.validation_plan else ()), *self.evaluation_plan.tasks]

    @classmethod
    def of(cls, experiment: Experiment) -> Job:
        """Select the tasks and check what depends on them. Raises ConfigError, TaskError or PrerequisiteError."""
        from cuarl.policy.load import device_named, examine
        from cuarl.workflow.from_config import model_spec

        config, settings = experiment.config, experiment.settings
        _check_held(experiment)
        if settings.monitor_base_url:
            from cuarl.workflow.reporting import check_monitor

            check_monitor(settings.monitor_base_url, settings)
        if config.track:
            from cuarl.workflow.trackers import check_trackers

            check_trackers(config.track)
        if config.algorithm.type in RATIO and (config.top_p < 1 or config.top_k > 0):
            raise ConfigError(
                f"{config.algorithm.type} needs samples of the whole distribution, and top_p or top_k cut it off",
                where="--top-p, --top-k",
                hint="leave them out; --temperature may be set",
            )
        rehearsal.check(config)
        # imitation trains on stored episodes, whatever their tasks
        tasks = parts.tasks_of(experiment, "train") if config.algorithm.type != "sft" else ()
        if needs_verdict(config.reward):
            require_checks(tasks)
        evaluation_tasks = parts.tasks_of(experiment, "eval")
        experiment = experiment.for_tasks([*tasks, *evaluation_tasks])
        config = experiment.config
        made = environments.check(config, [*tasks, *evaluation_tasks], settings)
        if config.algorithm.type == "dagger":
            preflight.check_oracle(made, tasks)
        if config.learning.hint_turns or config.learning.imitation_coef:
            _check_oracle_helps(experiment, made, tasks)
        preflight.check_place(experiment)
        _tell_shared(experiment, tasks, evaluation_tasks)
        _tell_unproven(experiment, tasks, evaluation_tasks)
        facts: dict[str, str] = {}
        if config.trainer.type == "local":
            spec = model_spec(experiment.resolved, config.device)
            facts = preflight.model_facts(experiment, spec, examine(spec), trained=True)
            device_named(config.local_policy.sampler_device or "cpu")
        elif config.load_checkpoint_path is not None:
            from cuarl.workflow.tinker import starting_state

            starting_state(config.load_checkpoint_path)
        _check_endpoint(experiment)
        tasks, aside = kept_aside(tasks, config.validation_split, config.seed, evaluation_tasks)
        given = Inputs.of(config.reward, tasks, evaluation_tasks, aside)
        inputs.check(experiment, given)
        evaluation_plan = EvaluationPlan(config=config, tasks=evaluation_tasks, episodes=config.eval_episodes)
        validation_plan = (
            EvaluationPlan(config=config, tasks=aside, episodes=config.validation_episodes, purpose="validation")
            if aside
            else None
        )
        workers = hire.crew(config, settings)
        return cls(experiment, tasks, evaluation_plan, validation_plan, given, facts, workers)

    def plan(self) -> dict[str, Any]:
        """The plan in a few facts."""
        c = self.config
        group = "" if c.algorithm.type == "sft" else f" of {c.group_size}"
        training = "" if c.algorithm.type == "sft" else f"{len(self.tasks)} for training, "
        aside = self.validation_plan
        training += f"{len(aside.tasks)} for validation, " if aside else ""
        validated = f"; {aside.episodes} of validation with each checkpoint" if aside else ""
        when = [] if c.skip_baseline else ["before"]
        when += [f"every {c.eval_every} steps"] if 0 < c.eval_every < c.max_steps else []
        trained = f"LoRA of rank {c.lora_rank} on {c.lora_target_option}" if c.use_lora else "all weights"
        return {
            "model": f"{c.model_name}, {trained}",
            "tasks": f"{training}{len(self.evaluation_plan.tasks)} for evaluation ({self.evaluation_plan.label})",
            "training": f"{c.max_steps} steps of {c.groups_per_batch} groups{group}: "
            f"{c.max_steps * c.groups_per_batch * c.group_size} episodes of at most {c.max_turns} turns",
            "evaluation": f"{c.eval_episodes} episodes {', '.join([*when, 'at the end'])}{validated}",
            "algorithm": f"{c.algorithm.type}, learning rate {c.effective_learning_rate:g}",
            **self.facts,
        }


def _check_held(experiment: Experiment) -> None:
    """Objects that only one process has make a run that can't be resumed, nor made by several."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    for field in ("reward", "env"):
        path = value_of(experiment.config, field)
        if objects.is_held(path) and (several or experiment.resume is not None):
            what = "several processes can't share it" if several else "a run can't be resumed with it"
            raise ConfigError(
                f"the {field} {path} is an object of this session alone, so {what}",
                hint="put it into a module that can be imported, and pass it from there",
            )


def _tell_shared(experiment: Experiment, tasks: Sequence[Task], evaluated: Sequence[Task]) -> None:
    both = {task.digest for task in tasks} & {task.digest for task in evaluated}
    if both:
        experiment.watcher.note(
            f"{len(both)} of {len(evaluated)} evaluation tasks are trained on, too: success on them says little "
            "about others"
        )


def _tell_unproven(experiment: Experiment, tasks: Sequence[Task], evaluated: Sequence[Task]) -> None:
    """A task that can't be solved, or is solved at the start, teaches nothing and is no measure."""
    config = experiment.config
    every = list({task.id: task for task in (*tasks, *evaluated)}.values())
    if said := said_of(experiment.settings, every, [*config.tasks, *config.eval_tasks]):
        experiment.watcher.note(said)


def _check_oracle_helps(experiment: Experiment, made: Backend, tasks: Sequence[Task]) -> None:
    """See that an oracle can help in some of the tasks, and say in which it can't. Raises ConfigError."""
    option = "--hint-turns" if experiment.config.learning.hint_turns else "--imitation-coef"
    players.check_points(experiment.config)
    unknown = [task.id for task in tasks if not made.may_solve(task)]
    if len(unknown) == len(tasks):
        raise ConfigError(
            "nothing tells how any of the tasks is solved, so nobody can help where a group fails",
            where=option,
            hint=f"write plans for them (docs/guides/tasks.md#plans), or leave {option} out",
        )
    if unknown:
        shown = ", ".join(unknown[:3]) + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
        experiment.watcher.note(f"{option} has no effect on tasks that nothing tells how to solve: {shown}")


def _check_endpoint(experiment: Experiment) -> None:
    """See that a server gives what training needs, before anything is loaded."""
    config = experiment.config
    if config.model_base_url is None:
        return
    if config.algorithm.type == "sft":
        given = "--policy" if config.policy.type == "vllm" else "--model-base-url"
        raise ConfigError(
            f"sft samples nothing, so policy {config.policy.type} has no effect", hint=f"leave {given} out"
        )
    if not config.use_lora:
        raise ConfigError(
            "a server can be given adapters only, not whole models", where="--no-use-lora", hint="--use-lora"
        )
    from cuarl.workflow import endpoint, own_server
    from cuarl.workflow.from_config import model_spec

    if config.policy.type == "vllm":
        # once it is started, what it gives is tested, too; of several processes the main one starts it
        if int(os.environ.get("RANK", "0")) == 0:
            own_server.check(config)
        return
    spec = model_spec(experiment.resolved, config.device)
    endpoint.check(config, experiment.settings, spec, experiment.watcher.note)
