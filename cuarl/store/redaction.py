"""Screenshots changed on their way out, by a function of the user's own: faces, names, notifications made unreadable.

Pixels name screenshots, so a changed one is another: the episodes that go out refer to it, and say in
``info["redacted"]`` what changed it. What the store has stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

from cuarl import objects
from cuarl.errors import ConfigError
from cuarl.store.blobs import Blobs
from cuarl.trajectory import Sampled, Trajectory, Turn
from cuarl.types import ImageRef, Screenshot

REDACTED = "redacted"
"""Key of an episode's ``info`` that says what has changed its pictures."""
_FAULTS = (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError,
           TypeError, ValueError)  # fmt: skip
"""What a function that has a mistake in it raises."""


class Redaction:
    """Hands screenshots to a function: an array of uint8 and shape (height, width, 3) in, one like it out."""

    def __init__(self, path: str) -> None:
        """``path`` is ``package.module:function`` or ``file.py:function``.

        Raises ConfigError if there is no such function.
        """
        self.path = path
        self._function = objects.get(path, "redaction")
        if not callable(self._function):
            raise ConfigError(f'the redaction "{path}" is no function', where="--redact")

    def picture(self, screenshot: Screenshot) -> Screenshot:
        """The changed screenshot. Raises ConfigError for what the function does wrong."""
        shape = (screenshot.height, screenshot.width, 3)
        try:
            found = self._function(np.array(screenshot.image))
        except _FAULTS as error:
            name = type(error).__name__
            raise ConfigError(
                f'the redaction "{self.path}" failed: {name}: {error}', where=objects.own_frame(error) or "--redact"
            ) from error
        if not isinstance(found, np.ndarray) or found.dtype != np.uint8 or found.shape != shape:
            given = f"{found.dtype} of shape {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
            raise ConfigError(
                f'the redaction "{self.path}" gives {given}, and must give an array of uint8 of shape {shape}',
                where="--redact",
                hint="return the array that was given, changed: the model saw a picture of this size",
            )
        return Screenshot(Image.fromarray(found))


class RedactedEpisodes:
    """Makes episodes refer to changed screenshots, which it puts into a folder."""

    def __init__(self, redaction: Redaction, source: Blobs, target: Blobs) -> None:
        """Screenshots are read from ``source``; changed ones go to ``target``."""
        self._redaction, self._source, self._target = redaction, source, target
        self._changed: dict[str, ImageRef] = {}

    def __call__(self, episode: Trajectory) -> Trajectory:
        """The episode with changed pictures. Raises ConfigError for what the function does wrong."""
        final = episode.final_screenshot
        by = ", ".join(filter(None, (redacted_by(episode.info), self._redaction.path)))
        changes: dict[str, Any] = {
            "turns": tuple(self._turn(turn) for turn in episode.turns),
            "final_screenshot": final and self._reference(final),
            "info": {**episode.info, REDACTED: by},
        }
        return episode.model_copy(update=changes)

    def _turn(self, turn: Turn) -> Turn:
        sampled = turn.sampled and self._sampled(turn.sampled)
        return turn.model_copy(update={"screenshot": self._reference(turn.screenshot), "sampled": sampled})

    def _sampled(self, sampled: Sampled) -> Sampled:
        return sampled.model_copy(update={"images": tuple(map(self._reference, sampled.images))})

    def _reference(self, ref: ImageRef) -> ImageRef:
        """What stands for a screenshot; one that is missing in the store stays missing."""
        if ref.digest not in self._changed:
            if not self._source.exists(ref.digest):
                return ref
            changed = self._redaction.picture(self._source.get(ref.digest))
            self._target.put([changed])
            self._changed[ref.digest] = changed.ref
        return self._changed[ref.digest]


def redacted_by(info: Mapping[str, Any]) -> str | None:
    """What has changed the pictures of an episode, by its ``info``; None if they are as they were."""
    found = info.get(REDACTED)
    return found if isinstance(found, str) else None
