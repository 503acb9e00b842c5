"""How a plan names an element of a page.

A text alone means a text (after ``into`` a field, by its label); a mapping says more::

    Save                                   the text that is shown
    {text: Save}                           the same
    {css: "#save"}                         a CSS selector, in components and frames too
    {role: button, name: Save}             an ARIA role, with its name if needed
    {label: E-mail}                        the field with that label or placeholder
    {css: li, nth: 2}                      the second of those that are visible
"""

from __future__ import annotations

import re

from cuarl.env.plans.targets import Names, Target
from cuarl.suggest import did_you_mean

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


def _plain_problem(text: str) -> str:
    if _SELECTOR_LIKE.match(text):
        return f'"{text}" looks like a selector: write {{css: "{text}"}}, or {{text: "{text}"}}'
    return ""


def _problem(target: Target) -> str:
    if target.by == "role" and target.value not in ROLES:
        return f'there is no role "{target.value}"{did_you_mean(target.value, ROLES)}'
    if target.by == "css" and (wrong := css_problem(target.value)):
        return f"the selector {target.value} can't be read: {wrong}"
    return ""


ON_PAGES = Names(("css", "role", "text", "label"), _plain_problem, _problem)


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
