"""``OpenEnvEnv``: a session of an OpenEnv server behind the environment seam (docs/guides/openenv.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from cuarl.env.base import Capabilities
from cuarl.env.foreign.counters import Counters
from cuarl.env.foreign.mapping import NoWord, Table
from cuarl.env.foreign.pictures import at, screenshot
from cuarl.env.openenv.client import Refused, Server, Session
from cuarl.env.points import outside
from cuarl.errors import EnvError, RewardError
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Verdict
from cuarl.types import Action, Answer, Finish, Observation, StepResult

PICTURES = ("screenshot", "image", "picture", "frame", "pixels", "rgb", "screen")
"""Names under which a picture is looked for in an observation."""
LONGEST_TEXT = 4000


@dataclass(frozen=True, slots=True)
class Terms:
    """How a server is spoken to."""

    capabilities: Capabilities
    table: Table | None
    """What actions are sent as; None for the words of cuarl's own servers, which also judge."""
    picture: str = "auto"
    goal_from: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of a reset."""


class OpenEnvEnv:
    """One episode in a session of its own.

    A server of cuarl's is asked for its verdict; others are judged by the task's checks.
    """

    def __init__(self, server: Server, terms: Terms) -> None:
        self._server, self._terms = server, terms
        self._session: Session | None = None
        self._task: TaskInstance | None = None
        self._shown: Observation | None = None
        self._counters, self._metadata = Counters(), dict[str, Any]()
        self._used = self._closed = False

    @property
    def device_name(self) -> str:
        """The server."""
        return self._server.url.removesuffix("/ws")

    @property
    def capabilities(self) -> Capabilities:
        """What the server's words can say."""
        return self._terms.capabilities

    @property
    def volatile(self) -> tuple[str, ...]:
        """Everything: what the server tells is the verdict."""
        return ("*",)

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Open a session and begin the episode. Raises EnvError."""
        if self._used or self._closed:
            raise EnvError("this environment was reset already; an environment serves one episode")
        self._used, self._task = True, task
        self._session = await self._server.session()
        try:
            data = await self._session.ask(
                "reset", {"seed": seed, **self._terms.arguments, **task.preset.get("reset", {})}
            )
        except Refused as error:
            raise EnvError(f"the OpenEnv server does not begin the task: {error}", where=task.task_id) from error
        self._metadata = _metadata(data)
        self._shown = self._look(data)
        goal = self._goal(data)
        return Observation(self._shown.screenshot, {**self._shown.text, **({"goal": goal} if goal else {})})

    async def step(self, action: Action) -> StepResult:
        """Carry out one action."""
        await anyio.lowlevel.checkpoint()
        before, session = self._ready()
        try:
            if self._counters.over:
                raise NoWord("the environment has ended the episode")
            if reason := outside(action, (before.screenshot.width, before.screenshot.height)):
                raise NoWord(reason)
            data = await session.ask("step", self._words(action, before))
        except (NoWord, Refused) as error:
            return StepResult(before, terminated=self._counters.over, info={"rejected": str(error), "changed": False})
        reward = self._count(data)
        self._shown = self._look(data)
        info: dict[str, Any] = {"changed": self._shown.screenshot.digest != before.screenshot.digest}
        rejected = at(data.get("observation"), "rejected") if self._terms.table is None else None
        if rejected:
            info["rejected"] = str(rejected)
        return StepResult(
            self._shown,
            reward=reward,
            terminated=self._counters.terminated,
            truncated=self._counters.truncated,
            info=info,
        )

    async def state(self) -> Mapping[str, Any]:
        """The counters of the episode and, as ``server``, the state that the server tells.

        {} for a server that judges itself.
        """
        _, session = self._ready()
        if self._terms.table is None:
            return {}
        return {**self._counters.state(), "server": await session.ask("state")}

    async def judge(self, answer: str | None, claimed: bool | None) -> Verdict:
        """The server's verdict where it gives one (cuarl's do), else by the task's checks. Raises RewardError."""
        before, session = self._ready()
        assert self._task is not None
        if self._terms.table is not None:
            if answer is not None and not self._counters.over and "answer" in self._terms.table.kinds:
                self._count(await session.ask("step", self._words(Answer(text=answer), before)))
            return self._counters.verdict(self._task, answer, claimed)
        if "verdict" not in self._metadata:
            finish = Finish(success=claimed is not False, message=answer or "")
            self._count(await session.ask("step", self._words(finish, before)))
        if "verdict" not in self._metadata:
            raise RewardError("the OpenEnv server ended the episode without a verdict")
        return Verdict.model_validate(self._metadata["verdict"]).model_copy(update={"claimed": claimed})

    async def close(self) -> None:
        """End the session."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _ready(self) -> tuple[Observation, Session]:
        if self._shown is None or self._session is None:
            raise EnvError("the environment was not reset, or was closed", hint="call reset(task, seed) first")
        return self._shown, self._session

    def _words(self, action: Action, shown: Observation) -> dict[str, Any]:
        if self._terms.table is None:
            return action.model_dump(mode="json")
        value = self._terms.table.value(action, (shown.screenshot.width, shown.screenshot.height))
        if not isinstance(value, dict):
            raise NoWord(f"the table sends {value!r}, and OpenEnv's actions are objects of JSON")
        return value

    def _count(self, data: Mapping[str, Any]) -> float | None:
        reward, done = data.get("reward"), data.get("done") is True
        self._metadata = _metadata(data)
        truncated = done and self._metadata.get("truncated") is True
        value = float(reward) if isinstance(reward, int | float) else None
        self._counters.add(value, terminated=done and not truncated, truncated=truncated, info=self._metadata)
        return value

    def _look(self, data: Mapping[str, Any]) -> Observation:
        observation = data.get("observation")
        if not isinstance(observation, Mapping):
            raise EnvError("the OpenEnv server tells no observation", where=str(data)[:200])
        path = self._terms.picture
        if path == "auto":
            path = next((name for name in PICTURES if observation.get(name)), "")
        given = at(observation, path) if path else None
        if not given:
            named = f"at {path}" if path else f"under {', '.join(PICTURES)}"
            raise EnvError(
                f"the observation has no picture {named}",
                where=f"it has {', '.join(map(str, observation))}",
                hint="--openenv-picture FIELD",
            )
        return Observation(screenshot(given), self._texts(observation, path.partition(".")[0]))

    def _texts(self, observation: Mapping[str, Any], picture: str) -> dict[str, str]:
        if self._terms.table is None:
            return {str(key): str(value) for key, value in (observation.get("text") or {}).items()}
        return {
            str(name): value[:LONGEST_TEXT]
            for name, value in observation.items()
            if isinstance(value, str) and value and name != picture
        }

    def _goal(self, data: Mapping[str, Any]) -> str | None:
        path = self._terms.goal_from or "observation.goal"
        goal = at({"observation": data.get("observation"), "metadata": self._metadata}, path)
        if self._terms.goal_from and not (isinstance(goal, str) and goal):
            raise EnvError(f"the OpenEnv server tells no goal at {path}")
        return goal if isinstance(goal, str) and goal else None


def _metadata(data: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata stands beside the observation or inside it, by version of OpenEnv."""
    found = data.get("metadata") or at(data.get("observation"), "metadata")
    return dict(found) if isinstance(found, Mapping) else {}
