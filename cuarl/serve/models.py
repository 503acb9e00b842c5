"""What a server serves: policies by name, and adapters that are put in while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from cuarl.errors import CuarlError
from cuarl.policy.sampler import Sampler
from cuarl.web.refusal import Refusal

_MOST_FOUND = 64
"""Policies that were looked for and are kept."""
Decode = Callable[[tuple[int, ...]], str]
"""Text of token ids."""


@dataclass(frozen=True, slots=True)
class Served:
    """One policy. ``decode`` is None where its tokenizer is elsewhere: tokens then show as ``token_id:7``."""

    name: str
    sampler: Sampler
    decode: Decode | None = None
    parent: str | None = None
    """The base that an adapter was put on."""
    path: str = ""

    def token(self, token_id: int) -> str:
        """How one token reads."""
        return (self.decode((token_id,)) if self.decode else "") or f"token_id:{token_id}"

    def card(self) -> dict[str, Any]:
        """Its entry in the list of models."""
        return {
            "id": self.name,
            "object": "model",
            "created": 0,
            "owned_by": "cuarl",
            "parent": self.parent,
            "root": self.path,
        }


class Models:
    """The policies of a server, by name.

    ``load`` puts an adapter's weights in: it gets the folder and the policy that its weights may replace, or None for a
    new one. Adapters have to lie in ``adapters``; without that folder, none is loaded over the network. ``find`` is
    asked for a policy of a name that none has yet; None is no such name.
    """

    def __init__(
        self,
        base: Served,
        *,
        adapters: Path | None = None,
        load: Callable[[str, Path, Served | None], Awaitable[Served]] | None = None,
        find: Callable[[str], Awaitable[Served | None]] | None = None,
    ) -> None:
        self.base, self._find = base, find
        self._served = {base.name: base}
        self._adapters, self._load = adapters.resolve() if adapters else None, load
        self._loading = anyio.Lock()

    def cards(self) -> list[dict[str, Any]]:
        """All of them, for ``GET /v1/models``."""
        return [served.card() for served in self._served.values()]

    def get(self, name: str) -> Served:
        """The policy of that name. Raises Refusal if there is none."""
        if name not in self._served:
            names = ", ".join(self._served)
            raise Refusal(
                f"there is no model {name[:80]!r} here; there is {names}",
                param="model",
                code="model_not_found",
                status=404,
            )
        return self._served[name]

    async def found(self, name: str) -> Served:
        """The policy of that name, looked for where it is not known yet. Raises Refusal if there is none."""
        if self._find is not None:
            async with self._loading:
                if name not in self._served:
                    await self._look_for(name, self._find)
        return self.get(name)

    async def _look_for(self, name: str, find: Callable[[str], Awaitable[Served | None]]) -> None:
        try:
            made = await find(name)
        except CuarlError as error:
            raise Refusal(
                f"the model {name[:80]!r} can't be had: {error.what}", param="model", code="model_not_found", status=404
            ) from error
        if made is None:
            return
        others = [one for one in self._served if one != self.base.name]
        for oldest in others[: len(others) + 1 - _MOST_FOUND]:
            del self._served[oldest]
        self._served[name] = made

    async def put(self, name: str, path: str, *, inplace: bool) -> Served:
        """Load the adapter in ``path`` under ``name`` (vLLM's ``load_lora_adapter``). Raises Refusal.

        The weights of the adapter loaded before are replaced, so that only the newest one is served; requests that are
        being answered meanwhile end with the weights that their pass began with.
        """
        if self._load is None or self._adapters is None:
            raise Refusal("adapters can't be loaded here: start the server with --adapters FOLDER", status=403)
        folder = Path(path).resolve() if path.isprintable() else Path("/")
        if not folder.is_relative_to(self._adapters):
            raise Refusal(
                "the adapter is not in the folder that the server was started with", param="lora_path", status=403
            )
        if not name or name == self.base.name or (name in self._served and not inplace):
            raise Refusal(f"the name {name[:80]!r} is taken, or none", param="lora_name")
        async with self._loading:
            old = next((s for s in self._served.values() if s is not self.base), None)
            try:
                made = await self._load(name, folder, old)
            except CuarlError as error:
                raise Refusal(f"the adapter can't be loaded: {error.what}", param="lora_path") from error
            self._served = {self.base.name: self.base, name: made}
        return made

    def drop(self, name: str) -> None:
        """Stop serving an adapter. Raises Refusal if there is none of that name."""
        if name == self.base.name or name not in self._served:
            raise Refusal(f"there is no adapter {name[:80]!r} here", param="lora_name", status=404)
        del self._served[name]

    async def close(self) -> None:
        """Release the samplers."""
        for served in self._served.values():
            await served.sampler.close()
