"""Speed of the simulated phone and desktop, per second of processor time of one core: ``python benchmarks/sim.py``.

A ``walk`` is one long random episode: taps anywhere, scrolls, back, opening an app; on the desktop, with three windows
open, clicks, the wheel, drags, typing and keys. ``with JPEG`` adds the digest of every screen, and a JPEG of every
screen that was not there before (records keep each picture once). A look is new to a process once.

``groups`` are what training collects: 30 tasks of the shipped training suites, a look each that the process has not
seen, 8 attempts at each side by side, up to 15 steps; half of the steps are the oracle's and half are random. Actions
are drawn beforehand, so the time is that of starting, acting and drawing. ``with PNG`` encodes what the record keeps.
The first 30 groups, not counted, warm the process up.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cuarl import garbage
from cuarl.sim.desktop.device import step as use_desktop
from cuarl.sim.desktop.look import DesktopLook
from cuarl.sim.desktop.start import prepare as prepare_desktop
from cuarl.sim.desktop.view import view as desktop_view
from cuarl.sim.desktop.world import PROFILES as SCREENS
from cuarl.sim.desktop.world import DesktopWorld
from cuarl.sim.device import memory
from cuarl.sim.kit.render import Frame, draw
from cuarl.sim.kit.render import forget as forget_frames
from cuarl.sim.phone import device
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.planner import Planner
from cuarl.sim.phone.route import leads_to
from cuarl.sim.phone.start import prepare
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import PROFILES, World
from cuarl.tasks.source import load
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Action, Button, Click, Drag, Key, OpenApp, Screenshot, Scroll, TypeText

APPS = ("Settings", "Clock", "Contacts", "Notes", "Calculator", "Messages")
TASK = TaskInstance(task_id="bench", goal="", checks=(Check(path="sound.touch_sounds", value=False),))


def actions(profile: str, count: int, seed: int) -> list[Action]:
    """A random walk."""
    rng, p = random.Random(seed), PROFILES[profile]
    found: list[Action] = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.70:
            found.append(Click(x=rng.randrange(p.width_px), y=rng.randrange(p.height_px)))
        elif kind < 0.90:
            found.append(Scroll(direction=rng.choice(("up", "down")), amount=p.height_px // 2))
        elif kind < 0.95:
            found.append(Button(name="back"))
        else:
            found.append(OpenApp(name=rng.choice(APPS)))
    return found


def phone(profile: str, seed: int) -> World:
    return prepare(TASK, Look.drawn(seed), PROFILES[profile])


def steps_per_s(profile: str, count: int, look: int, seed: int, *, record: bool) -> float:
    world, walk, last = phone(profile, look), actions(profile, count, seed), None
    seen: set[str] = set()
    start = time.process_time()
    for action in walk:
        world, last = step(world, action, last)
        if record and last.screenshot.digest not in seen:
            seen.add(last.screenshot.digest)
            last.screenshot.jpeg()
    return count / (time.process_time() - start)


def step(world: World, action: Action, last: Frame | None) -> tuple[World, Frame]:
    with contextlib.suppress(device.Rejected):
        world = device.step(world, action)
    return world, draw(view(world), last)


class Attempts(NamedTuple):
    """A task, the look of its device, and the actions of each attempt."""

    task: TaskInstance
    look: Look
    walks: list[list[Action]]


def groups(profile: str, count: int, attempts: int = 8, steps: int = 15) -> list[Attempts]:
    tasks, rng = load(["phone_train", "settings_train"]).tasks, random.Random(0)
    found: list[Attempts] = []
    for seed in range(count):
        task, look = rng.choice(tasks).instantiate(seed), Look.drawn(seed, 0.1)
        walks = [attempt(profile, task, look, steps, random.Random(f"{seed}/{a}")) for a in range(attempts)]
        found.append(Attempts(task, look, walks))
    memory.forget()
    return found


def attempt(profile: str, task: TaskInstance, look: Look, steps: int, rng: random.Random) -> list[Action]:
    world, planner, done = prepare(task, look, PROFILES[profile]), Planner(task), list[Action]()
    for at_random in actions(profile, steps, rng.randrange(1 << 30)):
        action = planner.next(world) if rng.random() < 0.5 else at_random
        if action.kind == "finish":
            break
        done.append(action)
        with contextlib.suppress(device.Rejected):
            world = device.step(world, action)
            planner.acted(action)
    return done


def group_steps_per_s(profile: str, found: Sequence[Attempts], encode: Callable[[Screenshot], bytes] | None) -> float:
    start, count, seen = time.process_time(), 0, set[str]()
    for task, look, walks in found:
        worlds = [prepare(task, look, PROFILES[profile]) for _ in walks]
        frames = [draw(view(world)) for world in worlds]
        for turn in range(max(map(len, walks))):
            for k, walk in enumerate(walks):
                if turn < len(walk):
                    worlds[k], frames[k] = step(worlds[k], walk[turn], frames[k])
                    count += 1
                    shot = frames[k].screenshot
                    if encode is not None and shot.digest not in seen:
                        seen.add(shot.digest)
                        encode(shot)
    return count / (time.process_time() - start)


def measure_groups(profile: str) -> None:
    found, size = groups(profile, 60), f"{PROFILES[profile].width_px:>5} x {PROFILES[profile].height_px:<5}"
    kinds: dict[str, Callable[[Screenshot], bytes] | None] = {
        "raw pixels": None,
        "with JPEG": Screenshot.jpeg,
        "with PNG": Screenshot.png,
    }
    for name, encode in kinds.items():
        memory.forget()
        forget_frames()
        group_steps_per_s(profile, found[:30], None)
        print(f"{size} groups, {name:<20} {group_steps_per_s(profile, found[30:], encode):8.0f} steps/s")


def desk(profile: str, seed: int) -> DesktopWorld:
    task = TaskInstance(task_id="bench", goal="", preset={"ui.page": ["settings/sound", "editor/todo.txt", "files/"]})
    return prepare_desktop(task, DesktopLook.drawn(seed), SCREENS[profile])


def desktop_actions(profile: str, count: int, seed: int) -> list[Action]:
    """A random walk."""
    rng, width, height = random.Random(seed), SCREENS[profile].width_px, SCREENS[profile].height_px
    found: list[Action] = []
    for _ in range(count):
        x, y, kind = rng.randrange(width), rng.randrange(height), rng.random()
        if kind < 0.70:
            found.append(Click(x=x, y=y))
        elif kind < 0.85:
            found.append(Scroll(x=x, y=y, direction=rng.choice(("up", "down")), amount=3, unit="notch"))
        elif kind < 0.90:
            found.append(Drag(path=((x, y), (rng.randrange(width), rng.randrange(height)))))
        elif kind < 0.95:
            found.append(TypeText(text=rng.choice(("ls", "hello", "42"))))
        else:
            found.append(Key(keys=(rng.choice(("Return", "Escape", "BackSpace")),)))
    return found


def desktop_steps_per_s(profile: str, count: int, *, record: bool) -> float:
    world, walk, last = desk(profile, 1), desktop_actions(profile, count, 1), None
    seen: set[str] = set()
    start = time.process_time()
    for action in walk:
        with contextlib.suppress(device.Rejected):
            world = use_desktop(world, action)
        if not 0 < len(world.ui.windows) < 6:
            world = desk(profile, 1)
        last = draw(desktop_view(world), last)
        if record and last.screenshot.digest not in seen:
            seen.add(last.screenshot.digest)
            last.screenshot.jpeg()
    return count / (time.process_time() - start)


def microseconds(function: object, repeat: int) -> float:
    assert callable(function)
    start = time.process_time()
    for _ in range(repeat):
        function()
    return 1e6 * (time.process_time() - start) / repeat


def episodes_per_s(count: int) -> float:
    """Whole oracle episodes, pictures included."""
    start = time.process_time()
    for seed in range(count):
        world, planner, last = phone("small", seed), Planner(TASK), None
        while True:
            action = planner.next(world)
            if action.kind == "finish":
                break
            world, last = step(world, action, last)
            planner.acted(action)
    return count / (time.process_time() - start)


def main() -> None:
    garbage.look_rarely()  # as the command does
    for profile in PROFILES:
        count = 300 if profile == "tall" else 3000
        size = f"{PROFILES[profile].width_px:>5} x {PROFILES[profile].height_px:<5}"
        print(f"{size} walk, new look         {steps_per_s(profile, count, 1, 1, record=False):8.0f} steps/s")
        print(f"{size} walk, known look       {steps_per_s(profile, count, 1, 2, record=False):8.0f} steps/s")
        print(f"{size} walk, with JPEG        {steps_per_s(profile, count, 1, 3, record=True):8.0f} steps/s")
        if profile != "tall":
            measure_groups(profile)
    for profile, screen in SCREENS.items():
        size = f"{screen.width_px:>5} x {screen.height_px:<5}"
        print(f"{size} desktop, new look      {desktop_steps_per_s(profile, 2000, record=False):8.0f} steps/s")
        print(f"{size} desktop, known look    {desktop_steps_per_s(profile, 2000, record=False):8.0f} steps/s")
        print(f"{size} desktop, with record   {desktop_steps_per_s(profile, 2000, record=True):8.0f} steps/s")
    world = phone("small", 3)
    kept: list[World] = []
    print(f"snapshot and restore {microseconds(lambda: kept.append(world), 10000):8.2f} us")
    print(f"elements             {microseconds(lambda: elements.__wrapped__(world), 300):8.0f} us")  # type: ignore[attr-defined]
    print(f"way to a setting     {microseconds(lambda: leads_to(world, 'network.nfc'), 300):8.0f} us")
    print(f"reset                {microseconds(lambda: phone('small', 5), 300):8.0f} us")
    print(f"oracle episodes      {episodes_per_s(100):8.0f} per s")


if __name__ == "__main__":
    main()
