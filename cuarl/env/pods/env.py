"""``PodEnv``: a pod of a Kubernetes cluster behind the environment seam (docs/guides/pods.md)."""

from __future__ import annotations

import logging
import secrets
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from cuarl import safe_text
from cuarl.env.base import Capabilities
from cuarl.env.durations import expected_s
from cuarl.env.http import LostReply
from cuarl.env.leases import Lease, Ledger
from cuarl.env.plans.devices import DeviceEyes, follower
from cuarl.env.plans.elements import Element
from cuarl.env.plans.following import Follower
from cuarl.env.plans.steps import Line
from cuarl.env.pods.actions import queries, refusal
from cuarl.env.pods.client import Pods
from cuarl.env.pods.devices import KINDS, DeviceKind
from cuarl.env.pods.lease import KIND
from cuarl.env.pods.manifest import Template, pod_name
from cuarl.env.pods.options import Options
from cuarl.env.pods.plan import IN_SESSIONS
from cuarl.env.pods.progress import Progress
from cuarl.env.pods.session import Session
from cuarl.env.pods.status import trouble
from cuarl.env.settle import Patience, settle
from cuarl.errors import EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Observation, Screenshot, StepResult, Wait

logger = logging.getLogger(__name__)

Connect = Callable[[str, str], Session]
"""From a session's id and token to its server."""


class PodEnv:
    """A pod for one episode of a task whose ``env`` is ``kind``: ``pods``, or ``phone``, ``desktop`` or ``linux``.

    The latter need our session server in the pod, which sets the task up and tells the device's state; of a ``pods``
    session only ``/progress`` is known. ``template`` is the manifest that ``options`` name, read. ``starting`` bounds
    how many pods are being started at the same time; ``plan`` is what the oracle of a ``pods`` session follows.
    """

    def __init__(
        self,
        pods: Pods,
        ledger: Ledger,
        connect: Connect,
        options: Options,
        template: Template,
        kind: str,
        starting: anyio.CapacityLimiter,
        plan: Sequence[Line] = (),
    ) -> None:
        self._pods, self._ledger, self._connect = pods, ledger, connect
        self._options, self._template = options, template
        self._device: DeviceKind = KINDS[kind]
        self._session_type = kind if self._device.own else options.session_type
        self._plan: Sequence[Line] = () if self._device.own else plan
        self._follower: Follower | None = None
        self._starting = starting
        quiet = options.settle_ms
        self._patience = Patience(quiet_ms=quiet, react_ms=2 * quiet, cap_ms=max(2000.0, 4 * quiet))
        self._lease: Lease | None = None
        self._session: Session | None = None
        self._token = ""
        self._made = self._used = self._closed = False
        self._shown: Screenshot | None = None
        self._progress = Progress(0, 0)
        self._volatile: tuple[str, ...] = ("progress",)

    @property
    def device_name(self) -> str:
        """The pod's name."""
        return self._lease.id if self._lease else ""

    @property
    def capabilities(self) -> Capabilities:
        """What the session can do."""
        oracle = self._device.own or bool(self._plan)
        return Capabilities(self._device.actions, state=True, oracle=oracle, kind=self._device.vocabulary)

    @property
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths whose change is nobody's fault, as the session told them with the latest state."""
        return self._volatile

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Create the pod, wait until its session answers, and have our server set the task up."""
        if self._used or self._closed:
            raise EnvError("this environment was reset already; an environment serves one episode")
        self._used = True
        self._follower = follower(self._plan, IN_SESSIONS) if self._plan else None
        async with self._starting:
            self._session = session = await self._start()
        async with self._explained():
            if self._device.own:
                await session.reset(task.model_dump_json(), seed)
            else:
                self._progress = await session.progress()
            self._shown = await session.screenshot()
        return Observation(self._shown)

    async def step(self, action: Action) -> StepResult:
        """Carry out one action, and wait until the screen is still.

        An action whose answer was lost on its way is not repeated; ``info["unknown_outcome"]`` says so.
        """
        session, before = self._ready()
        reason = refusal(action, (before.width, before.height), self._device.actions)
        info: dict[str, Any] = {}
        async with self._explained():
            try:
                reason = reason or await self._carry_out(session, action)
            except LostReply:
                info["unknown_outcome"] = True
            if reason:
                return StepResult(Observation(before), info={"rejected": reason, "changed": False})
            seen = await settle(before, session.screenshot, patience=self._patience)
            reward = None if self._device.own else await self._reward(session)
        self._shown = seen.screenshot
        info |= {"settle_ms": seen.settle_ms, "settled": seen.settled, "changed": seen.changed}
        return StepResult(Observation(seen.screenshot), reward, info=info)

    async def state(self) -> Mapping[str, Any]:
        """The device's state as our server tells it; for a task whose ``env`` is ``pods`` its ``progress``."""
        session, _ = self._ready()
        async with self._explained():
            if not self._device.own:
                return {"progress": (await session.progress()).state()}
            state, self._volatile = await session.state()
            return state

    async def ask_oracle(self) -> Action:
        """The next action of the plan, or of a solution, where our server knows one."""
        session, shown = self._ready()
        if self._follower is not None:
            return await self._follower.next(DeviceEyes(shown, _nothing, session.screenshot))
        async with self._explained():
            return await session.oracle()

    async def close(self) -> None:
        """Delete the pod. If that fails, its lease stays, and ``cuarl sessions sweep`` can delete it later."""
        lease, self._lease, self._closed = self._lease, None, True
        if lease is None:
            return
        with anyio.CancelScope(shield=True):
            try:
                await self._pods.end(lease.id, lease.detail["label"], sure=self._made)
            except EnvError as error:
                logger.warning("pod %s could not be deleted (cuarl sessions sweep does it later): %s", lease.id, error)
                return
        safe_text.forget([self._token])
        lease.release()

    async def _start(self) -> Session:
        """A pod of our own whose session answers, within the time that starting may take. Raises EnvError."""
        session_id, self._token = uuid.uuid4().hex[:8], secrets.token_urlsafe(18)
        safe_text.remember([self._token])
        options, name, label = self._options, pod_name(session_id), secrets.token_hex(12)
        values = {
            "session_id": session_id,
            "session_type": self._session_type,
            "image": options.image,
            "token": self._token,
        }
        manifest = self._template.pod(values, label, options.expires_seconds)
        self._lease = self._ledger.hold(KIND, name, {**self._pods.found(), "label": label})
        how_far = ["Kubernetes has not answered yet"]
        session = self._connect(session_id, self._token)
        with anyio.move_on_after(options.start_seconds):
            await self._pods.create(manifest)
            self._made = True
            await self._pods.wait(name, how_far.append)
            how_far.append("it is ready, but its session does not answer")
            await session.wait()
            return session
        raise EnvError(
            f"pod {name} did not start within {options.start_seconds:g} s: {how_far[-1]}",
            hint="--pods-start-seconds 600",
        )

    async def _carry_out(self, session: Session, action: Action) -> str:
        """Why it was refused; empty if it was carried out."""
        for query in queries(action, own=self._device.own):
            reason = await session.act(query, takes_s=expected_s(action))
            if reason:
                return reason
        if isinstance(action, Wait) and not self._device.own:
            await anyio.sleep(action.seconds)
        return ""

    async def _reward(self, session: Session) -> float:
        """The step's reward, by how far the task has come with it."""
        earlier, self._progress = self._progress, await session.progress()
        return self._progress.reward_since(earlier)

    @asynccontextmanager
    async def _explained(self) -> AsyncIterator[None]:
        """Where the session fails because of its pod, say what became of the pod."""
        try:
            yield
        except EnvError as error:
            why = await self._why()
            if not why:
                raise
            raise EnvError(f"{why}; {error.what}", where=error.where, hint=error.hint) from error

    async def _why(self) -> str:
        assert self._lease is not None
        name = self._lease.id
        try:
            found = await self._pods.get(name)
        except EnvError:  # what is known already has to do
            return ""
        why = "it is gone" if found is None else trouble(found)
        return f"pod {name} is lost: {why}" if why else ""

    def _ready(self) -> tuple[Session, Screenshot]:
        if self._session is None or self._shown is None or self._closed:
            raise EnvError("the environment was not reset, or was closed", hint="call reset(task, seed) first")
        return self._session, self._shown


async def _nothing() -> Sequence[Element]:
    """The protocol tells of no thing on the screen."""
    return ()
