"""From parts to tasks: one to four of them together, one but not another, or one of two by a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cuarl.sim.phone.generator.device import PATHS
from cuarl.sim.phone.generator.grammar import Grammar
from cuarl.sim.phone.generator.part import Kind, Part, Scope, equals
from cuarl.sim.phone.generator.settings_kinds import STATES, start_of, words_of
from cuarl.tasks.task import Check, Difficulty

EASY, MEDIUM = 6, 12
"""Turns of the oracle up to which a task is easy, or of medium difficulty."""
SPARE_TURNS = 4
CROWDED = 0.3
"""Share of tasks on whose device more is drawn than they need."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A part and its kind."""

    kind: Kind
    part: Part

    @property
    def app(self) -> str:
        """Key of the app in which it is done."""
        return self.part.app or self.kind.app

    @property
    def touches(self) -> tuple[str, ...]:
        """State paths that it needs for itself; no other part may uninstall its app, or change it."""
        return (*self.part.touches, f"apps.{self.app}")

    def clause(self, grammar: Grammar, *, question: bool = False) -> str:
        """What it asks for, in words."""
        return grammar.clause(self.kind.name, self.part.words, question=question)


@dataclass(frozen=True, slots=True)
class Draft:
    """A task but for its name."""

    goal: str
    asked: tuple[Asked, ...]
    checks: tuple[Check, ...]
    preset: Mapping[str, Any]
    steps: int
    form: str
    """How the parts are put together: ``one``, ``several``, ``sparing`` or ``condition``."""
    plan: tuple[Mapping[str, Any], ...] = ()

    @property
    def difficulty(self) -> Difficulty:
        """By the turns that the oracle takes."""
        return "easy" if self.steps <= EASY else "medium" if self.steps <= MEDIUM else "hard"

    @property
    def max_steps(self) -> int:
        """Twice what the oracle takes, and a few for what is in the way."""
        return 2 * self.steps + SPARE_TURNS

    @property
    def allow(self) -> tuple[str, ...]:
        """What else may change."""
        return tuple(dict.fromkeys(path for one in self.asked for path in one.part.allow))


def clash(touches: Sequence[str], others: Sequence[str]) -> bool:
    """Whether some path of one side is, or lies below, one of the other side."""
    return any(a == b or a.startswith(f"{b}.") or b.startswith(f"{a}.") for a in touches for b in others)


def together(asked: Sequence[Asked], grammar: Grammar) -> Draft:
    """One part, or several one after the other."""
    if len(asked) == 1:
        goal = grammar.alone(asked[0].clause(grammar, question=True))
    else:
        goal = grammar.together([one.clause(grammar) for one in asked])
    return Draft(goal, tuple(asked), **_parts(asked), form="one" if len(asked) == 1 else "several")


def _parts(asked: Sequence[Asked]) -> dict[str, Any]:
    return {
        "checks": tuple(check for one in asked for check in one.part.checks),
        "preset": {path: value for one in asked for path, value in one.part.preset.items()},
        "steps": 1 + sum(one.part.steps for one in asked),
        "plan": tuple(line for one in asked for line in one.part.plan),
    }


def sparing(asked: Asked, scope: Scope, grammar: Grammar) -> Draft | None:
    """One part, and a setting that must stay: where there is one, of the page where something is to be changed."""
    switches = [one for one in scope.settings if one.kind == "switch" and not clash((one.path,), asked.touches)]
    near = [one for one in switches if one.app == asked.app and _beside(scope, one.page, asked.part)]
    if not switches or asked.kind.name == "setting.all_but":
        return None
    other = scope.draw.choose(near or switches)
    stays = scope.draw.chance(0.5)
    draft = Draft(
        grammar.sparing(asked.clause(grammar), words_of(scope, other)["label"]),
        (asked,),
        **_parts([asked]),
        form="sparing",
    )
    return replace(
        draft,
        checks=(*draft.checks, equals(other.path, stays)),
        preset={**draft.preset, **start_of(other, stays)},
    )


def _beside(scope: Scope, page: str, part: Part) -> bool:
    """Whether a page has a setting that the part changes."""
    return any(one.page == page and one.path == part.checks[0].path for one in scope.settings)


def chosen(pair: Sequence[Asked], scope: Scope, grammar: Grammar) -> Draft | None:
    """One of two parts, by whether a switch is on."""
    first, second = pair
    taken = (*first.touches, *second.touches)
    switches = [one for one in scope.settings if one.kind == "switch" and not clash((one.path,), taken)]
    if not switches:
        return None
    fact = scope.draw.choose(switches)
    on, said = scope.draw.chance(0.5), scope.draw.chance(0.5)
    done = first if on == said else second
    words = f"{words_of(scope, fact)['label']} is {STATES[said]}"
    goal = grammar.choosing(words, first.clause(grammar), second.clause(grammar))
    parts = _parts([done])
    return Draft(
        goal,
        (first, second),
        parts["checks"],
        {**_parts([first, second])["preset"], **start_of(fact, on)},
        parts["steps"] + fact.steps + 2,
        "condition",
        ({"open": fact.page}, *parts["plan"]),
    )


def preset_of(draft: Draft, scope: Scope) -> dict[str, Any]:
    """What the device starts with: what the parts need, and now and then more, so that screens differ."""
    kinds = dict.fromkeys(kind for one in draft.asked for kind in one.part.uses)
    if scope.draw.chance(CROWDED):
        taken = [path for one in draft.asked for path in one.touches]
        for kind in scope.draw.some(sorted(PATHS), 2):
            if not clash((PATHS[kind],), taken) and not PATHS[kind].startswith("network."):
                kinds[kind] = None
    return {**scope.device.preset(*kinds), **draft.preset}
