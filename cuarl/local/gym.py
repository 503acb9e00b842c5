"""A local gym server over simulated phones, to try ``--env gym`` and gbox-mini-agent without accounts.

    cuarl local gym --port 5010

It serves the shipped tasks of the phone, worded in each of the ways that gym servers use, and judges with their checks.
An execution's device is a box of a local GBox, which it serves below ``/gbox/api/v1`` with the key ``--key``. ``GET
/fake`` counts executions made and live, evaluations, and actions carried out; ``--refuse``, ``--break`` and ``--drop``
are shares of requests to misbehave on, as in ``cuarl local gbox``.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import Field

from cuarl.errors import CuarlError
from cuarl.local.box import SimulatedBox
from cuarl.local.faults import Faults
from cuarl.local.gbox import MAX_BODY, FakeGBox
from cuarl.tasks.check import verdict
from cuarl.tasks.library import Library
from cuarl.tasks.task import Task, TaskInstance
from cuarl.types import Record
from cuarl.web.guard import application, json_object, json_response
from cuarl.web.refusal import Refusal, detail, understood
from cuarl.web.rules import Rules, Token

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

SUITES = ("demo_training", "demo_eval")
BOXES = "/gbox/api/v1"


@dataclass(slots=True)
class Execution:
    """One task on one box."""

    id: str
    task: TaskInstance
    box: SimulatedBox
    before: Mapping[str, Any]
    evaluations: int = 0

    async def evaluate(self, answer: str | None) -> dict[str, Any]:
        """What the task's checks say, as a gym words it."""
        device = await self.box.device()
        said = verdict(self.task, self.before, await device.state(), answer, volatile=device.volatile)
        checks = [
            {"id": check.path, "pass": check.passed, "score": float(check.passed), "weight": 1.0}
            for check in said.checks
        ]
        result = {"success": said.success, "score": said.score, "validators": checks}
        return {"success": True, "result": result}


class FakeGym:
    """The server's tasks and executions, and its application. With ``key`` clients must send it as a bearer token."""

    def __init__(
        self,
        tasks: Sequence[Task] | None = None,
        *,
        key: str | None = None,
        box_key: str = "any-key",
        profile: str = "small",
        faults: Faults | None = None,
    ) -> None:
        self.tasks = {task.id: task for task in (shipped() if tasks is None else tasks)}
        self.key, self.faults = key, faults or Faults()
        self.boxes = FakeGBox(box_key, profile)
        self.executions: dict[str, Execution] = {}

    def counts(self) -> dict[str, int]:
        """Executions made and live, evaluations, actions carried out, and those carried out more than once."""
        made = self.executions.values()
        acted = self.boxes.counts()
        return {
            "made": len(made),
            "live": sum(not e.box.terminated for e in made),
            "evaluations": sum(e.evaluations for e in made),
            "actions": acted["actions"],
            "doubled": acted["doubled"],
        }

    def app(self) -> Starlette:
        """The application."""
        from starlette.routing import Mount, Route

        async def counted(request: Request) -> Response:
            return json_response(self.counts())

        async def device(request: Request) -> Response:
            """How the local mini-agent finds its execution's device: real ones ask the gym in words of their own."""
            found = self._execution(request)
            return json_response({"box": found.box.id, "path": BOXES, "key": self.boxes.key})

        gym = "/api/v1/{gym}"
        routes = [
            Route("/fake", counted),
            Route("/fake/executions/{id}", device),
            Mount("/gbox", app=self.boxes.app()),
            Route(f"{gym}/tasks", self.faults.around(self._list), methods=["GET"]),
            Route(f"{gym}/tasks/{{task}}", self.faults.around(self._show), methods=["GET"]),
            Route(f"{gym}/tasks/{{task}}", self.faults.around(self._create), methods=["POST"]),
            Route(f"{gym}/executions/{{id}}/evaluate", self.faults.around(self._evaluate), methods=["POST"]),
            Route(f"{gym}/executions/{{id}}/terminate", self.faults.around(self._terminate), methods=["POST"]),
        ]
        rules = Rules(say=detail, token=Token(self.key) if self.key else None, open=_open, body_bytes=MAX_BODY)
        return application(routes, rules)

    def _execution(self, request: Request) -> Execution:
        found = self.executions.get(request.path_params["id"])
        if found is None or found.box.terminated:
            raise Refusal("no such execution", status=404)
        return found

    async def _list(self, request: Request) -> Response:
        listed = [worded(task, number) for number, task in enumerate(self.tasks.values(), 1)]
        return json_response({"tasks": [summary for summary, _ in listed]})

    async def _show(self, request: Request) -> Response:
        wanted = request.path_params["task"]
        for number, task in enumerate(self.tasks.values(), 1):
            if task.id == wanted:
                return json_response(worded(task, number)[1])
        raise Refusal(f"no task {wanted[:80]}", status=404)

    async def _create(self, request: Request) -> Response:
        task = self.tasks.get(request.path_params["task"])
        if task is None:
            raise Refusal("no such task", status=404)
        body = await json_object(request, empty=True)
        with understood():
            seed = Options.model_validate({"seed": (body.get("options") or {}).get("seed") or 0}).seed
        box = SimulatedBox(secrets.token_hex(8), "android", self.boxes.profile, {}, time.monotonic())
        instance = task.instantiate(seed)
        try:
            await box.set_up(instance, seed)
        except CuarlError as error:
            raise Refusal(str(error), status=422) from error
        made = Execution(secrets.token_hex(8), instance, box, await (await box.device()).state())
        self.boxes.boxes[box.id] = box
        self.executions[made.id] = made
        return json_response({"execution_id": made.id, "device": {"box_id": box.id}}, 201)

    async def _evaluate(self, request: Request) -> Response:
        found = self._execution(request)
        answer = (await json_object(request, empty=True)).get("answer_text")
        if answer is not None and not isinstance(answer, str):
            raise Refusal("answer_text is a text", param="answer_text", status=422)
        found.evaluations += 1
        try:
            return json_response(await found.evaluate(answer))
        except CuarlError as error:
            return json_response({"success": False, "error": str(error)})

    async def _terminate(self, request: Request) -> Response:
        found = self.executions.get(request.path_params["id"])
        if found is None:
            raise Refusal("no such execution", status=404)
        found.box.terminated = True
        return json_response({"execution_id": found.id, "status": "terminated"})


class Options(Record):
    """What a new execution may be asked for."""

    seed: int = Field(default=0, ge=0, lt=1 << 63)


def _open(path: str) -> bool:
    """What needs no key of the gym's: counts, and the boxes, which have a key of their own."""
    return path.startswith(("/fake", "/gbox/"))


def shipped() -> list[Task]:
    """The shipped tasks of the phone that need no server of their own."""
    library = Library.open(None)
    found = [one.task for name in SUITES for one in library.pick(name) or ()]
    return [task for task in found if task.env == "phone"]


def worded(task: Task, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task in a listing and by itself, by turns in each of the ways that servers word tasks."""
    goal, tag = task.instantiate(0).goal, {"medium": "normal"}.get(task.difficulty, task.difficulty)
    tags = [tag, task.category]
    match number % 4:
        case 0:
            full: dict[str, Any] = {"task_id": task.id, "task_number": number, "name": task.name or task.id}
            return full, {**full, "description": f"About: {task.category}", "instruction": goal, "tags": tags}
        case 1:
            full = {"id": task.id, "display_name": task.name or task.id, "description": goal, "tags": tags}
        case 2:
            meta = {"id": task.id, "number": f"{number:03d}", "displayName": task.name, "description": goal}
            full = {"meta": meta, "tags": tags, "seed_id": str(number), "env_config": {}}
        case _:
            full = {
                "task_id": task.id,
                "task_name": task.name,
                "instruction": goal,
                "tags": tags,
                "category": task.category,
            }
            return full, {"task": full}
    return full, full
