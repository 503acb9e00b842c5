"""``cuarl-device``.

The program on a device that sets tasks of the simulated kinds up and tells their state (docs/guides/gbox.md).

It is called with one verb and gets what belongs to it in environment variables; it prints a JSON object.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from cuarl import strict_json
from cuarl.env.sim.base import SimulatedEnv
from cuarl.errors import CuarlError, EnvError, TaskError
from cuarl.tasks.task import TaskInstance
from cuarl.types import ACTION, Action, Answer
from cuarl.web.refusal import whole

PROGRAM = "cuarl-device"
DATA_ERROR, UNKNOWN_COMMAND = 65, 127
"""Exit statuses: EX_DATAERR, for a task that can't be set up, and the shell's own."""


class Run(Protocol):
    """Runs a command on the device with environment variables; ``repeatable`` is for one that changes nothing."""

    async def __call__(self, command: str, assigned: Mapping[str, str], *, repeatable: bool) -> tuple[int, str, str]:
        """Exit status, output, and what was said of errors."""
        ...


class DeviceProgram:
    """The program on one device, called ``name`` in errors. All calls raise EnvError if it fails."""

    def __init__(self, run: Run, name: str) -> None:
        self._run, self._name = run, name

    async def reset(self, task: TaskInstance, seed: int) -> None:
        """Set a task up. Raises TaskError for one that the device refuses."""
        await self._call("reset", {"CUARL_TASK": task.model_dump_json(), "CUARL_SEED": str(seed)}, repeatable=False)

    async def state(self) -> dict[str, Any]:
        """What validators see."""
        return await self._call("state")

    async def volatile(self) -> tuple[str, ...]:
        """Globs of state paths that have changed, or may, by themselves."""
        return tuple((await self._call("volatile"))["volatile"])

    async def oracle(self) -> Action:
        """The next action of a solution."""
        return ACTION.validate_python(await self._call("oracle"))

    async def apps(self) -> dict[str, str]:
        """Packages of the apps that can be opened, by the names under their icons."""
        return await self._call("apps")

    async def answer(self, text: str) -> None:
        """Tell it what the user was told, which is no touch of the screen."""
        await self._call("answer", {"CUARL_ANSWER": text}, repeatable=False)

    async def _call(
        self, verb: str, assigned: Mapping[str, str] | None = None, *, repeatable: bool = True
    ) -> dict[str, Any]:
        command = f"{PROGRAM} {verb}"
        status, output, errors = await self._run(command, assigned or {}, repeatable=repeatable)
        if status == DATA_ERROR:
            raise TaskError(f"{self._name} refuses the task: {errors[:300]}")
        if status == UNKNOWN_COMMAND:
            raise EnvError(
                f"{self._name} has no {PROGRAM}; its shell judges most of these tasks: "
                "--adb-state shell, --gbox-state shell"
            )
        if status:
            raise EnvError(f"{command} ended with status {status} on {self._name}: {errors[:300]}")
        try:
            reply = strict_json.reply(output)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            raise EnvError(f"{command} on {self._name} printed no JSON object: {output[:200]}")
        return reply


SetUp = Callable[[TaskInstance, int], Awaitable[object]]
"""Starts a simulated device anew with a task and a seed."""


async def simulate(
    device: SimulatedEnv[Any], set_up: SetUp, verb: str, assigned: Mapping[str, str], apps: Mapping[str, str]
) -> tuple[int, str, str]:
    """What the program does on a simulated device: exit status, output, errors."""
    try:
        reply = await _reply(device, set_up, verb, assigned, apps)
    except (CuarlError, KeyError, ValueError) as error:
        return DATA_ERROR if verb == "reset" else 1, "", str(error)
    if reply is None:
        return UNKNOWN_COMMAND, "", f"{PROGRAM} has no verb {verb[:60]}"
    return 0, strict_json.dumps(reply), ""


async def _reply(
    device: SimulatedEnv[Any], set_up: SetUp, verb: str, assigned: Mapping[str, str], apps: Mapping[str, str]
) -> Mapping[str, Any] | None:
    """What the program prints; None for a verb that it does not know."""
    match verb:
        case "reset":
            await set_up(TaskInstance.read(assigned["CUARL_TASK"]), whole("CUARL_SEED", assigned["CUARL_SEED"], 20))
        case "state":
            return await device.state()
        case "volatile":
            return {"volatile": list(device.volatile)}
        case "oracle":
            return device.oracle_action().model_dump()
        case "apps":
            return apps
        case "answer":
            await device.step(Answer(text=assigned["CUARL_ANSWER"]))
        case _:
            return None
    return {}
