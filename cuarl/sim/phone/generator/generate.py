"""Tasks without end: drawn by a seed from what the phone offers, each with its presets, checks, plan and limit."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from cuarl.errors import TaskError
from cuarl.sim.phone.generator import daily_kinds, place_kinds, record_kinds, settings_kinds, splits
from cuarl.sim.phone.generator.avoid import Avoided
from cuarl.sim.phone.generator.catalogue import Catalogue, Page, Setting, catalogue
from cuarl.sim.phone.generator.compose import Asked, Draft, chosen, clash, preset_of, sparing, together
from cuarl.sim.phone.generator.device import Device
from cuarl.sim.phone.generator.draw import Draw
from cuarl.sim.phone.generator.grammar import Grammar
from cuarl.sim.phone.generator.part import KINDS, Kind, Scope
from cuarl.sim.phone.generator.splits import HELD_OUT_APPS, HELD_OUT_KINDS, is_held_out_thing
from cuarl.sim.phone.generator.words import Words
from cuarl.tasks.review import goal_words
from cuarl.tasks.task import Split, Task, TaskInstance

__all__ = ["Companions", "generate"]

FAMILIES = (settings_kinds, place_kinds, record_kinds, daily_kinds)
"""Modules that fill ``KINDS``."""
PARTS = (1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 4)
"""Numbers of parts, each as often as it is drawn."""
ABOUT_A_PAGE = ("setting.switch",) * 4 + ("setting.choice", "setting.level", "page.open")
"""Kinds of goals about one page, each as often as it is drawn."""
CONDITION, SPARING = 0.1, 0.1
"""Shares of tasks with a condition, and with something that must stay."""
Offer = tuple[tuple[Setting, ...], tuple[Page, ...], tuple[str, ...], Callable[[str], bool]]
TRIES = 1000
"""Draws of one task, after which there seem to be no more."""


def generate(count: int, seed: int, avoid: Sequence[TaskInstance] = ()) -> Iterator[Task]:
    """``count`` tasks with different goals, none of them near one of ``avoid``; each is made when it is asked for.

    The same for the same arguments on every Python and machine; a larger count goes on where a smaller one ended.
    Raises TaskError if no further goal is found.
    """
    source = _Source(Avoided(avoid), catalogue())
    known: set[str] = set()
    for number in range(count):
        for attempt in range(TRIES):
            task = source.drawn(seed, number, attempt)
            if task and (words := goal_words(task.bind({}))) not in known:
                known.add(words)
                yield task
                break
        else:
            raise TaskError(f"no goal beyond {number} is left", hint=f"--count {number}")


class Companions:
    """Draws several tasks about one device, of those to train on: goals that may be asked on the very same screen."""

    def __init__(self, avoid: Sequence[TaskInstance] = ()) -> None:
        self._source = _Source(Avoided(avoid), catalogue())

    def drawn(self, key: str, count: int) -> list[Task]:
        """The tasks of ``key``, at most ``count``, fewer where parts don't fit: each with a preset of its own."""
        return [task for number in range(count) if (task := self._source.beside(key, number))]

    def about(self, page: str, count: int) -> list[Task]:
        """At most ``count`` tasks that ask to open a page, or to set something on it; none of a page held out."""
        return [task for number in range(count) if (task := self._source.about(page, number))]


class _Source:
    """What tasks are drawn from, by the part that they belong to."""

    def __init__(self, avoided: Avoided, whole: Catalogue) -> None:
        self._avoided, self._whole = avoided, whole
        self._words = {held_out: Words(held_out) for held_out in (False, True)}
        free = [one for one in whole.settings if one.path not in avoided.paths]
        elsewhere = {one.path for one in free if not _is_of_held_out_app(one)}
        common = [one for one in free if not _is_of_held_out_app(one)]
        self._settings = {held_out: _by_object(common, held_out) for held_out in (False, True)}
        self._apart = tuple(one for one in free if _is_of_held_out_app(one) and one.path not in elsewhere)
        self._pages = [page for page in whole.pages if page.id not in avoided.pages]
        self._offers: dict[str, Offer] = {}
        self._tables: dict[tuple[Split, bool], tuple[list[Kind], list[float]]] = {}

    def drawn(self, seed: int, number: int, attempt: int) -> Task | None:
        """A task, or None if what was drawn does not fit."""
        draw = Draw("task", seed, number, attempt)
        split = splits.drawn(Draw("split", seed, number))
        device = Device(f"device/{seed}/{number}/{attempt}", self._words[split == "object"])
        scope = self._scope(split, draw, device, first=False)
        draft = self._draft(split, scope, Grammar(draw, held_out=split == "wording"))
        if draft is None or self._avoided.covers(draft.goal, draft.checks):
            return None
        return _as_task(draft, scope, f"gen{seed}-{number:05d}", split)

    def beside(self, key: str, number: int) -> Task | None:
        """A task to train on about the device of ``key``, or None if what was drawn does not fit."""
        draw = Draw("companion", key, number)
        scope = self._scope("train", draw, Device(f"device/{key}", self._words[False]), first=False)
        draft = self._draft("train", scope, Grammar(draw, held_out=False))
        if draft is None or self._avoided.covers(draft.goal, draft.checks):
            return None
        return _as_task(draft, scope, f"{key}-{number}", "train")

    def about(self, page: str, number: int) -> Task | None:
        """A task to train on about a page, or None if what was drawn does not fit."""
        draw = Draw("about", page, number)
        whole = self._scope("train", draw, Device(f"device/{page}/{number}", self._words[False]), first=False)
        settings = tuple(one for one in whole.settings if one.page == page)
        scope = replace(whole, settings=settings, pages=tuple(one for one in whole.pages if one.id == page))
        one = KINDS[draw.choose(ABOUT_A_PAGE)]
        part = one.make(scope)
        if part is None:
            return None
        draft = together([Asked(one, part)], Grammar(draw, held_out=False))
        if self._avoided.covers(draft.goal, draft.checks):
            return None
        return _as_task(draft, scope, f"{page}-{number}", "train")

    def _draft(self, split: Split, scope: Scope, grammar: Grammar) -> Draft | None:
        draw = scope.draw
        if draw.chance(CONDITION):
            pair = self._asked(split, scope, 2, ended=False)
            return chosen(pair, scope, grammar) if pair else None
        if draw.chance(SPARING):
            single = self._asked(split, scope, 1, ended=False)
            return sparing(single[0], scope, grammar) if single else None
        asked = self._asked(split, scope, draw.choose(PARTS), ended=True)
        return together(asked, grammar) if asked else None

    def _asked(self, split: Split, scope: Scope, count: int, *, ended: bool) -> list[Asked]:
        """Parts that don't get in each other's way; what is new stands in one of them, if it is a kind or an app.

        Empty if they don't fit. ``ended`` lets the last one be of a kind that goals have once.
        """
        found: list[Asked] = []
        new = scope.draw.below(count)
        for i in range(count):
            special = split if split not in ("kind", "app") or i == new else "train"
            inner = self._scope(special, scope.draw, scope.device, first=True)
            kind = self._kind(special, scope.draw, last=ended and i == count - 1)
            part = kind.make(inner) if kind else None
            if kind is None or part is None:
                return []
            one = Asked(kind, part)
            if any(clash(one.touches, other.part.touches) or clash(one.part.touches, other.touches) for other in found):
                return []
            found.append(one)
        return found

    def _kind(self, split: Split, draw: Draw, *, last: bool) -> Kind | None:
        kinds, weights = self._table(split, last)
        return kinds[bisect.bisect(weights, draw.below(2**30) / 2**30 * weights[-1])] if kinds else None

    def _table(self, split: Split, last: bool) -> tuple[list[Kind], list[float]]:
        if (split, last) not in self._tables:
            kinds = [kind for kind in KINDS.values() if _is_of(kind, split) and (last or not kind.last)]
            self._tables[split, last] = kinds, list(accumulate(kind.weight for kind in kinds))
        return self._tables[split, last]

    def _scope(self, split: Split, draw: Draw, device: Device, *, first: bool) -> Scope:
        apart = split == "app" and first
        key = "app" if apart else "object" if split == "object" else "train"
        if key not in self._offers:
            self._offers[key] = self._offer(apart, held_out=key == "object")
        return Scope(draw, device, self._whole, *self._offers[key])

    def _offer(self, apart: bool, *, held_out: bool) -> Offer:
        """Settings, pages and apps that may be asked about, and whether another thing may."""

        def fits(thing: str) -> bool:
            return apart or is_held_out_thing(thing) == held_out

        pages = [page for page in self._pages if (page.app in HELD_OUT_APPS) == apart]
        return (
            self._apart if apart else self._settings[held_out],
            tuple(page for page in pages if fits(page.id)),
            tuple(key for key in self._whole.apps if (key in HELD_OUT_APPS) == apart),
            fits,
        )


def _is_of_held_out_app(one: Setting) -> bool:
    return one.app in HELD_OUT_APPS or one.about in HELD_OUT_APPS or one.path.split(".")[1] in HELD_OUT_APPS


def _by_object(settings: Sequence[Setting], held_out: bool) -> tuple[Setting, ...]:
    return tuple(one for one in settings if is_held_out_thing(one.path) == held_out)


def _is_of(kind: Kind, split: Split) -> bool:
    """Whether a kind is drawn for the part that is special to a split."""
    if split == "app":
        return kind.name not in HELD_OUT_KINDS and (kind.app in HELD_OUT_APPS or not kind.app)
    return kind.app not in HELD_OUT_APPS and (kind.name in HELD_OUT_KINDS) == (split == "kind")


def _as_task(draft: Draft, scope: Scope, name: str, split: Split) -> Task:
    kinds = tuple(dict.fromkeys(one.kind.name for one in draft.asked))
    return Task(
        id=name,
        description=draft.goal,
        category=draft.asked[0].kind.category,
        difficulty=draft.difficulty,
        max_steps=draft.max_steps,
        preset=preset_of(draft, scope),
        checks=draft.checks,
        allow=draft.allow,
        plan=draft.plan,
        tags=(draft.form, *kinds),
        split=split,
    )
