"""The calculator: exact arithmetic on what is typed; after ``=`` an operator goes on with the result."""

from __future__ import annotations

from cuarl.sim.device.arithmetic import ERROR, LONGEST, evaluate
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, Put, Seq
from cuarl.sim.phone import forms
from cuarl.sim.phone.registry import AppModule, Context, Screen

APP = AppModule("calculator", home="calculator/main")

EXPRESSION, RESULT = "calculator.expression", "calculator.result"
KEYS: tuple[tuple[str, str, str], ...] = (
    ("C", "C", ""), ("(", "(", ""), (")", ")", ""), ("Divide", "/", "divide"),
    ("7", "7", ""), ("8", "8", ""), ("9", "9", ""), ("Times", "*", "times"),
    ("4", "4", ""), ("5", "5", ""), ("6", "6", ""), ("Minus", "-", "minus"),
    ("1", "1", ""), ("2", "2", ""), ("3", "3", ""), ("Plus", "+", "plus"),
    ("0", "0", ""), (".", ".", ""), ("Delete", "D", "backspace"), ("Equals", "=", "equals"),
)  # fmt: skip
"""Label, what it types (C, D and = act instead), icon; in rows of four."""


@APP.page("main")
def main(ctx: Context) -> Screen:
    """Display and keys."""
    state = ctx.state.calculator
    keys = tuple(_key(state.expression, state.result, *key) for key in KEYS)
    typed = state.expression or "0"
    lines = (typed, f"= {state.result}") if state.result else ("", typed)
    display = (
        w.Display(lines[0], _size(lines[0], 15), "right", 28),
        w.Display(lines[1], _size(lines[1], 28), "right", 38),
    )
    return Screen("Calculator", (*display, w.Divider(), forms.keypad(ctx, keys, 4, taken=144, gap=3)))


def _size(text: str, most: float) -> float:
    """Font size at which a text fits into one line."""
    return min(most, 300 / max(1, len(text)))


def _key(expression: str, result: str, label: str, char: str, icon: str) -> w.Button:
    return w.Button(label, _press(expression, result, char), icon=icon, look="round")


def _press(expression: str, result: str, char: str) -> Effect:
    match char:
        case "C":
            return Seq((Put(EXPRESSION, ""), Put(RESULT, "")))
        case "D":
            return Seq((Put(EXPRESSION, expression[:-1]), Put(RESULT, "")))
        case "=":
            return Put(RESULT, evaluate(expression) if expression else "")
    return Seq((Put(EXPRESSION, _typed(expression, result, char)), Put(RESULT, "")))


def _typed(expression: str, result: str, char: str) -> str:
    """The expression after a key. A second operator replaces the first; a minus may follow another one as a sign."""
    if result:
        expression = result if char in "+-*/" and result != ERROR else ""
    if char in "+*/":
        expression = expression.rstrip("+-*/")
        if not expression or expression.endswith("("):
            return expression
    elif char == "-" and expression.endswith(("-", "+")):
        expression = expression[:-1]
    return expression + char if len(expression) < LONGEST else expression
