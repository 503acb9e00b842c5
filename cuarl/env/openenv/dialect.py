"""How cuarl's environments are written in OpenEnv's messages, for our server and our client alike.

An action is the JSON of ``types.Action``. An observation has the fields of ``Seen``; how an episode ended stands in its
``metadata``, since OpenEnv knows one flag ``done`` alone.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from pydantic import Field, PositiveInt

from cuarl.env.base import Capabilities
from cuarl.types import ACTION, Action, Observation, Record

ACTION_TITLE = "CuarlAction"
"""Title of the schema by which a client knows cuarl's servers."""


class Seen(Record):
    """An observation of cuarl, without OpenEnv's own ``reward`` and ``done``."""

    screenshot: str
    """The picture, PNG in base64."""
    mime: str = "image/png"
    width: PositiveInt
    """Pixels; actions are in pixels of this picture."""
    height: PositiveInt
    task: str
    goal: str
    turn: int
    """Actions so far."""
    text: Mapping[str, str] = Field(default_factory=dict)
    """Text fields that the environment adds."""
    rejected: str | None = None
    """Why the last action had no effect."""
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    """At the end: ``truncated`` and ``verdict``."""


class SessionState(Record):
    """What a session answers to ``state``."""

    episode_id: str | None = None
    step_count: int = 0
    task: str | None = None
    done: bool = False


def seen(
    observation: Observation, *, task: str, goal: str, turn: int, rejected: str | None, metadata: Mapping[str, Any]
) -> Seen:
    """An observation as it is sent."""
    shot = observation.screenshot
    return Seen(
        screenshot=base64.b64encode(shot.png()).decode(),
        width=shot.width,
        height=shot.height,
        task=task,
        goal=goal,
        turn=turn,
        text=dict(observation.text),
        rejected=rejected,
        metadata=metadata,
    )


def read_action(data: Mapping[str, Any]) -> Action:
    """The action of a step. Raises pydantic's ValidationError. OpenEnv's typed clients add ``metadata`` to each."""
    return ACTION.validate_python({key: value for key, value in data.items() if key != "metadata"})


def action_schema() -> dict[str, Any]:
    """JSON Schema of actions."""
    return {**ACTION.json_schema(), "title": ACTION_TITLE}


def listed(capabilities: Capabilities) -> dict[str, Any]:
    """What a task's entry in the server's list says about its device."""
    return {"device": capabilities.kind, "actions": sorted(capabilities.actions)}
