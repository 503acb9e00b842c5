import ast
import operator
import random
from fractions import Fraction

import pytest

from cuarl.sim.device.arithmetic import ERROR, evaluate, shown
from tests.unit.sim.phone.apps.finger import crawl, device, tap

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
KEYS = {"+": "Plus", "-": "Minus", "*": "Times", "/": "Divide", "=": "Equals"}


def press(world, keys):
    return tap(world, *(KEYS.get(key, key) for key in keys))


def reference(node):
    match node:
        case ast.Expression(body):
            return reference(body)
        case ast.BinOp(left, op, right):
            return OPERATORS[type(op)](reference(left), reference(right))
        case ast.UnaryOp(ast.USub(), operand):
            return -reference(operand)
        case ast.Constant(value):
            return Fraction(str(value))
    raise AssertionError(node)


def test_every_key_can_be_tapped():
    assert crawl(device("calculator/main")) == {"calculator/main"}


def test_values_equal_those_of_pythons_own_parser():
    rng = random.Random(0)
    for _ in range(300):
        parts = [f"{rng.choice(('', '', '-'))}{rng.randint(1, 99)}{rng.choice(('', '', '.5'))}" for _ in range(4)]
        a, b, c, d = parts
        o, p, q = (rng.choice("+-*/") for _ in range(3))
        text = rng.choice((f"{a}{o}{b}{p}{c}{q}{d}", f"{a}{o}({b}{p}{c}){q}{d}", f"({a}{o}{b}){p}(({c}){q}{d})"))
        try:
            expected = shown(reference(ast.parse(text, mode="eval")))
        except ZeroDivisionError:
            expected = ERROR
        assert evaluate(text) == expected, text


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.1+0.2", "0.3"), ("1/3*3", "1"), ("2/3", "0.6666666667"), ("50%*80", "40"), ("99999*99999", "9999800001")],
)
def test_arithmetic_is_exact(text, value):
    assert evaluate(text) == value


@pytest.mark.parametrize("text", ["1/0", "(1", "1)", "2+", "()", "1..2", "abc", "5(3)", ""])
def test_what_has_no_value_is_an_error(text):
    assert evaluate(text) == ERROR


def test_keys_build_the_expression_and_equals_gives_its_value():
    world = press(device("calculator/main"), "(7-2)*1.5=")
    assert (world.state.calculator.expression, world.state.calculator.result) == ("(7-2)*1.5", "7.5")


def test_an_operator_goes_on_with_the_result_and_a_digit_begins_anew():
    world = press(device("calculator/main"), "12*7=")
    assert press(world, "+1=").state.calculator.result == "85"
    assert press(world, "5").state.calculator.expression == "5"


def test_a_second_operator_replaces_the_first():
    assert press(device("calculator/main"), "*8+*/-2").state.calculator.expression == "8/-2"


def test_delete_and_clear_take_back():
    world = press(device("calculator/main"), "123")
    assert tap(world, "Delete").state.calculator.expression == "12"
    assert tap(world, "C").state.calculator == device("calculator/main").state.calculator


def test_division_by_zero_shows_an_error_and_can_be_left():
    world = press(device("calculator/main"), "8/0=")
    assert world.state.calculator.result == ERROR
    assert press(world, "4").state.calculator.expression == "4"
