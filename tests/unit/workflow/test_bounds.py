"""Nobody runs more episodes at the same time than the environments bear: training, evaluating or rolling out."""

import ast
from pathlib import Path

import anyio
import pytest

import cuarl
from cuarl.config.load import resolve
from cuarl.env.backend import Backend
from cuarl.settings import Settings
from cuarl.workflow import environments
from cuarl.workflow.collector import Collector
from cuarl.workflow.evaluation import EvaluationPlan, run_evaluation
from cuarl.workflow.players import scripted
from tests.unit.workflow.switch import TASKS, Lamp

PACKAGE = Path(cuarl.__file__).parent


def collecting(path):
    """Whether a file imports what runs many episodes at once."""
    code = path.read_text()
    nodes = ast.walk(ast.parse(code)) if "cuarl.rollout.pool" in code else ()
    found = [n for n in nodes if isinstance(n, ast.ImportFrom)]
    return any(n.module == "cuarl.rollout.pool" and any(a.name == "collect" for a in n.names) for n in found)


def test_only_two_places_collect_and_both_are_told_the_bound():
    found = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if collecting(path)}
    assert found == {"workflow/episodes.py", "evaluate/suite.py"}


@pytest.mark.parametrize(("bound", "most"), [(2, 2), (None, 6)])
def test_an_evaluation_keeps_to_the_bound(monkeypatch, bound, most):
    running, seen = set(), []

    class Counted(Lamp):
        def begin(self, task, seed):
            running.add(self)
            seen.append(len(running))

        async def step(self, action):
            await anyio.sleep(0.001)
            return await super().step(action)

        def end(self):
            running.discard(self)

    async def make(task):
        return Counted()

    monkeypatch.setattr(environments, "backend", lambda *_: Backend(make, at_most=bound))
    what = EvaluationPlan(config=resolve(flags={"max_concurrent_rollouts": 6}).config, tasks=TASKS, episodes=12)
    found = anyio.run(lambda: run_evaluation(what, scripted("random"), Settings(), prefix="e"))
    assert (max(seen), len(found.outcomes), running) == (most, 12, set())


@pytest.mark.parametrize(("bound", "at_once"), [(2, 2), (None, 5), (9, 5)])
def test_both_schedules_of_training_are_told_the_bound(bound, at_once):
    config = resolve(flags={"max_concurrent_rollouts": 5}).config
    assert Collector(config=config, tasks=TASKS, run_id="r", backend=Backend(None, at_most=bound)).at_once == at_once
