import sys

import pytest

from cuarl import objects
from cuarl.errors import ConfigError


class Here:
    class Within:
        """Nested."""


@pytest.fixture(autouse=True)
def nothing_held(monkeypatch):
    monkeypatch.setattr(objects, "_HELD", {})


@pytest.mark.parametrize(("thing", "name"), [(Here, "Here"), (Here.Within, "Here.Within")])
def test_what_can_be_imported_is_named_and_not_held(thing, name):
    path = objects.name(thing)
    assert path == f"{__name__}:{name}" and not objects.is_held(path)
    assert objects.get(path) is thing


def test_what_can_not_be_imported_is_held_until_another_takes_its_name():
    first, second = (lambda: 1), (lambda: 2)
    path = objects.name(first)
    assert "<lambda>" in path and objects.is_held(path) and objects.get(path) is first
    assert objects.name(second) == path and objects.get(path) is second


def test_an_object_without_a_name_has_that_of_its_class():
    thing = Here()
    path = objects.name(thing)
    assert path == f"{__name__}:Here" and objects.is_held(path) and objects.get(path) is thing


def test_a_function_that_another_has_replaced_in_its_module_is_held(monkeypatch):
    old = Here
    monkeypatch.setattr(sys.modules[__name__], "Here", type("Here", (), {}))
    assert objects.is_held(objects.name(old))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("__main__:luck", "was an object of one Python session"),
        (f"{__name__}:outer.<locals>.luck", "was an object of one Python session"),
        ("no_such_module:luck", "can't be imported: No module named"),
        (f"{__name__}:gone", "can't be imported"),
    ],
    ids=["main", "local", "module", "name"],
)
def test_what_is_not_there_is_said(path, said):
    with pytest.raises(ConfigError, match=said) as error:
        objects.get(path, "reward")
    assert path in error.value.what and "reward" in error.value.what


def test_a_dotted_path_will_do_as_well():
    assert objects.get("json.dumps") is sys.modules["json"].dumps
