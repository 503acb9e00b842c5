"""The calls of a gym server's HTTP interface, and what its answers mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import anyio

from cuarl import strict_json
from cuarl.env.gym.options import Options
from cuarl.env.http import Service
from cuarl.errors import EnvError, RewardError
from cuarl.settings import Settings
from cuarl.tasks.gym import GymTask, id_of, is_summary, read_listing, read_task, unique, whole
from cuarl.trajectory import CheckResult, Verdict

CREATE_S, EVALUATE_S = 600.0, 600.0
"""A gym sets a whole device up before it answers."""
_BOX_NAMES = ("box_id", "gbox_id", "boxId", "container_id", "env_id", "environment_id", "environment", "box")
_ASKED_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Started:
    """An execution and the device that it runs on: one of serial and box is set, if the gym tells."""

    id: str
    serial: str = ""
    box: str = ""


class Gym:
    """One gym of a server. All methods raise EnvError, and TaskError for tasks that can't be read."""

    def __init__(self, base_url: str, gym_id: str, api_key: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.gym_id = gym_id
        self.service = Service("the gym server", base_url, headers)
        self._path = f"api/v1/{quote(gym_id, safe='')}"

    @classmethod
    def of(cls, options: Options, settings: Settings) -> Gym:
        """The gym that a run's options name, on this machine's server."""
        key = settings.gym_api_key
        return cls(settings.gym_base_url, options.id, key.get_secret_value() if key else None)

    async def tasks(self) -> list[GymTask]:
        """Every task; those that the listing only sums up are asked for one by one."""
        where = f"{self.service.base_url}/{self._path}/tasks"
        reply = await self.service.send("GET", f"{self._path}/tasks", repeatable=True)
        try:
            listed = read_listing(strict_json.reply(reply.content), where)
        except ValueError as error:
            raise EnvError("the gym server's list of tasks is no JSON", where=where) from error
        found: dict[int, Mapping[str, Any]] = dict(enumerate(listed))
        slots = anyio.CapacityLimiter(_ASKED_AT_ONCE)

        async def ask(position: int, task_id: str) -> None:
            async with slots:
                full = await self.service.json("GET", f"{self._path}/tasks/{quote(task_id, safe='')}", repeatable=True)
                found[position] = {**listed[position], **whole(full)}

        async with anyio.create_task_group() as asking:
            for position, raw in enumerate(listed):
                if is_summary(raw):
                    asking.start_soon(ask, position, id_of(raw, where))
        return unique((read_task(found[i], where) for i in range(len(listed))), where)

    async def create(self, task_id: str, seed: int) -> Started:
        """Start an execution of a task, once."""
        path = f"{self._path}/tasks/{quote(task_id, safe='')}"
        reply = await self.service.json("POST", path, json={"options": {"seed": seed}}, timeout_s=CREATE_S)
        execution = reply.get("execution_id")
        if not isinstance(execution, str | int) or not str(execution):
            raise EnvError("the gym server started an execution and told no execution_id", where=path)
        return Started(str(execution), _serial(reply), _box(reply))

    async def evaluate(self, execution: str, answer: str | None) -> Verdict:
        """The gym's verdict as it stands. Raises RewardError if it gives none."""
        body = {} if answer is None else {"answer_text": answer}
        path = f"{self._path}/executions/{quote(execution, safe='')}/evaluate"
        return read_verdict(await self.service.json("POST", path, json=body, repeatable=True, timeout_s=EVALUATE_S))

    async def terminate(self, execution: str) -> None:
        """End an execution; one that is gone is as good."""
        path = f"{self._path}/executions/{quote(execution, safe='')}/terminate"
        await self.service.send("POST", path, json={}, repeatable=True, accept=(404, 409, 410))

    async def close(self) -> None:
        """Close the connections."""
        await self.service.close()


def read_verdict(body: Mapping[str, Any]) -> Verdict:
    """What an evaluation says. Raises RewardError for one that says nothing: that is no failure of the policy.

    The score is the first of: ``result.score``, the weighted mean of ``result.validators``, ``reward`` or ``score``
    beside ``result``, and whether it was a success. A number that is there counts, zero as well.
    """
    result = body.get("result")
    found: Mapping[str, Any] = result if isinstance(result, Mapping) else {}
    checks = _checks(found.get("validators"))
    success = found.get("success") if isinstance(found.get("success"), bool) else None
    if success is None and not found:  # beside a result it only says that the evaluation ran
        success = body.get("success") if isinstance(body.get("success"), bool) else None
    numbers = (found.get("score"), _mean(found.get("validators")), body.get("reward"), body.get("score"), success)
    score = next((float(n) for n in numbers if isinstance(n, int | float)), None)
    problem = body.get("error") or body.get("detail")
    if score is None or (problem and not found):
        raise RewardError(f"the gym gave no verdict: {problem or 'neither a score nor a success'}")
    if not 0 <= score <= 1:
        raise RewardError(f"the gym's score is {score:g}, which is not from 0 to 1")
    done = score == 1 if success is None else success and score > 0
    return Verdict(success=done, score=score, checks=checks)


def _validators(given: Any) -> list[Mapping[str, Any]]:
    return [v for v in given if isinstance(v, Mapping)] if isinstance(given, list) else []


def _checks(given: Any) -> tuple[CheckResult, ...]:
    return tuple(
        CheckResult(path=str(v.get("id", i)), op="validator", actual=v.get("score"), passed=v.get("pass") is True)
        for i, v in enumerate(_validators(given))
    )


def _mean(given: Any) -> float | None:
    """Weighted mean of the validators' scores, one without a score counting by whether it passed."""
    parts = []
    for v in _validators(given):
        score, weight = v.get("score"), v.get("weight")
        value = score if isinstance(score, int | float) else v.get("pass")
        if isinstance(value, int | float):  # True and False, too
            parts.append((float(value), float(weight) if isinstance(weight, int | float) else 1.0))
    total = sum(weight for _, weight in parts)
    return sum(value * weight for value, weight in parts) / total if total > 0 else None


def _serial(reply: Mapping[str, Any]) -> str:
    device = reply.get("device")
    serial = device.get("device_serial") if isinstance(device, Mapping) else None
    return str(serial or reply.get("device_serial") or "")


def _box(reply: Mapping[str, Any]) -> str:
    """The box's id: of several names, and perhaps one level down."""
    for name in _BOX_NAMES:
        value = reply.get(name)
        if isinstance(value, Mapping):
            value = next((value[n] for n in (*_BOX_NAMES, "id") if isinstance(value.get(n), str)), None)
        if isinstance(value, str) and value:
            return value
    device = reply.get("device")
    return _box(device) if isinstance(device, Mapping) else ""
