"""What a policy is shown at the start of a task: the first screenshot, the goal, and the prompt, token for token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from cuarl.config.load import resolve
from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.sim.devices import SIMULATED
from cuarl.errors import EnvError
from cuarl.settings import Settings
from cuarl.tasks.task import Task
from cuarl.types import Finish, Screenshot
from cuarl.workflow import environments, players, signals
from cuarl.workflow import episodes as parts

if TYPE_CHECKING:
    from cuarl.policy.transformers_policy import TransformersPolicy

_SHORTEST_RUN = 4
"""Equal tokens in a row that are told by their number: the places of a picture."""


class FirstSight(NamedTuple):
    """The first turn of one task at one seed, before anything is answered."""

    goal: str
    screenshot: Screenshot
    prompt: str
    """The tokens as text, special ones included; a run of equal ones is told by its number."""
    tokens: int


def first_sights(tasks: Sequence[Task], seed: int, sets: Sequence[str], settings: Settings) -> list[FirstSight]:
    """Of each task in turn, in its own environment, with the policy that ``sets`` (``key=value``) configure.

    Raises what configuring, starting and resetting environments raise.
    """
    found: list[FirstSight] = []
    for env, group in groupby(tasks, key=lambda task: "sim" if task.env in SIMULATED else task.env):
        there = list(group)
        config = resolve(flags={"env": env}, sets=sets).config
        backend = environments.check(config, there, settings)
        policy = players.load_model(config)
        found += signals.run(partial(_seen, there, seed, config, backend, policy))
    return found


async def _seen(
    tasks: Sequence[Task], seed: int, config: ExperimentConfig, backend: Backend, policy: TransformersPolicy
) -> list[FirstSight]:
    async with parts.serving(backend):
        return [await _first(task, seed, config, backend, policy) for task in tasks]


async def _first(
    task: Task, seed: int, config: ExperimentConfig, backend: Backend, policy: TransformersPolicy
) -> FirstSight:
    instance = task.instantiate(seed)
    env = await backend.make_env(instance)
    try:
        shown = await env.reset(instance, seed)
        # some environments word the goal themselves
        instance = instance.model_copy(update={"goal": shown.text.get("goal", instance.goal)})
        words = players.wording(config, policy, env)
        words.see(shown, ())
        sampled = words.decision(instance, (), Finish(success=False)).sampled
    finally:
        await env.close()
    if sampled is None:
        raise EnvError("the first prompt does not fit", where=f"task {task.id}", hint="--set max_prompt_tokens=N")
    ids = sampled.prompt_ids
    return FirstSight(instance.goal, shown.screenshot, _text(policy, ids), len(ids))


def _text(policy: TransformersPolicy, ids: Sequence[int]) -> str:
    pieces, plain = list[str](), list[int]()
    for token, run in groupby(ids):
        number = len(list(run))
        if number < _SHORTEST_RUN:
            plain += [token] * number
            continue
        pieces += [policy.tokenizer.decode(plain), f"{policy.tokenizer.decode([token])}×{number}"]
        plain = []
    return "".join([*pieces, policy.tokenizer.decode(plain)])
