"""``LinuxEnv``: a real Linux desktop behind the environment seam."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from cuarl.env.base import Capabilities
from cuarl.env.leases import Ledger
from cuarl.env.linux.home import wallpaper
from cuarl.env.linux.keyboard import Untypable, check_key, check_keys, check_text
from cuarl.env.linux.plan import PlanOracle
from cuarl.env.linux.programs import APPS, app_named, apps_of, require
from cuarl.env.linux.report import list_files, ui
from cuarl.env.linux.screen import Screen
from cuarl.env.linux.session import Session
from cuarl.env.linux.settings import read_settings, with_named
from cuarl.env.linux.windows import Window
from cuarl.env.points import outside, points
from cuarl.env.settle import Patience, settle
from cuarl.errors import EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import (
    Action,
    Click,
    Drag,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Observation,
    OpenApp,
    Screenshot,
    Scroll,
    StepResult,
    TypeText,
    Wait,
    held_keys,
)

ACTIONS = frozenset(
    {
        "click", "long_press", "move", "mouse_down", "mouse_up", "drag", "scroll", "type", "key", "key_down", "key_up",
        "open_app", "wait", "answer", "finish",
    }
)  # fmt: skip
NOTCH_PX = 50
"""About what one notch of the wheel scrolls in GTK."""
WINDOW_S = 15.0
"""How long an application may take to show a window."""
AFTERMATH_S = 0.4
"""What an action brings about (a pressed button, a file being saved) has this long to happen before the state is
read."""
T = TypeVar("T")


def patience(settle_ms: float) -> Patience:
    """Still for ``settle_ms`` is settled; twice as long is given for a first change, two seconds in all."""
    return Patience(quiet_ms=settle_ms, react_ms=2 * settle_ms, cap_ms=max(2000.0, 4 * settle_ms), poll_ms=10)


class LinuxEnv:
    """A desktop for one episode, on a display of ``size`` pixels that is noted in ``ledger`` while it lives.

    ``settle_ms`` is how long the screen must be still after an action. Raises PrerequisiteError if this machine lacks a
    program or a package.
    """

    def __init__(self, ledger: Ledger, size: tuple[int, int] = (640, 480), *, settle_ms: float = 60) -> None:
        require()
        self.size, self.patience = size, patience(settle_ms)
        self._session: Session | None = Session(ledger, size)
        self._screen: Screen | None = None
        self._oracle = PlanOracle(())
        self._shown: Screenshot | None = None
        self._settings: tuple[str, ...] = ()
        self._turns = anyio.CapacityLimiter(1)
        self._acted_at = float("-inf")

    @property
    def device_name(self) -> str:
        """The display."""
        return str(self._session.display) if self._session else ""

    @property
    def capabilities(self) -> Capabilities:
        """What the desktop can do."""
        return Capabilities(ACTIONS, state=True, oracle=True, kind="desktop", held=True)

    @property
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths whose change is nobody's fault: applications save their settings by themselves."""
        return ("ui", "settings")

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Start the desktop and the task's applications, and wait until it is still."""
        if self._session is None:
            raise EnvError("this environment was closed")
        if self._screen is not None or self._session.display:
            raise EnvError("this environment was reset already; an environment serves one episode")
        self._settings = tuple(_settings_of(task))
        await self._session.start(seed, task.preset)
        self._screen = await self._do(Screen, self._session.display, self.size)
        await self._do(self._screen.paint, wallpaper(seed))
        await self._wait_for_manager()
        for command in apps_of(task.preset):
            await self._open(command)
        self._oracle = PlanOracle(task.plan)
        seen = await settle(await self._shoot(), self._shoot, patience=self.patience, check_health=self._health)
        self._shown = seen.screenshot
        return await self._observe()

    async def step(self, action: Action) -> StepResult:
        """Carry out one action, and wait until the screen is still."""
        screen, before = self._ready()
        reason = self._refusal(action)
        if reason:
            return StepResult(await self._observe(), info={"rejected": reason, "changed": False})
        await self._health()
        await self._carry_out(screen, action)
        self._acted_at = anyio.current_time()
        seen = await settle(before, self._shoot, patience=self.patience, check_health=self._health)
        self._shown = seen.screenshot
        info = {"settle_ms": seen.settle_ms, "settled": seen.settled, "changed": seen.changed}
        return StepResult(await self._observe(), info=info)

    async def screenshot(self) -> Screenshot:
        """The screen as it is now, whatever the last action was."""
        self._ready()
        return await self._shoot()

    async def state(self) -> Mapping[str, Any]:
        """Files, trash, settings and windows; settings that a check names and that are nowhere set are None."""
        screen, _ = self._ready()
        await self._do(screen.catch_up)
        await anyio.sleep_until(self._acted_at + AFTERMATH_S)
        await self._health()
        return await self._do(self._report, screen)

    def windows(self) -> list[Window]:
        """The windows as they are now, from the lowest to the topmost."""
        screen, _ = self._ready()
        return screen.windows()

    def oracle_action(self) -> Action:
        """The next action of the task's plan."""
        screen, _ = self._ready()
        return self._oracle.next(screen.windows(), self.size)

    async def close(self) -> None:
        """End every process and delete every file of the episode."""
        session, self._session = self._session, None
        if session is None:
            return
        with anyio.CancelScope(shield=True):
            await session.close()
            if self._screen is not None:
                self._screen.close()

    # --- acting ----------------------------------------------------------------------------------------------------

    def _refusal(self, action: Action) -> str:
        """Why an action can't be carried out; nothing has been done yet."""
        if action.kind not in ACTIONS:
            return f"a desktop has no {action.kind}"
        if reason := outside(action, self.size):
            return reason
        try:
            match action:
                case TypeText():
                    check_text(action.text)
                case Key():
                    check_keys(action.keys)
                case KeyDown() | KeyUp():
                    check_key(action.key)
                case OpenApp() if app_named(action.name) is None:
                    return f"no application {action.name!r}; there are {', '.join(app.title for app in APPS.values())}"
            check_keys(held_keys(action))
        except Untypable as error:
            return str(error)
        return ""

    async def _carry_out(self, screen: Screen, action: Action) -> None:
        match action:
            case Click():
                await self._do(screen.click, action.x, action.y, action.button, action.count, 0.0, action.held)
            case LongPress():
                await self._do(screen.click, action.x, action.y, "left", 1, action.duration_ms / 1000)
            case Move():
                await self._do(screen.move, action.x, action.y, action.held)
            case MouseDown() | MouseUp():
                down, at = isinstance(action, MouseDown), next(iter(points(action)), None)
                await self._do(partial(screen.mouse, down=down, at=at), action.button)
            case Drag():
                await self._do(screen.drag, action.path, action.duration_ms / 1000, action.held)
            case Scroll():
                x, y = (self.size[0] // 2 if action.x is None else action.x), action.y
                notches = action.amount if action.unit == "notch" else max(1, round(action.amount / NOTCH_PX))
                y = self.size[1] // 2 if y is None else y
                await self._do(screen.scroll, x, y, action.direction, notches, action.held)
            case TypeText():
                await self._do(partial(screen.type, submit=action.submit), action.text)
            case Key():
                await self._do(screen.press, action.keys, action.count)
            case KeyDown() | KeyUp():
                await self._do(partial(screen.key, down=isinstance(action, KeyDown)), action.key)
            case OpenApp():
                await self._open(app_named(action.name) or action.name)
            case Wait():
                await anyio.sleep(action.seconds)

    async def _open(self, command: str) -> None:
        """Start an application, and wait for a window that was not there before. Raises EnvError if none comes."""
        screen = self._screen
        assert screen is not None
        before = len(await self._do(screen.windows))
        name = await self._running().launch(command)
        with anyio.move_on_after(WINDOW_S):
            while len(await self._do(screen.windows)) <= before:
                await self._health()
                await anyio.sleep(0.02)
            return
        raise EnvError(f"{name} showed no window within {WINDOW_S:g} s")

    # --- screenshots -----------------------------------------------------------------------------------------------

    async def _shoot(self) -> Screenshot:
        screen = self._screen
        assert screen is not None
        return await self._do(screen.grab)

    async def _observe(self) -> Observation:
        screen, shown = self._ready()
        windows: Sequence[Window] = await self._do(screen.windows)
        focused = next((window for window in windows if window.focused), None)
        return Observation(shown, {"app": focused.app, "title": focused.title} if focused else {"app": "", "title": ""})

    def _report(self, screen: Screen) -> dict[str, Any]:
        home = self._running().home
        named = with_named(read_settings(home.config), iter(self._settings))
        return {
            "files": list_files(home.path),
            "trash": list_files(Path(home.trash)),
            "settings": named,
            "ui": ui(screen.windows()),
        }

    async def _health(self) -> None:
        self._running().check()

    async def _wait_for_manager(self) -> None:
        """Windows that come before the window manager would get no frame."""
        screen = self._screen
        assert screen is not None
        with anyio.move_on_after(WINDOW_S):
            while not await self._do(screen.is_managed):
                await self._health()
                await anyio.sleep(0.01)
            return
        raise EnvError(f"the window manager did not come up within {WINDOW_S:g} s")

    async def _do(self, function: Callable[..., T], *args: Any) -> T:
        """Call something that blocks; a display that hangs is left behind when the episode's time is up."""
        try:
            return await to_thread.run_sync(lambda: function(*args), limiter=self._turns, abandon_on_cancel=True)
        except EnvError:
            await anyio.sleep(0.05)  # the connection may know of the server's end before its parent does
            await self._health()  # which process has gone says more than what its connection says
            raise

    def _running(self) -> Session:
        if self._session is None:
            raise EnvError("this environment was closed")
        return self._session

    def _ready(self) -> tuple[Screen, Screenshot]:
        if self._session is None or self._screen is None or self._shown is None:
            raise EnvError("the environment was not reset", hint="call reset(task, seed) first")
        return self._screen, self._shown


def _settings_of(task: TaskInstance) -> Iterator[str]:
    for check in task.checks:
        path = check.path.removeprefix("settings.")
        if path != check.path and path.count(".") == 2:
            yield path
