"""The policy of a command's episodes, served to agents of other people's making: gbox-mini-agent, or a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cuarl.settings import Settings

if TYPE_CHECKING:
    from cuarl.policy.sampler import Sampler, SamplingParams
    from cuarl.serve.hosted import Address, Host, Talk

_MODEL = "cuarl"
"""What agents ask the model for, which it is the only one of."""


class Hosts:
    """The servers of policies, one for each sampler that agents are to ask."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._hosts: dict[int, Host] = {}

    def talk(self, sampler: Sampler, params: SamplingParams, seed: int) -> Talk:
        """A session with ``sampler``."""
        from cuarl.serve.hosted import Host

        if id(sampler) not in self._hosts:
            self._hosts[id(sampler)] = Host(sampler, _MODEL, params, self._address)
        return self._hosts[id(sampler)].conversation(seed)

    async def close(self) -> None:
        """Serve no more."""
        hosts, self._hosts = self._hosts, {}
        for host in hosts.values():
            await host.close()


def address(listen: str, url: str | None, picture_hosts: Sequence[str], settings: Settings) -> Address:
    """Where to listen (``HOST:PORT``), what agents call that, and where their pictures may come from."""
    from cuarl.serve.hosted import Address

    host, _, port = listen.rpartition(":")
    return Address(
        host=host.strip("[]"),
        port=int(port),
        url=url,
        token=settings.serve_token.get_secret_value() if settings.serve_token else None,
        picture_hosts=tuple(picture_hosts),
    )
