"""A person as an agent: the page is served while episodes are collected, and what is done there is their record."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from cuarl.agent.base import Agent
from cuarl.config.schema import ExperimentConfig
from cuarl.env.base import Env
from cuarl.errors import ConfigError
from cuarl.human.agent import AssistedAgent, HumanAgent
from cuarl.human.session import Session
from cuarl.rollout.spec import EpisodeSpec
from cuarl.workflow import players
from cuarl.workflow.players import Player
from cuarl.workflow.watcher import Watcher

if TYPE_CHECKING:
    from cuarl.policy.transformers_policy import TransformersPolicy

_FAREWELL_S = 0.5
"""How long the page has to hear that it was all."""


@dataclass(frozen=True, slots=True)
class Page:
    """Where the page is served, and who is told."""

    watcher: Watcher
    port: int = 0
    """0 takes a free one."""
    open: bool = True
    """Open it in the person's browser."""
    assist: bool = False
    """The person corrects the policy."""

    def say(self, address: str) -> None:
        """Tell where it is."""
        self.watcher.event("listening", {"url": address})
        self.watcher.note(
            f"act on the device at {address}; closing the page pauses, Ctrl-C ends and keeps what is done"
        )


def check(config: ExperimentConfig) -> None:
    """Raise ConfigError where a person can't act: where targets are described, or workers run the episodes."""
    players.check_points(config)
    if config.workers is not None:
        raise ConfigError(
            "a person acts in episodes of this process", where=f"workers {config.workers}", hint="leave it out"
        )


def player(config: ExperimentConfig, policy: TransformersPolicy, page: Page, episodes: int) -> Player:
    """A person, whose actions are said in the words of ``policy``. Raises ConfigError as ``check``."""
    check(config)
    session = Session(episodes, config.max_turns)

    def make(spec: EpisodeSpec, env: Env) -> Agent:
        return HumanAgent(session, spec, env, players.wording(config, policy, env))

    return _attended(Player("human", make), session, page)


def assisted(config: ExperimentConfig, policy: TransformersPolicy, acting: Player, page: Page, episodes: int) -> Player:
    """``acting``, the player of ``policy``, corrected by a person. Raises ConfigError as ``check``."""
    check(config)
    session = Session(episodes, config.max_turns, assist=True)

    def make(spec: EpisodeSpec, env: Env) -> Agent:
        words = players.wording(config, policy, env)
        return AssistedAgent(acting.make_agent(spec, env), session, spec, env, words)

    return _attended(Player(acting.name, make, join=acting.join, begin=acting.begin), session, page)


def _attended(made: Player, session: Session, page: Page) -> Player:
    # a port that is taken is told before a run is made
    sock, token = bound(page)
    return Player(
        made.name,
        made.make_agent,
        join=made.join,
        begin=made.begin,
        around=partial(served, session, page, sock, token),
        attended=True,
        clock=session.clock,
        pausable=session.pause.bounding,
        told=session.told,
    )


def bound(page: Page) -> tuple[socket.socket, str]:
    """A socket for the page, and the token of those who act on it. Raises PrerequisiteError for a port in use."""
    from cuarl.web.listen import bind

    token = secrets.token_urlsafe(24)
    return bind("127.0.0.1", page.port, token, what="the device"), token


@asynccontextmanager
async def served(session: Session, page: Page, sock: socket.socket, token: str) -> AsyncIterator[None]:
    """Inside, the page is there."""
    from cuarl.human.page import make_app
    from cuarl.web.listen import serving

    async with serving(make_app(session, token), sock) as url:
        address = f"{url}/#{token}"
        page.say(address)
        if page.open and _has_screen():
            await anyio.to_thread.run_sync(webbrowser.open, address, abandon_on_cancel=True)
        try:
            yield
        finally:
            session.end()
            with anyio.CancelScope(shield=True):
                await anyio.sleep(_FAREWELL_S)


def _has_screen() -> bool:
    """Whether a browser would have a window: without, one for terminals might take this one."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
