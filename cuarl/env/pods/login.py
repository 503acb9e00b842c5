"""Bearer tokens for an API server: one that is given, one in a file, or one that a program prints.

None is ever stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, Protocol

import anyio
import httpx

from cuarl import safe_text
from cuarl.errors import EnvError

PLUGIN_S = 60.0
"""How long a credential plug-in may take; some ask a cloud."""


class Tokens(Protocol):
    """Where tokens come from."""

    async def current(self) -> str:
        """The token to send. Raises EnvError."""
        ...

    def renew(self) -> bool:
        """The server refused the token: whether ``current`` may give another one now."""
        ...


@dataclass(frozen=True, slots=True)
class FixedToken:
    """A token that is given."""

    value: str

    async def current(self) -> str:
        """The token."""
        return self.value

    def renew(self) -> bool:
        """There is no other."""
        return False


@dataclass(frozen=True, slots=True)
class FileToken:
    """A token in a file, which Kubernetes replaces now and then for a pod's own account."""

    path: Path

    async def current(self) -> str:
        """What the file holds now."""
        try:
            return self.path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise EnvError(f"can't read the token: {error.strerror}", where=str(self.path)) from error

    def renew(self) -> bool:
        """It may have been replaced meanwhile."""
        return True


@dataclass(slots=True)
class PluginToken:
    """A token that a credential plug-in prints (``users[].user.exec`` of a kubeconfig), kept until it is refused."""

    command: Sequence[str]
    api_version: str
    environment: Mapping[str, str] = field(default_factory=dict)
    hint: str = ""
    _token: str = ""
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    async def current(self) -> str:
        """The token; the program is run if there is none yet."""
        async with self._turn:  # many requests at once need one run of the program
            if not self._token:
                self._token = await self._run()
            return self._token

    def renew(self) -> bool:
        """Run the program again."""
        self._token = ""
        return True

    async def _run(self) -> str:
        asked = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
        environment = {**os.environ, **self.environment, "KUBERNETES_EXEC_INFO": json.dumps(asked)}
        try:
            with anyio.fail_after(PLUGIN_S):
                done = await anyio.run_process(list(self.command), env=environment, check=False, stdin=DEVNULL)
        except OSError as error:
            raise self._failed(f"can't be run: {error.strerror}") from error
        except TimeoutError as error:
            raise self._failed(f"gave no credentials within {PLUGIN_S:g} s") from error
        if done.returncode:
            said = safe_text.loggable(done.stderr.decode(errors="replace").strip()[-300:])
            raise self._failed(f"ended with status {done.returncode}: {said}")
        return self._read(done.stdout)

    def _read(self, output: bytes) -> str:
        try:
            status: Any = json.loads(output).get("status") or {}
            token = status.get("token")
        except (ValueError, AttributeError) as error:
            raise self._failed("printed no ExecCredential") from error
        if not isinstance(token, str) or not token:
            raise self._failed("printed no token; client certificates from plug-ins are not understood")
        return token

    def _failed(self, what: str) -> EnvError:
        return EnvError(f"the credential plug-in {self.command[0]} {what}", hint=self.hint or None)


class Login(httpx.Auth):
    """Sends the token with every request, and once more with a new one where the server refuses it."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Httpx's hook. A request answered with 401 was not carried out."""
        await self._sign(request)
        reply = yield request
        if reply.status_code == httpx.codes.UNAUTHORIZED and self._tokens.renew():
            await self._sign(request)
            yield request

    async def _sign(self, request: httpx.Request) -> None:
        token = await self._tokens.current()
        safe_text.remember([token])
        request.headers["Authorization"] = f"Bearer {token}"
