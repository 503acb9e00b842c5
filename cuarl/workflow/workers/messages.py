"""What a collector and its workers tell each other.

A frame is the number of the episode's assignment, in eight bytes, and a pickled message. Both sides are of one version
of cuarl, and the line between them is theirs alone. Pictures travel once an episode, as the PNG that will
be stored: what is named again later is found by its digest.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cuarl.config.schema import ExperimentConfig
from cuarl.errors import CuarlError
from cuarl.policy.sampler import PromptTooLong, SampleRequest
from cuarl.rollout.setup import Episode, Phase
from cuarl.rollout.spec import EpisodeSpec
from cuarl.trajectory import Sampled, Turn
from cuarl.types import ImageRef, Screenshot

_HEAD = 8
ALL = 0
"""The number in front of what is about no single episode."""

# --- to a worker ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Open:
    """Episodes of this kind come: start what their environments share."""

    work: int
    what: Any
    """A ``work.Work``."""


@dataclass(frozen=True, slots=True)
class Close:
    """No more episodes of this kind: release what their environments share."""

    work: int


@dataclass(frozen=True, slots=True)
class Run:
    """Run an episode."""

    work: int
    spec: EpisodeSpec


@dataclass(frozen=True, slots=True)
class Answer:
    """What was asked for, or why it can't be had."""

    asked: int
    reply: Sampled | PromptTooLong | tuple[int, int] | None
    error: CuarlError | None = None
    cause: str = ""
    """Class name of what ``error`` was raised from."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Stop the clock of an episode, or let it go on."""

    stopped: bool


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cut an episode short."""


@dataclass(frozen=True, slots=True)
class End:
    """Cut everything short, and end."""


# --- from a worker -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """It has started."""

    pid: int
    version: str
    """Of cuarl."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The agent asks its policy."""

    asked: int
    request: SampleRequest


@dataclass(frozen=True, slots=True)
class AskSeen:
    """The agent asks at what size its policy sees a picture of this size."""

    asked: int
    size: tuple[int, int]


@dataclass(frozen=True, slots=True)
class News:
    """How far an episode has come since the last news."""

    phase: Phase
    device: str
    turns: Sequence[Turn]
    screens: Sequence[Screenshot]


@dataclass(frozen=True, slots=True)
class Done:
    """An episode is over; ``cut`` if it was cancelled, and without a record if it had not begun."""

    episode: Episode | None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Broken:
    """An episode, and every other of its kind, can't be run: what one process would end with, too."""

    error: CuarlError


@dataclass(frozen=True, slots=True)
class Closed:
    """What the environments of a kind shared is released."""

    work: int


@dataclass(frozen=True, slots=True)
class Logged:
    """A line for the collector's log."""

    logger: str
    level: int
    text: str


ToWorker: TypeAlias = Open | Close | Run | Answer | Clock | Cancel | End
FromWorker: TypeAlias = Ready | Ask | AskSeen | News | Done | Broken | Closed | Logged

# --- frames --------------------------------------------------------------------------------------------------------

Keep: TypeAlias = Callable[[Screenshot], Screenshot]
"""Gives a picture back, encoded, before it is sent for the first time."""


@dataclass(slots=True)
class Codec:
    """One side's frames: which pictures of which episode the other side has, and those that it has sent."""

    _told: dict[int, set[str]] = field(default_factory=dict)
    _known: dict[int, dict[str, Screenshot]] = field(default_factory=dict)

    def pack(self, number: int, message: ToWorker | FromWorker, keep: Keep | None = None) -> bytes:
        """The frame of a message about the assignment ``number``."""
        out = io.BytesIO()
        out.write(number.to_bytes(_HEAD, "little"))
        _Packer(out, self._told.setdefault(number, set()) if number else set(), keep).dump(message)
        return out.getvalue()

    def unpack(self, frame: bytes) -> tuple[int, Any]:
        """The assignment's number, and the message."""
        number = int.from_bytes(frame[:_HEAD], "little")
        known = self._known.setdefault(number, {}) if number else {}
        return number, _Unpacker(io.BytesIO(memoryview(frame)[_HEAD:]), known).load()

    def forget(self, number: int) -> None:
        """An assignment is over."""
        self._told.pop(number, None)
        self._known.pop(number, None)


class _Packer(pickle.Pickler):
    """Sends a picture of an episode once.

    By ``dispatch_table``, which costs nothing for all else that an episode is made of, as ``persistent_id`` would.
    """

    def __init__(self, out: io.BytesIO, told: set[str], keep: Keep | None) -> None:
        super().__init__(out, protocol=5)
        self._told, self._keep = told, keep
        # a configuration's records of options are classes that have no place in a module
        self.dispatch_table = copyreg.dispatch_table | {Screenshot: self._picture, ExperimentConfig: _configuration}

    def _picture(self, picture: Screenshot) -> tuple[Any, tuple[str, int, int, bytes | None]]:
        digest = picture.digest
        png = None
        if digest not in self._told:
            png = (self._keep(picture) if self._keep else picture).png()
            self._told.add(digest)
        return told_picture, (digest, picture.width, picture.height, png)


def _configuration(config: ExperimentConfig) -> tuple[Any, tuple[str]]:
    return ExperimentConfig.model_validate_json, (config.model_dump_json(),)


def told_picture(digest: str, width: int, height: int, png: bytes | None) -> Screenshot:
    """What a frame calls a picture by: its reader alone knows those that came before."""
    raise TypeError("a frame is read by a Codec")


class _Unpacker(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, known: dict[str, Screenshot]) -> None:
        super().__init__(data)
        self._known = known

    def find_class(self, module: str, name: str) -> Any:
        return self._picture if name == told_picture.__name__ else super().find_class(module, name)

    def _picture(self, digest: str, width: int, height: int, png: bytes | None) -> Screenshot:
        if png is not None:
            self._known[digest] = Screenshot.encoded(png, ImageRef(digest=digest, width=width, height=height))
        return self._known[digest]
