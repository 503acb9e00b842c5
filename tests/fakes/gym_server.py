"""The local gym server and the local gbox-mini-agent, each on a free port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from cuarl.local.gym import BOXES, FakeGym
from cuarl.local.mini_agent import FakeMiniAgent
from cuarl.local.threads import served

GYM_KEY, BOX_KEY, AGENT_KEY = "gym-marker-41b7", "box-marker-83d2", "agent-marker-90e4"


class Field(NamedTuple):
    """Both servers and where they are."""

    gym: FakeGym
    agent: FakeMiniAgent
    variables: dict[str, str]
    """What the environment of a command has to say to use them."""


@contextmanager
def field(*, model_key: str = "-", **options: Any) -> Iterator[Field]:
    """Serve both, keys asked for."""
    gym = FakeGym(key=GYM_KEY, box_key=BOX_KEY, **options)
    agent = FakeMiniAgent(key=AGENT_KEY, model_key=model_key)
    with served(gym.app()) as gym_url, served(agent.app()) as agent_url:
        variables = {
            "GYM_BASE_URL": gym_url,
            "GYM_API_KEY": GYM_KEY,
            "GBOX_BASE_URL": gym_url + BOXES,
            "GBOX_API_KEY": BOX_KEY,
            "GBOX_MINI_AGENT_BASE_URL": agent_url,
            "GBOX_MINI_AGENT_API_KEY": AGENT_KEY,
        }
        yield Field(gym, agent, variables)
