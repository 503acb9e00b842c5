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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a module of one's own, which nothing else finds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine_84.py").write_text("def one(t):\n    return 1.0\n\n\ndef bad(t):\n    return 1 / 0\n")
    yield tmp_path
    for name in ("mine_84", "broken_84", "other_84"):
        sys.modules.pop(name, None)


def test_modules_and_files_of_the_working_folder_are_found(folder):
    for path in ("mine_84:one", "mine_84.py:one", f"{folder}/mine_84.py:one", "./mine_84.py:one", "mine_84.one"):
        assert objects.get(path)(None) == 1.0
    assert objects.get("mine_84.py:one") is objects.get("mine_84:one")


def test_what_is_installed_comes_before_the_working_folder(folder):
    (folder / "json.py").write_text("dumps = None")
    assert objects.get("json:dumps") is not None
    with pytest.raises(ConfigError, match="another module has the name json"):
        objects.get("json.py:dumps")


@pytest.mark.parametrize(
    ("path", "said", "where"),
    [
        ("none_84.py:one", "there is no file none_84.py", ""),
        ("mine_84.py:two", "has no attribute 'two'", ""),
        ("mine_84.py:", "no name behind the module", None),
        ("broken_84.py:one", "invalid syntax", "broken_84.py, line 2"),
        ("other_84.py:one", "name 'nothing_84' is not defined", "other_84.py, line 1, in <module>"),
    ],
)
def test_what_can_not_be_imported_is_told_with_its_place(folder, path, said, where):
    (folder / "broken_84.py").write_text("x = 1\ndef one(t: return\n")
    (folder / "other_84.py").write_text("nothing_84\n")
    with pytest.raises(ConfigError, match=said) as caught:
        objects.get(path)
    assert caught.value.where == where


def test_the_users_own_frame_is_the_one_that_is_told(folder):
    bad = objects.get("mine_84:bad")
    with pytest.raises(ZeroDivisionError) as caught:
        bad(None)
    assert objects.own_frame(caught.value).endswith("mine_84.py, line 6, in bad")
    with pytest.raises(ValueError) as caught:
        int("x")
    assert "test_objects.py" in objects.own_frame(caught.value)
