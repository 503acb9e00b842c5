"""What a line of a plan points at on a page: read and checked without a browser.

A text alone is what the screenshot shows (the label of the field, after ``into``); a mapping says more::

    Save                                   the text that is shown
    {text: Save}                           the same
    {css: "#save"}                         a CSS selector, in components and frames too
    {role: button, name: Save}             an ARIA role, with its name if needed
    {label: E-mail}                        the field with that label or placeholder
    {css: li, nth: 2}                      the second of those that are visible
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cuarl.suggest import did_you_mean

By = Literal["css", "role", "text", "label"]
WAYS: tuple[By, ...] = ("css", "role", "text", "label")
_ROLES = """
alert alertdialog application article banner blockquote button caption cell checkbox code columnheader
combobox complementary contentinfo definition deletion dialog directory document emphasis feed figure form
generic grid gridcell group heading img insertion link list listbox listitem log main marquee math menu
menubar menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation
progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider
spinbutton status strong subscript superscript switch tab table tablist tabpanel term textbox time timer
toolbar tooltip tree treegrid treeitem
"""
ROLES = frozenset(_ROLES.split())
"""Of WAI-ARIA 1.2, https://www.w3.org/TR/wai-aria-1.2/#role_definitions."""

_SELECTOR_LIKE = re.compile(r"[#.][A-Za-z_][\w-]*$|[a-z]*\[[\w-]+([~|^$*]?=.*)?\]$|(css|xpath|text|role|id)=|//")
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_INNERMOST = re.compile(r"\[[^\[\]()]*\]|\([^\[\]()]*\)")
_OUTSIDE = re.compile(r"[^\w\s#.:*>+~,|\\\-\u0080-\U0010ffff]")


class BadTarget(ValueError):
    """What is wrong with a target, in words."""


@dataclass(frozen=True, slots=True)
class Target:
    """How an element is found: one of ``WAYS``, with its value."""

    by: By
    value: str
    name: str = ""
    """Accessible name, with a role."""
    nth: int | None = None
    """Which of the visible ones, from 1; None where there may be one only."""

    def __str__(self) -> str:
        words = f'{self.by} "{self.value}"' if self.by != "role" else f"role {self.value}"
        return words + (f' "{self.name}"' if self.name else "") + (f", nth {self.nth}" if self.nth else "")


def read_target(value: Any, plain: By = "text") -> Target:
    """The target that ``value`` names; a text alone is one by ``plain``. Raises BadTarget."""
    if not isinstance(value, Mapping):
        text = text_of(value)
        if _SELECTOR_LIKE.match(text):
            raise BadTarget(f'"{text}" looks like a selector: write {{css: "{text}"}}, or {{text: "{text}"}}')
        return Target(plain, text)
    ways = [way for way in WAYS if way in value]
    if len(ways) != 1:
        raise BadTarget(f"{dict(value)} points at nothing: give one of {', '.join(WAYS)}")
    (way,) = ways
    known = (way, "nth", *(("name",) if way == "role" else ()))
    for key in value:
        if key not in known:
            raise BadTarget(f"unknown key {key} beside {way}{did_you_mean(str(key), known)}")
    target = Target(
        way, text_of(value[way]), text_of(value["name"]) if "name" in value else "", _number(value.get("nth"))
    )
    if problem := _problem(target):
        raise BadTarget(problem)
    return target


def text_of(value: Any) -> str:
    """A text, or a number as one. Raises BadTarget for anything else, and for an empty one."""
    if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        return str(value)
    raise BadTarget(f"{value!r} is no text")


def css_problem(selector: str) -> str:
    """What is wrong with the syntax of a CSS selector, as far as that can be told without a browser; else empty."""
    rest = _QUOTED.sub("_", selector)
    if '"' in rest or "'" in rest:
        return "a quote is not closed"
    if ">>" in rest:
        return "selectors can't be chained by >>"
    while (inner := _INNERMOST.sub("", rest)) != rest:
        if re.search(r"\[\s*\]|\[\s*[=~|^$*]", rest):
            return "an attribute has no name"
        rest = inner
    if strange := re.search(r"[\[\]()]", rest):
        return f"{strange[0]} has no counterpart"
    if strange := _OUTSIDE.search(rest):
        return f"{strange[0]} stands where CSS has no place for it"
    if re.search(r"[#.](?![\w\\\-\u0080-\U0010ffff])|[#.]-?\d", rest):
        return "no name follows # or ., or one that begins with a digit"
    if re.search(r"^\s*[>+~]|[>+~,]\s*([>+~,]|$)|^\s*,", rest):
        return "nothing stands beside a >, +, ~ or ,"
    return "" if not re.search(r":(?![\w:-])", rest) else "no name follows :"


def _problem(target: Target) -> str:
    if target.by == "role" and target.value not in ROLES:
        return f'there is no role "{target.value}"{did_you_mean(target.value, ROLES)}'
    if target.by == "css" and (wrong := css_problem(target.value)):
        return f"the selector {target.value} can't be read: {wrong}"
    return ""


def _number(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise BadTarget(f"nth is {value!r}: count from 1")
