"""A task's ``plan`` for a page: read and checked here, without a browser, and followed by ``following``.

``env.plans.steps`` has the steps, and ``targets`` says how a place is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from cuarl.env.browser.keys import UnknownKey, chord
from cuarl.env.browser.targets import ON_PAGES
from cuarl.env.plans.steps import ClickStep, KeyStep, Line, ScrollStep, Step, Words, read_steps

HELP = "docs/guides/browser.md#plans"


def _chord_problem(keys: tuple[str, ...]) -> str:
    try:
        chord(keys)
    except UnknownKey as error:
        return str(error)
    return ""


WORDS = Words(("click", "type", "key", "scroll", "wait_for", "answer"), ON_PAGES, _chord_problem, HELP)


def read_plan(lines: Sequence[Line]) -> tuple[Step, ...]:
    """The steps of a plan whose parameters are filled in. Raises TaskError that names the step."""
    return read_steps(lines, WORDS)


def phone_problem(steps: Sequence[Step]) -> str:
    """What of a plan a phone's actions can't say; empty if nothing."""
    for number, step in enumerate(steps, start=1):
        match step:
            case ScrollStep():
                return f"step {number} of the plan: with a phone's actions a page can't be scrolled"
            case ClickStep(button="right" | "middle" as button):
                return f"step {number} of the plan: a phone has no {button} button"
            case KeyStep(keys=keys) if chord(keys) not in PHONE_KEYS:
                return f"step {number} of the plan: a phone has no key {'+'.join(keys)}"
    return ""


PHONE_KEYS: Mapping[tuple[str, ...], Literal["enter", "back"]] = {("Enter",): "enter", ("Alt", "ArrowLeft"): "back"}
"""Chords for which a phone has a button, in Playwright's names."""
