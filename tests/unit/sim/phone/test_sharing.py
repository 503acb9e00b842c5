"""What is remembered between steps, episodes and looks shows in nothing: screens and states are those drawn from
nothing."""

import contextlib
import hashlib
import random
from dataclasses import replace

import pytest

from cuarl.sim.device import memory, tree
from cuarl.sim.device.bag import Bag
from cuarl.sim.kit import render
from cuarl.sim.phone import device
from cuarl.sim.phone.apps import PAGES, build
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.report import state_mapping
from cuarl.sim.phone.start import prepare
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import PROFILES, World
from cuarl.tasks.task import TaskInstance
from cuarl.types import Button, Click, Drag, LongPress, OpenApp, Scroll, Swipe, TypeText

TASKS = [
    TaskInstance(task_id="t", goal="g"),
    TaskInstance(task_id="t", goal="g", preset={"ui.page": "settings/network", "display.dark_theme": True}),
    TaskInstance(task_id="t", goal="g", preset={"ui.app": "calculator"}),
    TaskInstance(task_id="t", goal="g", preset={"ui.overlay": "quick"}),
]


def finger(rng, world):
    """Mostly things that do something: elements of all kinds, typing, scrolling, dialogs, every app."""
    width, height, kind = world.profile.width_px, world.profile.height_px, rng.random()
    x, y = rng.randrange(width), rng.randrange(height)
    if world.ui.focus and kind < 0.3:
        return TypeText(text=rng.choice(("a", "Wi", "12")), submit=rng.random() < 0.2)
    if kind < 0.55 and (found := elements(world)):
        x, y = rng.choice(found).centre
        return Click(x=x, y=y)
    if kind < 0.62:
        return Click(x=x, y=y)
    if kind < 0.75:
        return Scroll(direction=rng.choice(("up", "down")), amount=height // 3)
    if kind < 0.80:
        return Swipe(x=x, y=y, x2=rng.randrange(width), y2=rng.randrange(height))
    if kind < 0.84:
        return rng.choice((LongPress(x=x, y=y), Drag(path=((x, y), (y % width, x)))))
    if kind < 0.92:
        return Button(name=rng.choice(("back", "home", "recents", "volume_up", "menu", "power")))
    return OpenApp(name=rng.choice(("Settings", "Clock", "Contacts", "Messages", "Files", "Notes")))


def after(world, action):
    try:
        return device.step(world, action)
    except device.Rejected:
        return world


def digest(image):
    return hashlib.sha256(image.tobytes()).hexdigest()


def attempts(profile, seed, count, steps):
    """Attempts at one task side by side, half of whose steps they share: worlds, actions and pictures drawn as they
    come."""
    look, task = Look.drawn(seed, 0.3), TASKS[seed % len(TASKS)]
    worlds = [prepare(task, look, PROFILES[profile]) for _ in range(count)]
    frames = [render.draw(view(world)) for world in worlds]
    recorded = [[(None, digest(frame.image))] for frame in frames]
    for step in range(steps):
        for k, world in enumerate(worlds):
            action = finger(random.Random(f"{seed}/{step}/{k if step > steps // 2 else 0}"), world)
            worlds[k] = after(world, action)
            frames[k] = render.draw(view(worlds[k]), frames[k])
            recorded[k].append((action, digest(frames[k].image)))
    return task, look, recorded, worlds


@pytest.mark.parametrize(("profile", "seed"), [("small", 0), ("small", 1), ("small", 2), ("phone", 3)])
def test_attempts_that_share_what_was_drawn_see_what_is_drawn_from_nothing(profile, seed):
    task, look, recorded, ends = attempts(profile, seed, 3, 24)
    for walk, end in zip(recorded, ends, strict=True):
        world = prepare(task, look, PROFILES[profile])
        for action, seen in walk:
            memory.forget()
            render.forget()
            if action is not None:
                world = after(world, action)
            memory.forget()
            assert digest(render.render(view(world))) == seen
        assert state_mapping(world) == state_mapping(end)


def test_a_switch_used_twice_gives_the_state_that_was_there_before():
    state = World().state
    off = tree.put(state, "network.nfc", not state.network.nfc)
    again = tree.put(tree.put(off, "network.nfc", state.network.nfc), "network.nfc", not state.network.nfc)
    assert again is off and again != state


def test_values_that_are_equal_but_of_another_type_are_kept_apart():
    form = Bag().put("a", True)
    assert form.key != Bag().put("a", 1).key and form.key == Bag().put("a", True).key


def test_a_form_that_cannot_be_hashed_is_known_by_identity():
    form = Bag().put("a", [1])
    assert form.key == form.key and form.key != Bag().put("a", [1]).key


def test_attempts_start_in_one_world():
    worlds = [prepare(TASKS[0], Look.drawn(3), PROFILES["small"]) for _ in range(2)]
    assert worlds[0] is worlds[1]
    opened = [device.step(world, OpenApp(name="Settings")) for world in worlds]
    assert opened[0] is opened[1] and view(opened[0]) is view(opened[1])


def test_what_a_page_shows_depends_on_what_it_is_remembered_by():
    """A world that differs in everything else has the same pages, effects included."""
    compared = 0
    for page in sorted(PAGES):
        app = page.partition("/")[0]
        world = World().with_ui(app=app, stacks=Bag(((app, (page,)),)))
        ui = replace(
            world.ui,
            home_page=1,
            overlay="shade",
            toast="t",
            derived=("sound.dnd",),
            recents=("clock",),
            shift=True,
            symbols=True,
            scroll=Bag((("page:x", 3),)),
            stacks=world.ui.stacks.put("somewhere", ("somewhere/else",)),
        )
        with contextlib.suppress(KeyError, IndexError, StopIteration, ValueError):  # pages of one of several things
            shown = [repr(build.__wrapped__(one, page)) for one in (world, replace(world, ui=ui))]
            assert shown[0] == shown[1]
            compared += 1
    assert compared > 50
