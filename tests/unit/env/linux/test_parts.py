"""The parts of a Linux desktop that need no display: settings, preset files, keys, plans."""

import pytest

from cuarl.env.linux.home import Home
from cuarl.env.linux.keyboard import Untypable, check_text, symbol_of
from cuarl.env.linux.plan import PlanOracle
from cuarl.env.linux.programs import APPS, app_named, programs_of
from cuarl.env.linux.report import list_files
from cuarl.env.linux.screen import along
from cuarl.env.linux.settings import KEYFILE, read_settings, with_named, write_setting
from cuarl.env.linux.windows import Window
from cuarl.env.processes import MARK
from cuarl.errors import TaskError
from cuarl.types import Click, Drag, Finish, TypeText

VIEW = "glib-2_0/settings/keyfile.org/xfce/mousepad/preferences/view"


def window(app, **changes):
    facts = {"title": app, "x": 100, "y": 50, "width": 200, "height": 100, "top": 20, "focused": False,
             "minimised": False, "maximised": False, "dialog": False}  # fmt: skip
    return Window(app=app, **(facts | changes))


def test_settings_are_read_as_they_were_written(tmp_path):
    write_setting(tmp_path, f"{VIEW}.word-wrap", True)
    write_setting(tmp_path, f"{VIEW}.font", "Mono 9")
    write_setting(tmp_path, "app/main.Window.width", 640)
    assert "font='Mono 9'" in (tmp_path / KEYFILE).read_text()
    found = read_settings(tmp_path)
    name, group = VIEW.split(".")
    assert found[name][group] == {"word-wrap": True, "font": "Mono 9"}
    assert found["app/main"] == {"Window": {"width": 640}}


def test_a_setting_that_is_nowhere_set_is_none():
    assert with_named({"a": {"g": {"k": 1}}}, iter(["a.g.other", "b.g.k"])) == {
        "a": {"g": {"k": 1, "other": None}},
        "b": {"g": {"k": None}},
    }


@pytest.mark.parametrize(
    "preset",
    [
        {"files": [{"path": "../escape.txt"}]}, {"files": [{"path": "/etc/passwd"}]}, {"files": [{}]},
        {"settings.x.y": 1}, {"sound.volume": 3},
    ],
)  # fmt: skip
def test_a_preset_that_cannot_be_is_said(tmp_path, preset):
    with pytest.raises(TaskError):
        Home(tmp_path / "desk").create(0, preset)


def test_a_home_has_its_files_and_hides_its_settings(tmp_path):
    home = Home(tmp_path / "desk")
    home.create(0, {"files": [{"path": "Documents/a.txt", "text": "é\n"}, {"path": "x", "folder": True}]})
    found = {entry["path"]: entry for entry in list_files(home.path)}
    assert sorted(found) == ["Documents", "Documents/a.txt", "Downloads", "Music", "Pictures", "x"]
    assert found["Documents/a.txt"]["text"] == "é\n" and found["x"]["folder"] and found["x"]["text"] is None


def test_programs_see_no_variable_of_the_caller_but_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret")
    environment = Home(tmp_path).environment("m")
    assert "sk-secret-secret" not in environment.values() and environment[MARK] == "m"


def test_links_are_listed_and_never_followed(tmp_path):
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert [(e["path"], e["text"]) for e in list_files(tmp_path)] == [("link", None)]


@pytest.mark.parametrize(("character", "symbol"), [("a", 0x61), ("é", 0xE9), ("\n", 0xFF0D), ("很", 0x1005F88)])
def test_characters_have_their_keysyms(character, symbol):
    assert symbol_of(character) == symbol


@pytest.mark.parametrize("text", ["a\x07b", "\ud800", "\x7f"])
def test_what_cannot_be_typed_is_said(text):
    with pytest.raises(Untypable, match="unsupported_text"):
        check_text(text)


def test_apps_are_known_by_their_names_of_both_kinds():
    assert app_named("terminal") == app_named("XTerm") == "xterm" and app_named("Paint") is None
    assert programs_of({"ui.apps": ["mousepad a.txt", "xterm"]}) == {"mousepad", "xterm"}


def test_a_drag_passes_its_corners_and_ends_at_its_end():
    points = along([(0, 0), (10, 0), (10, 10)], 10)
    assert (10, 0) in points and points[-1] == (10, 10) and len(points) == 10


def test_a_plan_focuses_before_it_runs_and_ends_with_finish():
    oracle = PlanOracle([{"run": "ls"}, {"move": "xterm", "by": [5, 6]}])
    assert isinstance(oracle.next([window("xterm"), window("mousepad", focused=True)], (640, 480)), Click)
    there = [window("xterm", focused=True)]
    assert oracle.next(there, (640, 480)) == TypeText(text="ls", submit=True)
    assert oracle.next(there, (640, 480)) == Drag(path=((200, 40), (205, 46)))
    assert isinstance(oracle.next(there, (640, 480)), Finish)


@pytest.mark.parametrize("line", [{"dance": 1}, {"click": "mousepad", "at": [1, 1]}])
def test_a_plan_that_cannot_be_followed_is_said(line):
    with pytest.raises(TaskError):
        PlanOracle([line]).next([window("xterm")], (640, 480))


def test_the_apps_have_windows_of_their_own_names():
    assert all(app.command[0] == name for name, app in APPS.items())
