"""Which steps of a solution a base would take: its likeliest answer to the goal on every screen of the planner's way.

    python -m benchmarks.steps --model examples/wide-base
    python -m benchmarks.steps --model examples/reading-base --tasks settings_eval --steps 500 --wrong 20

A tap counts as right anywhere on the planner's element, a swipe in the planner's direction, anything else word for
word. Prints a JSON line with the share of right steps over all, by kind of action, and by category; ``--wrong`` prints
so many of the others before it. The planner's way is played, whatever the answer.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from transformers import AutoModelForImageTextToText

from cuarl.agent.formats import SYSTEM_PROMPTS
from cuarl.errors import AgentError
from cuarl.pretrain.exam import Exam, Question, matches
from cuarl.pretrain.goals import said
from cuarl.pretrain.moments import SIZES
from cuarl.pretrain.skills import Round
from cuarl.pretrain.trainee import Trainee
from cuarl.sim.kit.render import render
from cuarl.sim.phone.device import step
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.planner import Planner
from cuarl.sim.phone.start import prepare
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import PROFILES
from cuarl.tasks.source import load
from cuarl.tasks.task import Task
from cuarl.types import Answer, Click, Finish, LongPress

SUITES = ("phone_eval", "recipe_eval", "settings_eval")
LONGEST = 25


def way(task: Task, seed: int) -> Iterator[tuple[Question, str]]:
    """The screens of a solution as questions, and the task's category."""
    rng = random.Random(seed)
    instance = task.instantiate(seed)
    world = prepare(instance, Look.drawn(seed, 0.1), PROFILES["small"])
    planner = Planner(instance, world)
    for _ in range(LONGEST):
        action = planner.next(world)
        at = (action.x, action.y) if isinstance(action, Click | LongPress) else None
        aimed = [e for e in elements(world) if e.centre == at]
        kind = f"{action.kind} {aimed[-1].role}" if aimed else action.kind
        try:
            call = said(rng, world, action)
        except AgentError:
            return
        box = aimed[-1].box if aimed else None
        yield Question("phone", np.asarray(render(view(world))), Round(instance.goal, call, kind, box)), task.category
        if isinstance(action, Finish | Answer):
            return
        world = step(world, action)
        planner.acted(action)


def questions(suites: Sequence[str], count: int) -> list[tuple[Question, str]]:
    """``count`` steps of tasks in a fixed random order."""
    tasks = list(load(suites, role=None).tasks)
    random.Random(3).shuffle(tasks)
    found: list[tuple[Question, str]] = []
    for seed, task in enumerate(tasks):
        if len(found) < count:
            found += way(task, seed)
    return found


def main() -> None:
    """Read arguments, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tasks", nargs="+", default=SUITES)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--wrong", type=int, default=0)
    given = parser.parse_args()
    asked = questions(given.tasks, given.steps)
    trainee = Trainee(AutoModelForImageTextToText.from_pretrained(given.model, dtype=torch.float32)).eval()
    answers = Exam(tuple(q for q, _ in asked)).answers(trainee, given.model, dict(SYSTEM_PROMPTS))
    right: dict[str, list[bool]] = defaultdict(list)
    for (question, text), (_, category) in zip(answers, asked, strict=True):
        good = matches(text, question.round, SIZES["phone"])
        for key in ("all", question.round.skill, f"category {category}"):
            right[key].append(good)
        if not good and given.wrong:
            given.wrong -= 1
            print(json.dumps({"goal": question.round.request, "right": question.round.call, "said": text}))
    shares = {key: [round(float(np.mean(v)), 3), len(v)] for key, v in sorted(right.items())}
    print(json.dumps({"model": given.model, "tasks": list(given.tasks), "right": shares}))


if __name__ == "__main__":
    main()
