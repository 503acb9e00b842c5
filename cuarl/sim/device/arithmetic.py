"""What calculators compute: exact arithmetic on what is typed."""

from __future__ import annotations

import re
from fractions import Fraction

TOKEN = re.compile(r"\d+\.?\d*|\.\d+|[-+*/()%]")
LONGEST = 24
DIGITS = 10
ERROR = "Error"


def evaluate(expression: str) -> str:
    """The value of an expression of + - * / % and brackets, as the display shows it; ``Error`` if it has none."""
    tokens = TOKEN.findall(expression)
    if not tokens or "".join(tokens) != expression:
        return ERROR
    try:
        value = _sum(tokens)
    except (ZeroDivisionError, ValueError, IndexError):
        return ERROR
    return ERROR if tokens else shown(value)


def _sum(tokens: list[str]) -> Fraction:
    value = _product(tokens)
    while tokens and tokens[0] in "+-":
        value = value + _product(tokens) if tokens.pop(0) == "+" else value - _product(tokens)
    return value


def _product(tokens: list[str]) -> Fraction:
    value = _factor(tokens)
    while tokens and tokens[0] in "*/":
        value = value * _factor(tokens) if tokens.pop(0) == "*" else value / _factor(tokens)
    return value


def _factor(tokens: list[str]) -> Fraction:
    """A signed number or bracket, with percent signs after it."""
    token = tokens.pop(0)
    if token == "-":
        return -_factor(tokens)
    if token == "(":
        value = _sum(tokens)
        if tokens.pop(0) != ")":
            raise ValueError("a bracket is not closed")
    else:
        value = Fraction(token)
    while tokens and tokens[0] == "%":
        tokens.pop(0)
        value /= 100
    return value


def shown(value: Fraction) -> str:
    """A number with at most ten significant digits; whole numbers in full."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.{DIGITS}g}"
