"""An episode as pictures: each screenshot with the action on it, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from PIL import Image

from cuarl.monitor.draw import annotate, caption, final
from cuarl.safe_text import printable
from cuarl.trajectory import Trajectory
from cuarl.types import Screenshot


class Drawn(NamedTuple):
    """One turn, drawn; the last one is how the episode ended."""

    name: str
    words: str
    trouble: str
    picture: Image.Image


def draw(trajectory: Trajectory, picture: Callable[[str], Screenshot]) -> Iterator[Drawn]:
    """Every turn with its action on the screenshot, then the last screen with the outcome."""
    for turn in trajectory.turns:
        words, trouble = caption(turn)
        yield Drawn(f"turn-{turn.index + 1:03d}", words, trouble, annotate(picture(turn.screenshot.digest).image, turn))
    if trajectory.final_screenshot is not None:
        words, trouble = ending(trajectory)
        last = picture(trajectory.final_screenshot.digest).image
        yield Drawn("final", words, trouble, final(last, words, trouble))


def ending(t: Trajectory) -> tuple[str, str]:
    """How an episode ended, in words, and what went wrong."""
    outcome = {True: "success", False: "no success", None: "no verdict"}[t.success]
    reward = "" if t.reward is None else f", reward {t.reward:g}"
    checks = (
        [f"{c.path} is {c.actual!r}, not {c.op} {c.expected!r}" for c in t.verdict.checks if not c.passed]
        if t.verdict
        else []
    )
    effects = [f"changed without being asked: {path}" for path in t.verdict.side_effects] if t.verdict else []
    failure = [f"{t.failure.boundary} failed: {t.failure.message}"] if t.failure else []
    return f"{t.stop}: {outcome}{reward}", printable("; ".join([*checks, *effects, *failure]))
