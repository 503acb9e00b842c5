"""Using the phone by what is written on it."""

from cuarl.env.sim.phone import prepare
from cuarl.sim.phone.device import step
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import PROFILES
from cuarl.tasks.task import TaskInstance
from cuarl.types import Button, Click, Scroll, TypeText


def device(page, seed=0, profile="small", **preset):
    task = TaskInstance(task_id="t", goal="g", preset={**preset, "ui.page": page})
    return prepare(task, Look.drawn(seed), PROFILES[profile])


def find(world, label, role=None):
    found = [e for e in elements(world) if e.label == label and role in (None, e.role)]
    assert found, f"no {label!r} among {[e.label for e in elements(world)]}"
    return found[0]


def tap(world, *labels, role=None):
    """Tap things one after the other, scrolling down to those further below."""
    for label in labels:
        for _ in range(8):
            if any(e.label == label and role in (None, e.role) for e in elements(world)):
                break
            world = step(world, Scroll(direction="down", amount=2, unit="notch"))
        x, y = find(world, label, role).centre
        world = step(world, Click(x=x, y=y))
    return world


def type_into(world, field, text):
    return step(tap(world, field, role="field"), TypeText(text=text))


def back(world):
    return step(world, Button(name="back"))


def crawl(start, depth=3):
    """Tap every element of every page that is reached from a world, each page once; the pages seen."""
    seen, front = {}, [start]
    for _ in range(depth):
        following = []
        for world in front:
            key = (world.ui.page, world.ui.dialog and world.ui.dialog.title)
            if key in seen:
                continue
            seen[key] = world
            check(world)
            for element in elements(world):
                if element.role != "key" and element.label not in ("Back", "Home", "Recents"):
                    x, y = element.centre
                    after = step(world, Click(x=x, y=y))
                    check(after)
                    following.append(after)
        front = following
    return {page for page, _ in seen}


def check(world):
    """Everything that can be tapped has a name of its own."""
    assert view(world).items
    names = [(e.role, e.label) for e in elements(world)]
    twice = [name for name in names if names.count(name) > 1 or not name[1].strip()]
    assert not twice, f"{world.ui.page} with {world.ui.dialog and world.ui.dialog.title}: {twice}"
