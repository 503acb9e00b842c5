"""``AdbEnv``: a phone or an emulator behind the environment seam (docs/guides/android.md)."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio

from cuarl.env.adb.apps import package_of
from cuarl.env.adb.commands import ACTIONS, UNICODE_IME, commands, refusal
from cuarl.env.adb.options import Options
from cuarl.env.adb.plan import ON_PHONES, read_screen
from cuarl.env.adb.prepare import Rotation, bring_back, rotation_undo, turned
from cuarl.env.adb.preset import Preset, preset_of
from cuarl.env.adb.transport import Device, UnknownOutcome
from cuarl.env.base import Capabilities
from cuarl.env.device_program import DeviceProgram
from cuarl.env.durations import expected_s
from cuarl.env.plans.devices import DeviceEyes, follower
from cuarl.env.plans.elements import name_at, reach
from cuarl.env.plans.following import Follower
from cuarl.env.plans.seeing import Named
from cuarl.env.plans.steps import Line
from cuarl.env.settle import Patience, settle
from cuarl.env.shell_checks import stock
from cuarl.env.shell_checks.reads import installed_packages, read_all, run_all
from cuarl.errors import EnvError, TaskError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Answer, Observation, OpenApp, Screenshot, StepResult

logger = logging.getLogger(__name__)

LAUNCHER = "android.intent.category.LAUNCHER"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


class AdbEnv:
    """One episode on ``device``.

    A task whose ``env`` is ``adb`` is reset, set up, read and torn down by shell commands. ``managed`` is for tasks of
    the simulated phone: the device must have the program ``cuarl-device``, as the fake server's do. ``by_shell`` is for
    tasks in the words of its state, which the shell alone sets up and reads. ``plan`` is what the oracle follows.
    Without ``prepare`` the device is taken as it is shown, since somebody else has set it up. ``note_undo`` is told
    what will end the episode on the device, before anything is begun, and nothing once that is done; ``release`` is
    called at the end, and told whether the device could be brought up for the episode.
    """

    def __init__(
        self,
        device: Device,
        options: Options | None = None,
        *,
        managed: bool = False,
        by_shell: bool = False,
        plan: Sequence[Line] = (),
        prepare: bool = True,
        note_undo: Callable[[Sequence[str]], None] | None = None,
        release: Callable[[bool], None] | None = None,
    ) -> None:
        self.device, self._options = device, options or Options()
        quiet = self._options.settle_ms
        self._patience = Patience(
            quiet_ms=quiet, react_ms=2 * quiet, cap_ms=max(2000.0, 6 * quiet), poll_ms=min(50.0, quiet)
        )
        self._managed, self._by_shell, self._prepare = managed, by_shell, prepare
        self._task: TaskInstance | None = None
        self._note_undo, self._release = note_undo, release
        self._program = DeviceProgram(self._run, f"device {device.serial}")
        self._plan: Sequence[Line] = () if managed else plan
        self._follower: Follower | None = None
        self._eyes: DeviceEyes | None = None
        self._preset = Preset()
        self._undo: list[str] = []
        self._shown: Screenshot | None = None
        self._used = self._closed = self._unicode = False
        self._volatile: tuple[str, ...] = ()
        self._boot = ""
        self._down_s = 0.0

    @property
    def device_name(self) -> str:
        """The device's serial number."""
        return str(self.device.serial)

    @property
    def capabilities(self) -> Capabilities:
        """What the phone can do."""
        oracle = self._managed or bool(self._plan)
        return Capabilities(ACTIONS, state=True, oracle=oracle, kind="phone")

    @property
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths whose change is nobody's fault."""
        return self._volatile

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Bring the device back, run the task's setup, and open its app. Raises EnvError, TaskError."""
        if self._used or self._closed:
            raise EnvError("this environment was reset already; an environment serves one episode")
        self._used = True
        self._task = task
        self._follower = follower(self._plan, ON_PHONES) if self._plan else None
        if self._managed:
            await self._program.reset(task, seed)
        else:
            await self._set_up(task)
        if self._by_shell:
            self._volatile = stock.volatile(task)
            await stock.see_undone(task, self.device.read)
        self._unicode = UNICODE_IME in (await self.device.read("ime list -a -s"))[1]
        self._boot = await self._boot_id()
        self._down_s = self.device.down_s
        self._shown = await self._shoot()
        seen = await settle(self._shown, self._shoot, patience=self._patience, check_health=self._health)
        self._shown = seen.screenshot
        return Observation(self._shown)

    async def step(self, action: Action) -> StepResult:
        """Carry out one action, and wait until the screen is still.

        An action that was under way when the link broke is not repeated; ``info["unknown_outcome"]`` says so, and
        ``info["down_s"]`` for how long the device was not there.
        """
        before = self._ready()
        reason = refusal(action, (before.width, before.height), unicode=self._unicode)
        info: dict[str, Any] = {}
        if not reason:
            try:
                reason = await self._carry_out(action, before)
            except UnknownOutcome:
                info["unknown_outcome"] = True
        if reason:
            return StepResult(Observation(before), info={"rejected": reason, "changed": False})
        seen = await settle(before, self._shoot, patience=self._patience, check_health=self._health)
        await self._still_the_same(info)
        self._shown = seen.screenshot
        info |= {"settle_ms": seen.settle_ms, "settled": seen.settled, "changed": seen.changed}
        return StepResult(Observation(seen.screenshot), info=info)

    async def state(self) -> Mapping[str, Any]:
        """The task's readings by name; for a managed device its whole state, by the shell what that tells of it."""
        self._ready()
        if self._managed:
            self._volatile = await self._program.volatile()
            return await self._program.state()
        if self._by_shell:
            assert self._task is not None
            return await stock.state(self._task, self.device.read)
        return await read_all(self._preset.reads, self.device.read)

    async def ask_oracle(self) -> Action:
        """The next action of the plan, or of a solution, where the device knows one.

        Raises AgentError for a step that can't be done.
        """
        shown = self._ready()
        if self._follower is None:
            return await self._program.oracle()
        look = partial(read_screen, self.device, (shown.width, shown.height))
        self._eyes = DeviceEyes(shown, look, self._shoot)
        return await self._follower.next(self._eyes)

    async def around(self, x: int, y: int) -> tuple[int, int, int, int] | None:
        """How far what the plan has just pointed at reaches, in pixels of the screenshot."""
        return reach(self._eyes.seen, x, y) if self._eyes else None

    async def name_at(self, x: int, y: int) -> Named:
        """What a plan calls the thing at a pixel of the screenshot."""
        shown = self._ready()
        return name_at(await read_screen(self.device, (shown.width, shown.height)), x, y)

    async def close(self) -> None:
        """Undo what the episode began on the device. A device that is gone is only warned about."""
        undo, self._undo, self._closed = self._undo, [], True
        release, self._release = self._release, None
        try:
            if undo:
                await self._tear_down(undo)
        finally:
            if release is not None:
                release(self._shown is not None)

    # --- the course of an episode ----------------------------------------------------------------------------------

    async def _set_up(self, task: TaskInstance) -> None:
        options, device = self._options, self.device
        preset = self._preset = await self._prepared(task)
        undo = list(preset.teardown)
        if self._prepare and options.rotation != "free":
            undo += await rotation_undo(device)
        self._undo = undo  # known before anything is begun, so that a reset that fails half-way is torn down, too
        if self._note_undo is not None:
            self._note_undo(undo)
        if self._prepare:
            await bring_back(device, preset, device.host)
            await self._turn(options.rotation)
        await run_all(preset.setup, device.shell)
        if preset.open:
            reason = await self._open(preset.open)
            if reason:
                raise TaskError(f"task {task.task_id} opens {preset.open}: {reason}")

    async def _prepared(self, task: TaskInstance) -> Preset:
        options = self._options
        if not self._by_shell:
            return preset_of(task, options.reset, options.snapshot or "")
        found = await stock.prepared(task, self.device.read)
        return Preset(found.setup, {}, found.teardown, reset=options.reset, snapshot=options.snapshot or "")

    async def _turn(self, rotation: Rotation) -> None:
        """Hold the screen as wanted, whichever way up the device was built."""
        if rotation == "free":
            return
        await run_all(turned(0), self.device.shell)
        shot = await self._shoot()
        if shot.width != shot.height and (shot.width > shot.height) != (rotation == "landscape"):
            await run_all(turned(1), self.device.shell)

    async def _carry_out(self, action: Action, before: Screenshot) -> str:
        """Do it; gives why it can't be done, if the device finds out only now."""
        if isinstance(action, OpenApp):
            return await self._open(action.name)
        more_s = expected_s(action)
        for command in commands(action, (before.width, before.height)):
            status, output = await self.device.shell(command, more_s=more_s)
            if status:
                raise EnvError(f"{command} ended with status {status} on the device: {output.strip()[:300]}")
        if self._managed and isinstance(action, Answer):
            await self._program.answer(action.text)
        return ""

    async def _open(self, name: str) -> str:
        """Start an app by its name; gives why that can't be done."""
        named = await self._program.apps() if self._managed else self._preset.apps
        package = package_of(name, await installed_packages(self.device.read), named)
        if package is None:
            return f"no installed app is called {name!r}"
        _, found = await self.device.read(f"cmd package resolve-activity --brief -c {LAUNCHER} {shlex.quote(package)}")
        activity = (found.strip().splitlines() or [""])[-1]
        if "/" not in activity:
            return f"{package} has no screen to open"
        await run_all([f"am start -n {shlex.quote(activity)}"], self.device.shell)
        return ""

    async def _tear_down(self, undo: Sequence[str]) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await run_all(undo, self.device.shell)
            except EnvError as error:
                logger.warning("the episode was not torn down on %s: %s", self.device.serial, error)
                return
        if self._note_undo is not None:
            self._note_undo(())

    # --- screenshots -----------------------------------------------------------------------------------------------

    def _ready(self) -> Screenshot:
        if self._shown is None or self._closed:
            raise EnvError("the environment was not reset, or was closed", hint="call reset(task, seed) first")
        return self._shown

    async def _shoot(self) -> Screenshot:
        data = await self.device.screencap()
        try:
            return Screenshot.decode(data)
        except OSError as error:
            raise EnvError(f"device {self.device.serial} gave no picture: {data[:80]!r}") from error

    async def _health(self) -> None:
        _, output = await self.device.read("dumpsys power")
        if "mWakefulness=Asleep" in output or "mWakefulness=Dozing" in output:
            raise EnvError("the device is asleep, its screen black", hint="adb shell svc power stayon true")

    async def _still_the_same(self, info: dict[str, Any]) -> None:
        """Note for how long the device was away; one that was started anew meanwhile has lost the episode."""
        down_s = self.device.down_s - self._down_s
        if not down_s:
            return
        self._down_s += down_s
        info["down_s"] = round(down_s, 3)
        if await self._boot_id() != self._boot:
            raise EnvError(f"device {self.device.serial} was started anew during the episode")

    async def _boot_id(self) -> str:
        """Changes with every start of the device; empty where it does not tell."""
        status, output = await self.device.read(BOOT_ID)
        return "" if status else output.strip()

    async def _run(self, command: str, assigned: Mapping[str, str], *, repeatable: bool) -> tuple[int, str, str]:
        before = "".join(f"{name}={shlex.quote(value)} " for name, value in assigned.items())
        status, output = await self.device.shell(before + command, repeatable=repeatable)
        return status, output, output
