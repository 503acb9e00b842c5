"""Several servers of one model as one sampler: groups stay where they are, and go on elsewhere when a server dies.

A group's episodes share the beginning of their prompts, which a server keeps computed; so all requests of a group go to
one server, that with the fewest groups. A server that is gone loses its groups to the others: a request carries the
whole conversation, as ids where the servers take those, so an episode goes on there with its next turn, or with the
same one, whose answer was lost. It is asked again every ``RETRY_S``, and takes part again once it has the adapter.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from cuarl.errors import CuarlError, SamplerError
from cuarl.policy.remote.http import ServedModel, ServerLost
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.policy.remote.wire import EndpointFeatures
from cuarl.policy.sampler import PromptTooLong, SamplerCapabilities, SampleRequest
from cuarl.trajectory import Sampled

logger = logging.getLogger(__name__)

RETRY_S = 10.0
"""How long a server that is gone is left alone."""
_ASKED_S = 5.0
"""How long it may take to answer then."""
_IDLE_S = 120.0
"""A group that has asked nothing for so long no longer counts as work of its server."""


@dataclass(slots=True)
class _Server:
    sampler: OpenAISampler
    gone_since: float | None = None
    """When it was found gone or last asked; None while it is there."""
    asking: int = 0
    answers: int = 0
    groups: dict[str, float] = field(default_factory=dict)
    """Groups that are asked here, and when they last did."""


class Fleet:
    """Servers that ``samplers`` ask. Used like an ``OpenAISampler``: what is loaded is loaded on all of them."""

    def __init__(self, samplers: Sequence[OpenAISampler], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._servers = [_Server(one) for one in samplers]
        self._clock = clock
        self._version = samplers[0].version
        self._adapter: tuple[str, str] | None = None
        self.name = samplers[0].name

    @property
    def members(self) -> list[OpenAISampler]:
        """Those that ask one server each."""
        return [server.sampler for server in self._servers]

    @property
    def features(self) -> EndpointFeatures:
        """What all servers give."""
        every = [one.features for one in self.members]
        return every[0].model_copy(
            update={
                "token_ids": all(f.token_ids for f in every),
                "logprobs": all(f.logprobs for f in every),
                "scaled_logprobs": all(f.scaled_logprobs for f in every),
                "wrong_draws": next((f.wrong_draws for f in every if f.wrong_draws), ""),
            }
        )

    @property
    def capabilities(self) -> SamplerCapabilities:
        """What all servers give exactly."""
        every = [one.capabilities for one in self.members]
        return SamplerCapabilities(
            token_ids=all(c.token_ids for c in every),
            logprobs=all(c.logprobs for c in every),
            images=all(c.images for c in every),
            name=self.name,
        )

    async def sees(self, width: int, height: int) -> tuple[int, int] | None:
        """The size at which the model sees a picture, where its processor is here."""
        return await self.members[0].sees(width, height)

    # --- answers ---------------------------------------------------------------------------------------------------

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        """Answer one prompt, by the server of its group. Raises SamplerError if all servers are gone."""
        await self._welcome_back()
        tried: list[_Server] = []
        while True:
            server = self._place(request.group, tried)
            try:
                with self._counted(server):
                    answer = await server.sampler.sample(request)
            except ServerLost as error:
                self._lose(server, error)
                tried.append(server)
                if len(tried) == len(self._servers):
                    raise
                continue
            server.answers += 1
            return answer

    def _place(self, group: str, tried: Sequence[_Server]) -> _Server:
        """The group's server; for a new group that with the least to do. Those that are gone are tried last."""
        now = self._clock()
        left = [server for server in self._servers if server not in tried]
        there = [server for server in left if server.gone_since is None] or left
        own = next((server for server in there if group and group in server.groups), None)
        found = own or min(there, key=lambda server: (self._busy_with(server, now), server.asking))
        if group:
            for server in self._servers:
                server.groups.pop(group, None)
            found.groups[group] = now
        return found

    def _busy_with(self, server: _Server, now: float) -> int:
        server.groups = {name: at for name, at in server.groups.items() if now - at < _IDLE_S}
        return len(server.groups)

    @contextmanager
    def _counted(self, server: _Server) -> Iterator[None]:
        server.asking += 1
        try:
            yield
        finally:
            server.asking -= 1

    # --- who is there ----------------------------------------------------------------------------------------------

    def _lose(self, server: _Server, error: CuarlError) -> None:
        if server.gone_since is None:
            left = sum(one.gone_since is None for one in self._servers) - 1
            logger.warning("%s; %d of %d servers go on with its episodes", error.what, left, len(self._servers))
        server.gone_since = self._clock()
        server.groups.clear()

    async def _welcome_back(self) -> None:
        """Ask those that have been gone for a while; whoever answers gets the adapter and takes part again."""
        for server in self._servers:
            if server.gone_since is None or self._clock() - server.gone_since < RETRY_S:
                continue
            server.gone_since = self._clock()  # others need not ask meanwhile
            with anyio.move_on_after(_ASKED_S):
                try:
                    await self._bring_up_to_date(server)
                except CuarlError:
                    continue
                server.gone_since = None
                logger.warning("%s is back", server.sampler.endpoint.shown)

    async def _bring_up_to_date(self, server: _Server) -> None:
        await server.sampler.models()
        if self._adapter is not None and server.sampler.model != self._adapter[0]:
            await server.sampler.load_adapter(*self._adapter)
        elif self._adapter is not None:  # it may have been started anew, and have forgotten it
            await server.sampler.unload_adapter(self._adapter[0])
            await server.sampler.load_adapter(*self._adapter)
        server.sampler.version = self._version

    def told(self) -> Mapping[str, float]:
        """Metrics of each server by its number, since this was last called."""
        found: dict[str, float] = {}
        for number, server in enumerate(self._servers):
            found[f"sampler/{number}/answers"] = float(server.answers)
            found[f"sampler/{number}/version_lag"] = float(self._version - server.sampler.version)
            found[f"sampler/{number}/gone"] = float(server.gone_since is not None)
            server.answers = 0
        return found

    # --- what they have --------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Of the weights that are sampled from."""
        return self._version

    @version.setter
    def version(self, version: int) -> None:
        self._version = version
        for server in self._servers:
            if server.gone_since is None:
                server.sampler.version = version

    async def models(self) -> list[ServedModel]:
        """What any of them serves. Raises PrerequisiteError if one does not answer."""
        return [model for one in self.members for model in await one.models()]

    def use(self, model: str) -> None:
        """Sample from another of the servers' models from now on."""
        for server in self._servers:
            if server.gone_since is None:
                server.sampler.use(model)

    async def load_adapter(self, name: str, path: str) -> None:
        """Have all servers load an adapter, at once, and sample from it; those that are gone get it when they are back.

        Raises SamplerError if one refuses it, or if all are gone.
        """
        self._adapter = name, path
        await self._on_all(lambda one: one.load_adapter(name, path))

    async def release_adapter(self) -> None:
        """Have all servers forget the adapter that was loaded last. Raises SamplerError if one can't."""
        self._adapter = None
        await self._on_all(lambda one: one.release_adapter())

    async def unload_adapter(self, name: str) -> None:
        """Have all servers forget an adapter. Raises SamplerError if one can't."""
        await self._on_all(lambda one: one.unload_adapter(name))

    async def _on_all(self, do: Callable[[OpenAISampler], object]) -> None:
        lost: list[SamplerError] = []
        refused: list[SamplerError] = []

        async def on(server: _Server) -> None:
            try:
                await do(server.sampler)  # type: ignore[misc]
            except ServerLost as error:
                self._lose(server, error)
                lost.append(error)
            except SamplerError as error:
                refused.append(error)

        async with anyio.create_task_group() as group:
            there = [server for server in self._servers if server.gone_since is None]
            for server in there:
                group.start_soon(on, server)
        if refused or len(lost) == len(there) > 0:
            raise (refused or lost)[0]

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        for one in self.members:
            await one.close()
