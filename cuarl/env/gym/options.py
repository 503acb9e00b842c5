"""What can be chosen about executions of a gym server (``--env gym``).

This module is light: help and configurations import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from cuarl.config.fields import EnvOptions, Words
from cuarl.config.rules import PROMPT_ONLY

MINI_AGENT_ONLY = ("agent", "poll_seconds", "listen", "model_url", "picture_hosts")


class Options(EnvOptions):
    """The options of ``env: gym``."""

    judges = True
    capacity = frozenset({"creates", "executions", "poll_seconds", "listen", "model_url", "picture_hosts"})

    type: Literal["gym"] = "gym"
    id: str = "umetrip"
    """Which gym of the gym server."""
    actor: Literal["cuarl", "mini-agent"] = "cuarl"
    """Who acts in a gym's device: cuarl itself, or gbox-mini-agent, whose model cuarl serves and records."""
    action_space: Literal["mobile", "pc"] = "mobile"
    """What the gym's devices are: phones or desktops."""
    train_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.8
    """Share of the gym's tasks that train; the others evaluate."""
    seed: NonNegativeInt = 42
    """Draws that share."""
    eval_number_range: Annotated[str, Field(pattern=r"^\d+-\d+$")] | None = None
    """Evaluate on the tasks with these numbers, such as 001-032, and train on the others, instead of by share."""
    tags: Words = ()
    """Keep only the gym's tasks that have one of these tags."""
    creates: PositiveInt = 1
    """Most executions that the gym is asked to start at the same time."""
    executions: PositiveInt = 16
    """Most executions at the same time, within max_concurrent_rollouts."""
    settle_ms: PositiveFloat = 300.0
    """How long a gym's device must be still after an action of cuarl's."""
    agent: Literal["mai-ui", "qwen3-vl"] = "mai-ui"
    """Which agent gbox-mini-agent runs."""
    poll_seconds: PositiveFloat = 1.0
    """How often gbox-mini-agent is asked what its agent has done."""
    listen: Annotated[str, Field(pattern=r"^\S+:\d+$")] = "127.0.0.1:0"
    """Where the model is served to gbox-mini-agent, as HOST:PORT; any other host than this needs CUARL_SERVE_TOKEN."""
    model_url: str | None = None
    """Base URL by which gbox-mini-agent reaches that, if it is another."""
    picture_hosts: Words = ()
    """Hosts that screenshots may be fetched from, where gbox-mini-agent names them by URL."""

    def idle(self) -> Iterator[tuple[str, str]]:
        """What the other actor, or the other way to split tasks, would have asked."""
        yield "split", "env gym, whose tasks have none"
        if self.actor == "cuarl":
            yield from ((f"env.{name}", "env.actor cuarl") for name in MINI_AGENT_ONLY)
        else:
            yield "env.settle_ms", "env.actor mini-agent, which acts by itself"
            yield from ((name, "env.actor mini-agent, which makes the prompts itself") for name in PROMPT_ONLY)
        if self.eval_number_range is not None:
            why = "env.eval_number_range, which says what trains"
            yield from ((f"env.{name}", why) for name in ("train_ratio", "seed"))
