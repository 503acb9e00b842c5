"""``GBoxEnv``: a box in the cloud behind the environment seam (docs/guides/gbox.md)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any

import anyio

from cuarl.env.base import Capabilities
from cuarl.env.device_program import DeviceProgram
from cuarl.env.durations import expected_s
from cuarl.env.gbox.actions import KINDS, POINTED, refusal, request
from cuarl.env.gbox.client import BoxType, GBox
from cuarl.env.gbox.lease import KIND
from cuarl.env.gbox.options import Options
from cuarl.env.gbox.plan import ABILITIES, read_screen
from cuarl.env.http import LostReply, UnknownOutcome
from cuarl.env.leases import Lease, Ledger
from cuarl.env.plans.devices import DeviceEyes, follower
from cuarl.env.plans.elements import Element, reach
from cuarl.env.plans.following import Follower
from cuarl.env.plans.steps import Line
from cuarl.env.settle import Patience, settle
from cuarl.env.shell_checks import stock
from cuarl.env.shell_checks.reads import read_all, run_all
from cuarl.errors import EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Answer, Observation, Screenshot, StepResult, Wait

logger = logging.getLogger(__name__)

TURNING_S = (0.0, 0.3, 1.0)
"""When to look again at a display that does not fit its picture: it may just be turning."""
UPRIGHT = 'keep the screen upright: "setup": ["settings put system accelerometer_rotation 0"] in the task\'s preset'
BOX_TYPES: Mapping[str, BoxType] = {"phone": "android", "desktop": "linux"}


class GBoxEnv:
    """A box for one episode of a task whose ``env`` is ``kind``: ``gbox``, or ``phone`` or ``desktop``.

    The latter two need ``cuarl-device`` in the box's image, unless the shell judges (``by_shell``). ``lent`` is the id
    of a box that somebody else has set up and will end; it is used as it is. ``starting`` bounds how many boxes are
    being started at the same time. ``plan`` is what the oracle follows. ``release`` is called once it is closed.
    """

    def __init__(
        self,
        boxes: GBox,
        ledger: Ledger,
        kind: str,
        options: Options,
        lent: str = "",
        starting: AbstractAsyncContextManager[object] | None = None,
        by_shell: bool = False,
        plan: Sequence[Line] = (),
        release: Callable[[], object] | None = None,
    ) -> None:
        self._starting, self._release = starting or nullcontext(), release
        self._boxes, self._ledger, self._options = boxes, ledger, options
        self._box_type: BoxType = BOX_TYPES.get(kind, options.box_type)
        self._managed, self._by_shell = kind in BOX_TYPES and not by_shell, by_shell
        self._plan: Sequence[Line] = () if kind in BOX_TYPES else plan
        self._follower: Follower | None = None
        self._eyes: DeviceEyes | None = None
        self._task: TaskInstance | None = None
        quiet = options.settle_ms
        self._patience = Patience(quiet_ms=quiet, react_ms=2 * quiet, cap_ms=max(2000.0, 4 * quiet))
        self._lease: Lease | None = None
        self._box = lent
        self._used = self._closed = False
        self._shown: Screenshot | None = None
        self._volatile: tuple[str, ...] = ()
        self._program = DeviceProgram(self._run, "the box")
        self._reads: Mapping[str, str] = {}
        self._teardown: tuple[str, ...] = ()

    @property
    def device_name(self) -> str:
        """The box's id."""
        return self._box

    @property
    def capabilities(self) -> Capabilities:
        """What the box can do."""
        kind = "phone" if self._box_type == "android" else "desktop"
        oracle = self._managed or bool(self._plan)
        return Capabilities(KINDS[self._box_type], state=True, oracle=oracle, kind=kind)

    @property
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths whose change is nobody's fault, as the box tells them."""
        return self._volatile

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Create the box, wait until it runs, and set the task up in it."""
        if self._used or self._closed:
            raise EnvError("this environment was reset already; an environment serves one episode")
        self._used = True
        self._follower = follower(self._plan, ABILITIES[self._box_type]) if self._plan else None
        async with self._starting:
            await self._start()
        self._task = task
        if self._managed:
            await self._program.reset(task, seed)
        elif self._by_shell:
            await self._set_up(task)
        else:
            self._reads = dict(task.preset.get("reads", {}))
            self._teardown = tuple(task.preset.get("teardown", ()))
            await run_all(task.preset.get("setup", ()), self._shell)
        self._shown = await self._shoot()
        await self._scale(self._shown)
        return Observation(self._shown)

    async def _set_up(self, task: TaskInstance) -> None:
        """By the shell alone, for a task in the words of the simulated phone's state."""
        setup, self._teardown = await stock.prepared(task, self._read)
        await run_all(setup, self._shell)
        self._volatile = stock.volatile(task)
        await stock.see_undone(task, self._read)

    async def _start(self) -> None:
        """Have a box that runs, within the time that starting may take, refusals included.

        Others wait for their turn.
        """
        start_s = self._options.start_seconds
        with anyio.move_on_after(start_s):
            if not self._box:
                label = secrets.token_hex(12)
                where = {"base_url": self._boxes.service.base_url, "account": self._boxes.account}
                self._lease = self._ledger.hold(KIND, label, where)
                self._box = await self._made(label)
                self._lease.note(box=self._box)
            await self._boxes.wait(self._box)
            return
        how_far = f"box {self._box} is not running" if self._box else "GBox has made no box"
        raise EnvError(f"{how_far} after {start_s:g} s", hint="--gbox-start-seconds 300")

    async def _made(self, label: str) -> str:
        """A new box. One whose answer was lost on its way is there all the same, and known by its label."""
        try:
            return await self._boxes.create(self._box_type, label, self._options.expires_in)
        except UnknownOutcome:
            found: list[str] = []
            with suppress(EnvError):
                found = await self._boxes.labelled(label)
            if not found:
                raise
            return found[0]

    async def step(self, action: Action) -> StepResult:
        """Carry out one action, and wait until the screen is still.

        An action whose answer was lost on its way is not repeated; ``info["unknown_outcome"]`` says so. One that points
        at a screenshot from which the display has been turned away is not carried out: the step shows the new screen.
        """
        before = self._ready()
        reason = refusal(action, (before.width, before.height), self._box_type)
        info: dict[str, Any] = {}
        if not reason:
            try:
                reason = await self._carry_out(action, before)
            except LostReply:
                info["unknown_outcome"] = True
        if reason:
            return StepResult(
                Observation(self._ready()), info={"rejected": reason, "changed": self._shown is not before}
            )
        seen = await settle(before, self._shoot, patience=self._patience)
        self._shown = seen.screenshot
        info |= {"settle_ms": seen.settle_ms, "settled": seen.settled, "changed": seen.changed}
        return StepResult(Observation(seen.screenshot), info=info)

    async def _carry_out(self, action: Action, before: Screenshot) -> str:
        """Do it; gives why it was not done, if that turns out only now."""
        scale = (1.0, 1.0)
        if action.kind in POINTED:
            found = await self._scale(before)
            if found is None:
                return "the display was turned after this screenshot was taken"
            scale = found
        wire = request(action, scale, (before.width, before.height))
        if wire is not None:
            return await self._boxes.act(self._box, *wire, takes_s=expected_s(action))
        if isinstance(action, Wait):
            await self._wait(action.seconds)
        if self._managed and isinstance(action, Answer):
            await self._program.answer(action.text)
        return ""

    async def _scale(self, shown: Screenshot) -> tuple[float, float] | None:
        """Units of the display for one pixel of ``shown``, across and down, read anew: a display may turn at any time.

        None if it was turned since, and a newer screenshot, which fits, is the one to go on with. Raises EnvError if
        that does not fit either: nobody knows then where a tap would land.
        """
        size = await self._boxes.display(self._box)
        if _fit(size, shown):
            return size[0] / shown.width, size[1] / shown.height
        for pause in TURNING_S:
            await anyio.sleep(pause)
            self._shown = shown = await self._shoot()
            size = await self._boxes.display(self._box)
            if _fit(size, shown):
                return None
        what = f"box {self._box} has a display of {size[0]}x{size[1]}, but a picture of {shown.width}x{shown.height}"
        raise EnvError(f"{what}: taps would land elsewhere", hint=UPRIGHT)

    async def state(self) -> Mapping[str, Any]:
        """The device's state as ``cuarl-device`` tells it, or as much of it as the shell does.

        The task's readings by name where its ``env`` is ``gbox`` and it has some.
        """
        self._ready()
        if self._by_shell:
            assert self._task is not None
            return await stock.state(self._task, self._read)
        if not self._managed:
            return await read_all(self._reads, self._read)
        self._volatile = await self._program.volatile()
        return await self._program.state()

    async def point(self, screenshot: Screenshot, target: str) -> tuple[int, int] | None:
        """Where ``target`` is, as a model of GBox sees it (an ``agent.pointing.Pointer``)."""
        return await self._boxes.point(screenshot, target)

    async def ask_oracle(self) -> Action:
        """The next action of the plan, or of a solution, where ``cuarl-device`` knows one.

        Raises AgentError for a step that can't be done.
        """
        shown = self._ready()
        if self._follower is None:
            return await self._program.oracle()
        self._eyes = DeviceEyes(shown, self._look, self._shoot)
        return await self._follower.next(self._eyes)

    async def around(self, x: int, y: int) -> tuple[int, int, int, int] | None:
        """How far what the plan has just pointed at reaches, in pixels of the screenshot."""
        return reach(self._eyes.seen, x, y) if self._eyes else None

    async def _look(self) -> Sequence[Element]:
        """What is on the screen now, in pixels of the screenshot."""
        shown = self._ready()
        scale = await self._scale(shown)
        if scale is None:
            raise EnvError(f"the display of box {self._box} was turned while a plan was followed", hint=UPRIGHT)
        return await read_screen(self._boxes, self._box, self._box_type, shown, scale)

    async def close(self) -> None:
        """Terminate the box. If that fails, its lease stays, and ``cuarl sessions sweep`` can end it later.

        A box that somebody else has lent is not ended; the task's teardown is run in it.
        """
        release, self._release, self._closed = self._release, None, True
        try:
            await self._end()
        finally:
            if release is not None:
                release()

    async def _end(self) -> None:
        lease, self._lease = self._lease, None
        teardown, self._teardown = self._teardown, ()
        if lease is None:
            await self._tear_down(teardown)
            return
        with anyio.CancelScope(shield=True):
            try:
                await self._boxes.end(lease.id, self._box)
            except EnvError as error:
                logger.warning("box %s could not be ended (cuarl sessions sweep does it later): %s", self._box, error)
                return
        lease.release()

    async def _tear_down(self, commands: Sequence[str]) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await run_all(commands, self._shell)
            except EnvError as error:
                logger.warning("the episode was not torn down in box %s: %s", self._box, error)

    async def _wait(self, seconds: float) -> None:
        """In a managed box by its own clock, which may be a simulated one."""
        if self._managed:
            await run_all([f"sleep {seconds:g}"], self._shell)
        else:
            await anyio.sleep(seconds)

    def _ready(self) -> Screenshot:
        if self._shown is None or self._closed:
            raise EnvError("the environment was not reset, or was closed", hint="call reset(task, seed) first")
        return self._shown

    async def _shoot(self) -> Screenshot:
        return await self._boxes.screenshot(self._box)

    async def _shell(self, command: str, *, repeatable: bool = False) -> tuple[int, str]:
        status, output, errors = await self._run(command, {}, repeatable=repeatable)
        return status, output or errors

    async def _read(self, command: str) -> tuple[int, str]:
        return await self._shell(command, repeatable=True)

    async def _run(self, command: str, assigned: Mapping[str, str], *, repeatable: bool) -> tuple[int, str, str]:
        return await self._boxes.command(self._box, command, assigned, repeatable=repeatable)


def _fit(display: tuple[int, int], shown: Screenshot) -> bool:
    """Whether both have one shape, but for the rounding of sizes."""
    (across, down), (width, height) = display, (shown.width, shown.height)
    return abs(across * height - down * width) <= across + down + width + height
