"""Any text that is typed into the simulated devices arrives as it is (case C44)."""

from __future__ import annotations

import pytest

from cuarl.sim.kit.widgets import Field
from cuarl.sim.phone.view import view
from tests.unit.sim.desktop import mouse
from tests.unit.sim.phone.apps import finger

TEXTS = ["很", "☝️👩‍💻", "שלום!", "a b  c", "$HOME `x` \"q\" 'r' & ; | %s", "two\nlines", "", "Łódź <b>&amp;</b>"]


@pytest.mark.parametrize("text", TEXTS)
def test_c44_a_phones_note_is_what_was_typed(text):
    world = finger.device("notes/new")
    fields = [item.widget for item in view(world).items if isinstance(item.widget, Field)]
    labels = [element.label for element in finger.elements(world) if element.role == "field"]
    world = finger.type_into(world, labels[-1], text)
    assert text in [world.get(field.path) for field in fields]


@pytest.mark.parametrize("text", TEXTS)
def test_c44_a_desktops_file_is_what_was_typed(text):
    world = mouse.desktop("editor/todo.txt", files=[{"path": "todo.txt", "text": ""}])
    world = mouse.press(mouse.write(world, text), "ctrl+s")
    assert mouse.text_of(world, "todo.txt").removesuffix("\n") == text
