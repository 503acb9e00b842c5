import pytest

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.scene import BODY, row_text, stack
from cuarl.sim.kit.style import fit, font_px
from cuarl.sim.phone.apps import build
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.graph import page_graph
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.start import prepare
from cuarl.sim.phone.world import PROFILES
from cuarl.tasks.task import TaskInstance


def phone(look=None, profile="small", **preset):
    task = TaskInstance(task_id="t", goal="g", preset=preset)
    return prepare(task, look or Look(), PROFILES[profile])


def test_elements_lie_on_the_screen_and_have_names_of_their_own():
    for seed in range(5):
        world = phone(Look.drawn(seed), **{"ui.page": "settings/display"})
        found = elements(world)
        assert len({e.id for e in found}) == len(found)
        for element in found:
            x0, y0, x1, y1 = element.box
            assert 0 <= x0 < x1 <= 192 and 0 <= y0 < y1 <= 384 and element.label


def test_switch_row_tells_what_it_writes_and_whether_it_is_on():
    element = next(e for e in elements(phone(**{"ui.page": "settings/nfc"})) if e.label == "Use NFC")
    assert (element.role, element.writes, element.checked, element.opens) == ("row", "network.nfc", True, "")


def test_link_tells_where_it_leads():
    opened = {e.label: e.opens for e in elements(phone(**{"ui.page": "settings/network"}))}
    assert opened["Wi-Fi"] == "settings/wifi"


def test_choice_tells_the_path_that_its_dialog_writes():
    found = {e.label: e for e in elements(phone(**{"ui.page": "settings/date_time"}))}
    assert found["Time zone"].writes == "system.timezone" and found["Time zone"].value == "Berlin"


def test_nothing_below_a_dialog_is_listed():
    world = phone(Look(popup=0), **{"ui.page": "settings/main"})
    assert {e.label for e in elements(world)} == {"Dismiss", "Back", "Home", "Recents"}


def test_nothing_behind_the_keyboard_is_listed():
    world = phone(**{"ui.page": "settings/main"})
    shown = {e.label for e in elements(world)}
    typing = {e.label for e in elements(world.with_ui(focus="ui.form.settings.query"))}
    assert {"q", "Space", "Backspace", "Enter"} <= typing and len(shown - typing) >= 3


@pytest.mark.parametrize(("step", "bold"), [(0.94, False), (1.08, True)])
def test_labels_are_never_cut_at_any_font(step, bold):
    world = phone(
        Look(font_step=step, bold=bold), **{"system.developer_options": True, "network.bluetooth.enabled": True}
    )
    style, cut = world.style, []
    for page in page_graph(world).edges:
        screen = build(world, page)
        for spot in stack((*screen.top, *screen.body, *screen.bottom), style, 0, 0, 192):
            widget = spot.widget
            if isinstance(widget, w.Row):
                cut += [widget.label for line in row_text(widget, style, spot.width)[1] if "…" in line]
            elif isinstance(widget, w.Button) and widget.look != "round":
                room = (spot.width - (28 if widget.icon else 6)) * style.scale
                cut += [widget.label] if fit(widget.label, font_px(style, BODY), room, True) != widget.label else []
    assert cut == []
