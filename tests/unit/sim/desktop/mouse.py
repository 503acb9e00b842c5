"""Using the desktop by what is written on it."""

from cuarl.sim.desktop.device import step
from cuarl.sim.desktop.elements import elements
from cuarl.sim.desktop.look import DesktopLook
from cuarl.sim.desktop.start import prepare
from cuarl.sim.desktop.world import PROFILES
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, Drag, Key, TypeText


def desktop(*pages, seed=0, profile="desktop-small", **preset):
    """A desktop with windows on these pages, the last one on top."""
    preset = {path.replace("__", "."): value for path, value in preset.items()}
    task = TaskInstance(task_id="t", goal="g", preset={**preset, "ui.page": list(pages)})
    return prepare(task, DesktopLook.drawn(seed), PROFILES[profile])


def labels(world, role=None):
    return [e.label for e in elements(world) if role in (None, e.role)]


def find(world, label, role=None):
    found = [e for e in elements(world) if e.label == label and role in (None, e.role)]
    assert found, f"no {label!r} among {labels(world)}"
    return found[-1]


def click(world, *names, role=None, button="left", count=1):
    """Click things one after the other."""
    for name in names:
        x, y = find(world, name, role).centre
        world = step(world, Click(x=x, y=y, button=button, count=count))
    return world


def press(world, *chords):
    for keys in chords:
        world = step(world, Key(keys=tuple(keys.split("+"))))
    return world


def write(world, text, *, submit=False):
    return step(world, TypeText(text=text, submit=submit))


def drag(world, label, dx=0, dy=0, *, to=None, role=None, to_role=None):
    x, y = find(world, label, role).centre
    end = find(world, to, to_role).centre if to else (x + dx, y + dy)
    return step(world, Drag(path=((x, y), end)))


def paths(world):
    return [f.path for f in world.state.files]


def text_of(world, path):
    return next(f.text for f in world.state.files if f.path == path)
