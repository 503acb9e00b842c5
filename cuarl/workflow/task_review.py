"""What is wrong with chosen tasks, by themselves, against all suites, and for their environments."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from cuarl.env.plans.check import plan_problem
from cuarl.env.presets import preset_problem
from cuarl.tasks.build import bindings
from cuarl.tasks.files import Located
from cuarl.tasks.review import Finding, Judged, review
from cuarl.tasks.suites import LoadedSuite, Role

MOST_BINDINGS = 20
"""Of a task's values are tried with its environment's own rules."""


def findings_on(
    located: Sequence[Located], suites: Sequence[LoadedSuite], role_of: Callable[[Located], Role | None]
) -> list[Finding]:
    """Findings on the chosen tasks; leaks are looked for in all suites."""
    chosen = {one.task.id for one in located}
    everything = {one.task.id: one for one in [*located, *(o for s in suites for o in s.located)]}
    judged = [Judged(one, role_of(one)) for one in everything.values()]
    return [*_impossible(located), *(finding for finding in review(judged) if finding.task_id in chosen)]


def _impossible(located: Sequence[Located]) -> Iterator[Finding]:
    """Tasks that their environment can't be set up for, or whose plan it can't follow, with some values at least."""
    for one in located:
        found = list(bindings(one.task, MOST_BINDINGS))
        problems = itertools.chain(map(preset_problem, found), map(plan_problem, found))
        if problem := next(filter(None, problems), None):
            yield Finding("error", one.task.id, one.where, problem)
