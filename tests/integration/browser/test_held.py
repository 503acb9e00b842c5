"""What Chromium makes of keys that are held, keys pressed several times, and buttons pressed and let go apart."""

from __future__ import annotations

import pytest

from cuarl.env.browser.options import BrowserOptions, Fence
from cuarl.env.browser.web import WebEnv
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, Drag, Key, KeyDown, KeyUp, MouseDown, MouseUp, Move, Scroll, TypeText

pytestmark = pytest.mark.integration

PAGE = """<!doctype html><body style='margin:0;height:900px'>
<div style='width:200px;height:100px;background:#eee'></div>
<input style='position:fixed;left:0;top:120px;width:200px' value='abcdef'><script>
log = [];
for (const kind of ['mousedown', 'mouseup', 'wheel', 'keydown', 'keyup'])
  addEventListener(kind, (e) => {
    const held = ['ctrl', 'shift', 'alt', 'meta'].filter((k) => e[k + 'Key']).join('+');
    log.push(kind + ' ' + (e.key ?? (e.button || '')) + (held && ' with ' + held));
    if (kind == 'wheel') e.preventDefault();
  }, {passive: false});
</script>"""
LOG = "log.join(', ')"


@pytest.fixture
def act(with_browser, tmp_path):
    """Does actions on the page; gives the value of a script, and why the last action was refused."""

    def run(actions, script=LOG, kind="desktop"):
        (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
        found = []

        async def work(browser):
            options = BrowserOptions(viewport=(400, 300), fence=Fence((tmp_path.resolve(),)), settle="frame", kind=kind)
            env = WebEnv(browser, options)
            try:
                preset = {"url": (tmp_path / "page.html").as_uri(), "read": {"it": script}}
                await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset=preset), 0)
                info = {}
                for action in actions:
                    info = (await env.step(action)).info
                found.extend(((await env.state())["read"]["it"], info.get("rejected", "")))
            finally:
                await env.close()

        with_browser(work)
        return tuple(found)

    return run


def test_keys_are_held_during_a_click_and_let_go_behind_it(act):
    held = Click(x=50, y=50, held=("CTRL", "shift"))
    expected = (
        "keydown Control with ctrl, keydown Shift with ctrl+shift, mousedown  with ctrl+shift, "
        "mouseup  with ctrl+shift, keyup Shift with ctrl, keyup Control, mousedown , mouseup "
    )
    assert act([held, Click(x=50, y=50)]) == (expected, "")


@pytest.mark.parametrize(
    ("action", "events"),
    [
        (Drag(path=((10, 10), (60, 60)), held=("alt",)), "mousedown  with alt, mouseup  with alt"),
        (Scroll(x=50, y=50, direction="down", amount=60, held=("ctrl",)), "wheel  with ctrl"),
        (Click(x=50, y=50, button="right", held=("cmd",)), "mousedown 2 with meta, mouseup 2 with meta"),
    ],
)
def test_keys_are_held_during_other_actions_of_the_mouse(act, action, events):
    log, rejected = act([action])
    assert events in log and log.startswith("keydown") and log.rpartition(", ")[2].startswith("keyup") and not rejected


def test_a_key_is_pressed_as_often_as_it_is_said(act):
    where = "document.querySelector('input').selectionStart"
    assert act([Click(x=20, y=130), Key(keys=("Home",)), Key(keys=("Right",), count=4)], where) == (4, "")


def test_a_button_stays_down_until_it_is_let_go(act):
    assert act([MouseDown(x=20, y=20), MouseUp(x=20, y=20)]) == ("mousedown , mouseup ", "")
    assert act([MouseDown(button="right", x=9, y=9), MouseUp(button="right")])[0] == "mousedown 2, mouseup 2"
    select = [MouseDown(x=3, y=130), Move(x=190, y=130), MouseUp(), Key(keys=("Delete",))]
    assert act(select, "document.querySelector('input').value") == ("", "")


def test_keys_that_are_down_belong_to_what_follows(act):
    log, _ = act([KeyDown(key="Shift"), Click(x=50, y=50), KeyUp(key="shift"), Click(x=50, y=50)])
    assert log == (
        "keydown Shift with shift, mousedown  with shift, mouseup  with shift, keyup Shift, mousedown , mouseup "
    )


def test_a_chord_of_keys_pressed_apart_copies_to_the_episodes_own_clipboard(act):
    actions = [
        Click(x=20, y=130), Key(keys=("ctrl", "a")), KeyDown(key="ctrl"), Key(keys=("c",)), KeyUp(key="ctrl"),
        Key(keys=("End",)), Key(keys=("ctrl", "v")),
    ]  # fmt: skip
    assert act(actions, "document.querySelector('input').value") == ("abcdefabcdef", "")


@pytest.mark.parametrize(
    ("actions", "why"),
    [
        ([Click(x=50, y=50, held=("hyper",))], "there is no key 'hyper'"),
        ([KeyDown(key="ctrl+c")], "one key at a time"),
        ([KeyDown(key="ctrl"), TypeText(text="a")], "nothing can be typed while Control is down"),
        ([KeyDown(key="a"), Key(keys=("ctrl", "c"))], "one key at a time"),
    ],
)
def test_what_can_not_be_pressed_is_refused_by_name(act, actions, why):
    assert why in act(actions)[1]


@pytest.mark.parametrize("action", [Click(x=50, y=50, held=("ctrl",)), MouseDown(x=1, y=1), KeyDown(key="a")])
def test_a_phones_touches_hold_nothing(act, action):
    log, rejected = act([action], kind="phone")
    assert log == "" and ("can't hold ctrl" in rejected or f"no {action.kind}" in rejected)
