"""What Android tells of a screen, and how a plan's targets find things in it."""

from __future__ import annotations

import pytest

from cuarl.env.plans.elements import Element, find, name_at, reach
from cuarl.env.plans.hierarchy import read_hierarchy
from cuarl.env.plans.seeing import NotSeen
from cuarl.env.plans.targets import Target

SIZE = (1080, 2400)
HEAD = "UI hierchary dumped to: /data/local/tmp/x.xml\n<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"


def node(bounds: str, inner: str = "", **told: str) -> str:
    names = {"kind": "class", "description": "content-desc", "id": "resource-id"}
    said = " ".join(f'{names.get(name, name)}="{value}"' for name, value in told.items())
    return f'<node index="0" {said} bounds="{bounds}">{inner}</node>'


ROW = node(
    "[0,300][1080,500]",
    node("[40,320][600,400]", text="Wi-Fi", id="android:id/title", kind="android.widget.TextView")
    + node("[40,400][600,480]", text="Off", id="android:id/summary", kind="android.widget.TextView")
    + node("[900,350][1040,450]", id="android:id/switch_widget", kind="android.widget.Switch", checkable="true"),
    kind="android.widget.LinearLayout",
    clickable="true",
)
BACK = node(
    "[0,100][150,250]", description="Navigate up", id="a.b:id/up", kind="android.widget.ImageButton", clickable="true"
)
FORM = (
    node("[0,600][400,660]", text="Full name", kind="android.widget.TextView")
    + node("[0,660][1080,760]", text="Zoe", id="a.b:id/name", kind="android.widget.EditText", clickable="true")
    + node("[0,800][1080,900]", text="Phone", id="a.b:id/phone", kind="android.widget.EditText", clickable="true")
    + node("[0,1000][500,1100]", text="Save", kind="android.widget.Button", clickable="true")
    + node("[540,1000][1080,1100]", text="Save as", kind="android.widget.Button", clickable="true")
)
OFF = node("[0,2300][1080,2700]", text="Cut", clickable="true") + node("[0,2500][9,2600]", text="Gone")
SCREEN = f'{HEAD}<hierarchy rotation="0">{node("[0,0][1080,2400]", BACK + ROW + FORM + OFF)}</hierarchy>'
ELEMENTS = read_hierarchy(SCREEN, SIZE)


def target(by: str, value: str, nth: int | None = None) -> Target:
    return Target(by, value, nth=nth)


def test_what_is_not_on_the_screenshot_is_cut_or_left_out() -> None:
    assert [one.text for one in ELEMENTS if one.text in ("Cut", "Gone")] == ["Cut"]
    assert find(ELEMENTS, target("text", "Cut")).box == (0, 2300, 1080, 2400)


def test_units_of_the_display_become_pixels_of_the_screenshot() -> None:
    half = read_hierarchy(SCREEN, (540, 1200), (2.0, 2.0))
    assert find(half, target("id", "phone")).box == (0, 400, 540, 450)


@pytest.mark.parametrize(
    "text",
    ["", "ERROR: could not get idle state.", "<hierarchy rotation='0'><node></hierarchy>", "</hierarchy><hierarchy"],
)
def test_what_is_no_hierarchy_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hierarchy of views"):
        read_hierarchy(text, SIZE)


def test_a_document_type_is_not_read() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "b">]><hierarchy><node text="&a;" bounds="[0,0][9,9]"/></hierarchy>'
    with pytest.raises(ValueError, match="no XML"):
        read_hierarchy(bomb, SIZE)


@pytest.mark.parametrize(
    ("wanted", "box"),
    [
        (target("text", "Wi-Fi"), (40, 320, 600, 400)),
        (target("text", "Navigate up"), (0, 100, 150, 250)),
        (target("text", "Save"), (0, 1000, 500, 1100)),
        (target("text", "navigate"), (0, 100, 150, 250)),
        (target("text", "save", nth=2), (540, 1000, 1080, 1100)),
        (target("description", "Navigate up"), (0, 100, 150, 250)),
        (target("id", "android:id/switch_widget"), (900, 350, 1040, 450)),
        (target("id", "switch_widget"), (900, 350, 1040, 450)),
        (target("class", "Switch"), (900, 350, 1040, 450)),
        (target("class", "android.widget.EditText", nth=2), (0, 800, 1080, 900)),
        (target("label", "Phone"), (0, 800, 1080, 900)),
        (target("label", "Full name"), (0, 660, 1080, 760)),
        (target("label", "pho"), (0, 800, 1080, 900)),
    ],
    ids=str,
)
def test_targets_find_what_they_name(wanted: Target, box: tuple[int, ...]) -> None:
    assert find(ELEMENTS, wanted).box == box


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (target("text", "Bluetooth"), "nothing on the screen matches"),
        (target("description", "Save"), "nothing on the screen matches"),
        (target("class", "Button"), "2 visible elements match: say which, as by nth: 1"),
        (target("class", "Button", nth=3), "only 2 visible match"),
        (target("label", "Save"), "nothing on the screen matches"),
    ],
    ids=str,
)
def test_what_is_not_there_or_not_clear_is_said(wanted: Target, said: str) -> None:
    with pytest.raises(NotSeen) as caught:
        find(ELEMENTS, wanted)
    assert str(caught.value) == said


def test_a_thing_around_another_of_the_same_name_is_the_same_thing() -> None:
    button, text = Element((0, 0, 90, 90), description="Go", usable=True), Element((10, 10, 80, 80), text="Go")
    assert find([button, text], target("text", "Go")).box == text.box
    twice = [Element((0, 0, 9, 9), text="Go"), Element((0, 0, 9, 9), text="Go")]
    assert find(twice, target("text", "Go")).box == (0, 0, 9, 9)


@pytest.mark.parametrize(
    ("x", "y", "named"),
    [
        (70, 170, {"description": "Navigate up"}),
        (500, 490, {"text": "Wi-Fi"}),
        (950, 400, {"text": "Wi-Fi"}),
        (500, 700, {"label": "Zoe"}),
        (100, 1050, {"text": "Save"}),
        (500, 1500, {"at": [500, 1500]}),
    ],
)
def test_a_point_is_called_by_what_leads_back_to_it(x: int, y: int, named: dict[str, object]) -> None:
    assert name_at(ELEMENTS, x, y).target == named


def test_a_name_that_two_things_share_is_passed_over() -> None:
    rows = [Element((0, y, 99, y + 9), text="Alarm", id=f"a:id/row{y}", usable=True) for y in (0, 20)]
    assert name_at(rows, 5, 25).target == {"id": "row20"}
    bare = [Element((0, y, 99, y + 9), text="Alarm", usable=True) for y in (0, 20)]
    assert name_at(bare, 5, 25).target == {"at": [5, 25]}


@pytest.mark.parametrize(
    ("x", "y", "box"),
    [
        (100, 1050, (0, 1000, 500, 1100)),
        (100, 700, (0, 660, 1080, 760)),
        (300, 360, (0, 300, 1080, 500)),
        (970, 400, (0, 300, 1080, 500)),
        (500, 1500, None),
    ],
)
def test_a_touch_is_the_same_within_what_it_is_for(x: int, y: int, box: tuple[int, ...] | None) -> None:
    assert reach(ELEMENTS, x, y) == box


def test_where_each_place_is_something_else_no_other_is_taken() -> None:
    slider = Element((0, 0, 90, 9), kind="android.widget.SeekBar", usable=True)
    assert reach([slider], 45, 4) is None
    row, over = Element((0, 0, 90, 40), text="Row", usable=True), Element((60, 30, 99, 60), usable=True)
    assert reach([row, over], 20, 20) is None, "what lies over it would be touched in its place"
    card = Element((0, 0, 99, 99), usable=True)
    assert reach([card, row], 20, 20) == (0, 0, 90, 40)
