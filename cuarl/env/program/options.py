"""What can be chosen about agent programs (``--env program``).

This module is light: help and configurations import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from cuarl.config.fields import EnvOptions, Words
from cuarl.config.rules import PROMPT_ONLY


class Options(EnvOptions):
    """The options of ``env: program``."""

    judges = True
    scripted = False
    capacity = frozenset({"at_once", "listen", "url", "picture_hosts"})

    type: Literal["program"] = "program"
    command: str | None = None
    """Command line of the agent program that plays an episode, such as 'python my_agent.py'; run without a shell."""
    at_once: PositiveInt = 8
    """Most agent programs at the same time, within max_concurrent_rollouts."""
    listen: Annotated[str, Field(pattern=r"^\S+:\d+$")] = "127.0.0.1:0"
    """Where the model is served to the program, as HOST:PORT; any other host than this needs CUARL_SERVE_TOKEN."""
    url: str | None = None
    """Base URL by which the program reaches that, if it is another."""
    picture_hosts: Words = ()
    """Hosts that the program's pictures may be fetched from, where it names them by URL."""

    def idle(self) -> Iterator[tuple[str, str]]:
        """What an agent of cuarl's would have asked."""
        yield from ((name, "env program, which makes the prompts itself") for name in PROMPT_ONLY)
