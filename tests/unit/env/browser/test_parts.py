"""What of the browser can be told without one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuarl.env.browser.backend import check_options, check_tasks, fence_of, paced, page_options
from cuarl.env.browser.input import TOUCH_ACTIONS, refusal
from cuarl.env.browser.keys import UnknownKey, chord, shortcut
from cuarl.env.browser.miniwob import goal_text, oracle_source, touch
from cuarl.env.browser.options import Fence, Options, origin_of
from cuarl.errors import ConfigError, TaskError
from cuarl.tasks.suites import load_suite, shipped_folder
from cuarl.tasks.task import Task
from cuarl.types import Button, Click, Drag, Finish, Key, Move, Scroll, Swipe
from cuarl.workflow.page_task import page_task


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("file:///srv/pages/a.html?x=1#y", True),
        ("file:///srv/pages/sub/a.html", True),
        ("file:///srv/pages/../secret.html", False),
        ("file:///srv/pages%2F..%2Fsecret.html", False),
        ("file:///etc/passwd", False),
        ("file://elsewhere/srv/pages/a.html", False),
        ("http://127.0.0.1:8000/x", True),
        ("ws://127.0.0.1:8000/x", True),
        ("https://127.0.0.1:8000/x", False),
        ("http://127.0.0.1:8001/x", False),
        ("http://127.0.0.1:8000.evil.test/", False),
        ("http://user@evil.test/127.0.0.1:8000", False),
        ("data:text/html,x", True),
        ("about:blank", True),
        ("chrome://settings", False),
        ("javascript:alert(1)", False),
    ],
)
def test_fence_lets_through_its_folders_and_origins_alone(url, allowed):
    fence = Fence((Path("/srv/pages"),), frozenset({"http://127.0.0.1:8000"}))
    assert fence.allows(url) is allowed


def test_default_ports_are_written_out():
    assert origin_of("https://Example.test/a") == origin_of("https://example.test:443") == "https://example.test:443"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [(("ctrl", "c"), ("Control", "c")), (("ctrl+shift+Left",), ("Control", "Shift", "ArrowLeft")), (("+",), ("+",)),
     (("Return",), ("Enter",)), (("KP_Enter",), ("Enter",)), (("F11",), ("F11",))],
)  # fmt: skip
def test_keys_are_named_as_in_xdotool(keys, expected):
    assert chord(keys) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [(("Esc",), ("Escape",)), (("Del",), ("Delete",)), (("KP_Enter",), ("Enter",)), (("ARROWLEFT",), ("ArrowLeft",)),
     (("ctrl+shift+t",), ("Control", "Shift", "t")), (("T", "SHIFT", "CTRL"), ("Shift", "Control", "t")),
     (("PgDn",), ("PageDown",)), (("Option", "winleft", "x"), ("Alt", "Meta", "x")), (("ctrl++",), ("Control", "+")),
     (("shift", "A"), ("Shift", "A")), (("A",), ("A",)), (("ctrl", "control", "+"), ("Control", "+"))],
)  # fmt: skip
def test_b27_aliases_and_cases_of_keys_are_understood(keys, expected):
    assert chord(keys) == expected


@pytest.mark.parametrize(
    "keys", [("Hyper",), ("Down Down",), ("ctrl+",), ("ctrl", "c", "v"), ("ctrl", "c", "ctrl", "v")]
)
def test_b27_what_is_no_key_and_no_chord_is_refused_by_name(keys):
    with pytest.raises(UnknownKey, match=r"no key '|one key at a time"):
        chord(keys)
    assert refusal(Key(keys=keys), (160, 210))


@pytest.mark.parametrize(
    ("keys", "does"),
    [
        *(
            (keys, "copy")
            for keys in (
                ("ctrl", "c"),
                ("CTRL", "C"),
                ("Control_L", "C"),
                ("ctrl+C",),
                ("c", "ctrl"),
                ("Insert", "ctrl"),
            )
        ),
        *((keys, "cut") for keys in (("ctrl", "x"), ("CTRL+X",), ("shift", "Del"))),
        *((keys, "paste") for keys in (("ctrl", "V"), ("shift", "ctrl", "v"), ("SHIFT", "Insert"))),
        (("CTRL", "R"), "reload"),
        (("F5",), "reload"),
        (("CTRL", "W"), "close"),
        (("alt", "Left"), "back"),
        (("ctrl", "a"), None),
        (("c",), None),
        (("Insert",), None),
        (("ctrl",), None),
        (("alt", "c"), None),
    ],
)
def test_b06_chords_are_known_in_whatever_case_and_order(keys, does):
    assert shortcut(chord(keys)) == does


def test_unknown_key_is_no_key():
    with pytest.raises(UnknownKey):
        chord(("Hyper_Q",))


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (Click(x=160, y=0), "outside"),
        (Drag(path=((0, 0), (10, 210))), "outside"),
        (Scroll(direction="down"), ""),
        (Key(keys=("Hyper_Q",)), "no key"),
        (Swipe(x=1, y=1, x2=2, y2=2), "no swipe"),
    ],
)
def test_what_cannot_be_done_is_refused(action, said):
    assert said in refusal(action, (160, 210))
    assert bool(refusal(action, (160, 210))) is bool(said)


def test_phone_has_touches_and_two_buttons():
    assert refusal(Swipe(x=1, y=1, x2=2, y2=2), (160, 210), TOUCH_ACTIONS) == ""
    assert "outside" in refusal(Swipe(x=1, y=1, x2=200, y2=2), (160, 210), TOUCH_ACTIONS)
    assert "no button recents" in refusal(Button(name="recents"), (160, 210), TOUCH_ACTIONS)
    assert touch(Drag(path=((1, 2), (3, 4), (5, 6)))) == Swipe(x=1, y=2, x2=5, y2=6)
    assert isinstance(touch(Move(x=1, y=1)), Finish)


def test_goal_is_put_into_words():
    assert goal_text("Click  the\nbutton ") == "Click the button"
    assert goal_text({"utterance": "Find it", "fields": {}}) == "Find it"
    assert goal_text({"from": "A", "to": "B"}) == "from: A; to: B"


def test_page_task_reads_checks_and_scripts():
    task = page_task(
        "http://127.0.0.1:8000/{x}", "Buy {2} lamps", ["app.cart has {id: 7}", "text empty", "js: 1 === 1"]
    )
    made = task.instantiate(0)
    assert made.goal == "Buy {2} lamps"
    assert made.preset == {"url": "http://127.0.0.1:8000/{x}", "read": {"check2": "1 === 1"}}
    assert [(c.path, c.op, c.value) for c in made.checks] == [
        ("app.cart", "has", {"id": 7}),
        ("text", "empty", None),
        ("read.check2", "equals", True),
    ]


@pytest.mark.parametrize(
    ("goal", "checks", "said"),
    [(None, ["text empty"], "goal"), ("g", [], "condition"), ("g", ["text contain x"], "mean")],
)
def test_page_task_without_its_parts_is_refused(goal, checks, said):
    with pytest.raises(ConfigError, match=said):
        page_task("http://127.0.0.1/", goal, checks)


def page(**preset):
    return Task(id="t", description="g", env="browser", preset=preset)


@pytest.mark.parametrize(
    "preset",
    [
        {},
        {"url": "ftp://x/"},
        {"url": "http://x/", "page": "a"},
        {"url": "http://x/", "urk": 1},
        {"url": "http://x/", "uploads": "not-there"},
    ],
)
def test_task_that_no_page_can_be_made_of_is_refused(preset):
    with pytest.raises(TaskError):
        check_tasks([page(**preset)])


def test_fence_is_where_the_tasks_are(tmp_path):
    (tmp_path / "a.html").write_text("")
    fence = fence_of(
        [page(url=(tmp_path / "a.html").as_uri()), page(url="http://127.0.0.1:8000/a")], ["https://cdn.test"]
    )
    assert fence.folders == (tmp_path.resolve(),)
    assert fence.origins == {"http://127.0.0.1:8000", "https://cdn.test:443"}
    with pytest.raises(ConfigError):
        fence_of([], ["cdn.test"])


def test_option_without_effect_is_refused():
    miniwob, web = page(page="click-test"), page(url="http://127.0.0.1/")
    for fields, tasks in (
        ({"viewport": "640x480"}, [miniwob]),
        ({"instruction": "mask"}, [web]),
        ({"reset": "script"}, [miniwob, web]),
        ({"dialogs": "ask"}, [miniwob, web]),
    ):
        with pytest.raises(ConfigError):
            check_options(Options(**fields), tasks)
    assert page_options(Options(viewport="640x480"), [web]).viewport == (640, 480)


def test_oracles_are_for_pages_of_the_suite():
    suite = load_suite(shipped_folder() / "miniwob")
    pages = {task.preset["page"] for task in suite.tasks}
    table = oracle_source().partition("const sections = {")[2].partition("\n  };")[0]
    known = set(re.findall(r"^\s+'?([\w-]+)'?:|, '([\w-]+)': ", table, re.MULTILINE))
    named = {a or b for a, b in known}
    assert len(suite.tasks) == 124
    assert len(named & pages) >= 60


def test_pages_are_drawn_as_fast_as_they_can_only_where_none_moves_and_cores_are_idle(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    miniwob = Task(id="m", description="d", env="browser", preset={"page": "click-test"})
    web = Task(id="w", description="d", env="browser", preset={"url": "http://127.0.0.1:1/"})
    assert [paced([miniwob], at_once) for at_once in (1, 8, 9)] == [False, False, True]
    moving = Task(id="r", description="d", env="browser", preset={"page": "chase-circle"}, tags=["realtime"])
    assert paced([miniwob, web], 1)
    assert paced([miniwob, moving], 1)
