"""Calculator: keys to click or type, exact arithmetic."""

from __future__ import annotations

from typing import Literal

from cuarl.sim.desktop.registry import Context, DesktopApp, Pane
from cuarl.sim.desktop.widgets import Push
from cuarl.sim.desktop.world import DesktopWorld
from cuarl.sim.device.arithmetic import LONGEST, evaluate
from cuarl.sim.kit import widgets as w

ROWS = ("C()/", "789*", "456-", "123+", "0.%=")
NAMES = {"/": "Divide", "*": "Multiply", "-": "Subtract", "+": "Add", "=": "Equals"}
ICONS = {"/": "divide", "*": "times", "-": "minus", "+": "plus", "=": "equals"}


def pane(ctx: Context) -> Pane:
    """A display over the keys."""
    state = ctx.state.calculator
    keys = tuple(
        Push(
            NAMES.get(char, char),
            ctx.do("press", char, writes=("calculator",)),
            icon=ICONS.get(char, ""),
            look=_look(char),
        )
        for row in ROWS
        for char in row
    )
    shown = w.Display(state.result or state.expression or "0", 20, "right", 32)
    line = w.Paragraph(f"{state.expression} =" if state.result else " ", 10, align="right")
    return Pane("Calculator", (line, shown, w.Grid(keys, 4, 29, gap=1, pad=6)), ground="page")


def _look(char: str) -> Literal["suggested", "operator", "key"]:
    return "suggested" if char == "=" else "operator" if char in "/*-+" else "key"


CHARACTERS = "0123456789+-*/().%"
APP = DesktopApp(
    "calculator",
    "Calculator",
    pane,
    (168, 246),
    single=True,
    keys={"return": "equals", "escape": "reset", "backspace": "erase", "delete": "reset"},
)


@APP.action("press")
def press(world: DesktopWorld, key: str, char: str) -> DesktopWorld:
    """One key of the calculator."""
    if char in "=C":
        return equals(world, key) if char == "=" else reset(world, key)
    state = world.state.calculator
    before = state.expression
    if state.result:
        before = state.result if char in "+-*/%" and state.result != "Error" else ""
    return world.put("calculator.expression", (before + char)[:LONGEST]).put("calculator.result", "")


@APP.action("type")
def type_keys(world: DesktopWorld, key: str, text: str) -> DesktopWorld:
    """Characters from the keyboard; those that mean nothing here are ignored."""
    for char in text.replace("x", "*").replace(",", "."):
        if char in CHARACTERS or char == "=":
            world = press(world, key, char)
    return world


@APP.action("equals")
def equals(world: DesktopWorld, key: str) -> DesktopWorld:
    """Show the result."""
    expression = world.state.calculator.expression
    return world.put("calculator.result", evaluate(expression)) if expression else world


@APP.action("reset")
def reset(world: DesktopWorld, key: str) -> DesktopWorld:
    """Start anew."""
    return world.put("calculator.expression", "").put("calculator.result", "")


@APP.action("erase")
def erase(world: DesktopWorld, key: str) -> DesktopWorld:
    """Take the last character back."""
    state = world.state.calculator
    return reset(world, key) if state.result else world.put("calculator.expression", state.expression[:-1])
