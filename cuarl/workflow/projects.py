"""Projects whose trainers report to the monitor: the tokens by which they may."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cuarl.errors import ConfigError
from cuarl.workflow import episodes as parts

if TYPE_CHECKING:
    from cuarl.settings import Settings
    from cuarl.store.ingest import Ingest
    from cuarl.store.records import ProjectToken

_PROJECT = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)


@contextmanager
def tokens_of(settings: Settings) -> Iterator[Tokens]:
    """The tokens of the store that the settings name."""
    from cuarl.store.ingest import Ingest

    with parts.open_store(settings) as store:
        yield Tokens(Ingest(store.engine))


class Tokens:
    """Makes, lists and revokes tokens."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest

    def create(self, project: str) -> tuple[ProjectToken, str]:
        """A token and its secret. Raises ConfigError for a project's name that can't stand in addresses."""
        if not _PROJECT.fullmatch(project):
            raise ConfigError(
                f"{project[:80]!r} is no name of a project: letters, digits, and . _ - behind the first",
                hint="cuarl monitor tokens create phones",
            )
        return self._ingest.create_token(project, at=time.time())

    def all(self) -> list[ProjectToken]:
        """Every token, revoked ones included."""
        return self._ingest.tokens()

    def revoke(self, token: str) -> ProjectToken:
        """The token, which lets nobody in any more. Raises ConfigError if there is none of that id."""
        return self._ingest.revoke(token, at=time.time())
