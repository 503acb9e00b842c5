"""Leaf values that every other module shares: actions, screenshots, observations, why an episode ended.

Coordinates are integer pixels of the screenshot that was shown, origin at the top left. Each model format maps its own
coordinates to these, and each environment maps these to its device's units.
"""

from __future__ import annotations

import hashlib
import io
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal, Protocol

from PIL import Image, UnidentifiedImageError
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, TypeAdapter

from cuarl.descriptions import of_class
from cuarl.errors import EnvError


def _describe(schema: dict[str, Any], record: type[Record]) -> None:
    for name, text in record.descriptions().items():
        schema["properties"][record.model_fields[name].alias or name].setdefault("description", text)


class Record(BaseModel):
    """Base of everything stored, sent or configured: immutable, and unknown fields are errors.

    The texts below its fields are their descriptions, in JSON Schemas, too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=_describe)

    @classmethod
    def descriptions(cls) -> Mapping[str, str]:
        """What fields mean, by their names."""
        found = of_class(cls)
        return {name: found[name] for name in cls.model_fields if name in found}


# --- actions -------------------------------------------------------------------------------------------------------


Pressed = Literal["left", "right", "middle"]
"""A button of the mouse."""
Held = tuple[str, ...]
"""Keys that are held during an action of the mouse, named as those of ``Key``."""
MOST_PRESSES = 100
"""How often one action may press a key."""


def _held() -> Any:
    # records say it only where keys are held: what is written of every other action is what it always was
    return Field(default=(), exclude_if=lambda held: not held)


class Click(Record):
    """Press and release at a point: a tap on a touch screen, a mouse click elsewhere."""

    kind: Literal["click"] = "click"
    x: NonNegativeInt
    y: NonNegativeInt
    button: Pressed = "left"
    count: Literal[1, 2, 3] = 1
    held: Held = _held()


class LongPress(Record):
    """Press, hold and release at a point."""

    kind: Literal["long_press"] = "long_press"
    x: NonNegativeInt
    y: NonNegativeInt
    duration_ms: PositiveInt = 600


class Move(Record):
    """Move the pointer without pressing."""

    kind: Literal["move"] = "move"
    x: NonNegativeInt
    y: NonNegativeInt
    held: Held = _held()


class MouseDown(Record):
    """Press a button of the mouse and keep it down, at a point or where the pointer is."""

    kind: Literal["mouse_down"] = "mouse_down"
    x: NonNegativeInt | None = None
    y: NonNegativeInt | None = None
    button: Pressed = "left"


class MouseUp(Record):
    """Let a button of the mouse go, at a point or where the pointer is."""

    kind: Literal["mouse_up"] = "mouse_up"
    x: NonNegativeInt | None = None
    y: NonNegativeInt | None = None
    button: Pressed = "left"


class Swipe(Record):
    """Touch at (x, y), slide to (x2, y2), lift. Content follows the finger."""

    kind: Literal["swipe"] = "swipe"
    x: NonNegativeInt
    y: NonNegativeInt
    x2: NonNegativeInt
    y2: NonNegativeInt
    duration_ms: PositiveInt = 300


class Drag(Record):
    """Hold the left button along a path of two or more points."""

    kind: Literal["drag"] = "drag"
    path: Annotated[tuple[tuple[NonNegativeInt, NonNegativeInt], ...], Field(min_length=2)]
    duration_ms: PositiveInt = 500
    held: Held = _held()


class Scroll(Record):
    """Reveal content in ``direction`` ("down" shows what is further down), at a point or the screen's centre."""

    kind: Literal["scroll"] = "scroll"
    x: NonNegativeInt | None = None
    y: NonNegativeInt | None = None
    direction: Literal["up", "down", "left", "right"]
    amount: PositiveInt = 300
    unit: Literal["px", "notch"] = "px"
    held: Held = _held()


class SelectOption(Record):
    """Choose the option with the text ``option`` of the list (drop-down or not) at a point."""

    kind: Literal["select_option"] = "select_option"
    x: NonNegativeInt
    y: NonNegativeInt
    option: str


class TypeText(Record):
    """Type text into the focused field; ``submit`` presses Enter afterwards."""

    kind: Literal["type"] = "type"
    text: str
    submit: bool = False


class Key(Record):
    """Press keys together (a chord), named as in xdotool: ``("ctrl", "c")``, ``("Return",)``; ``count`` times."""

    kind: Literal["key"] = "key"
    keys: Annotated[tuple[str, ...], Field(min_length=1)]
    count: Annotated[int, Field(ge=1, le=MOST_PRESSES, exclude_if=lambda count: count == 1)] = 1


class KeyDown(Record):
    """Press a key and keep it down until ``KeyUp``, whatever is done meanwhile."""

    kind: Literal["key_down"] = "key_down"
    key: Annotated[str, Field(min_length=1)]


class KeyUp(Record):
    """Let a key go that ``KeyDown`` pressed."""

    kind: Literal["key_up"] = "key_up"
    key: Annotated[str, Field(min_length=1)]


class Button(Record):
    """Press a device button."""

    kind: Literal["button"] = "button"
    name: Literal["back", "home", "recents", "menu", "power", "volume_up", "volume_down", "enter"]


class OpenApp(Record):
    """Open an app by the name shown under its icon."""

    kind: Literal["open_app"] = "open_app"
    name: str


class Wait(Record):
    """Do nothing for a while."""

    kind: Literal["wait"] = "wait"
    seconds: Annotated[float, Field(ge=0, le=60)] = 1.0


class Answer(Record):
    """Report text to the user; the episode goes on."""

    kind: Literal["answer"] = "answer"
    text: str


class Finish(Record):
    """End the episode, claiming success or failure, with an optional message to the user."""

    kind: Literal["finish"] = "finish"
    success: bool = True
    message: str = ""


Action = Annotated[
    Click
    | LongPress
    | Move
    | MouseDown
    | MouseUp
    | Swipe
    | Drag
    | Scroll
    | SelectOption
    | TypeText
    | Key
    | KeyDown
    | KeyUp
    | Button
    | OpenApp
    | Wait
    | Answer
    | Finish,
    Field(discriminator="kind"),
]
ACTION: TypeAdapter[Action] = TypeAdapter(Action)
ActionKind = Literal[
    "click",
    "long_press",
    "move",
    "mouse_down",
    "mouse_up",
    "swipe",
    "drag",
    "scroll",
    "select_option",
    "type",
    "key",
    "key_down",
    "key_up",
    "button",
    "open_app",
    "wait",
    "answer",
    "finish",
]


Point = tuple[int, int]


def points(action: Action) -> list[Point]:
    """The points of ``action`` in order: the ends of a swipe, the path of a drag; none for one without a place."""
    match action:
        case Click() | LongPress() | Move() | SelectOption():
            return [(action.x, action.y)]
        case Scroll(x=int(x), y=int(y)) | MouseDown(x=int(x), y=int(y)) | MouseUp(x=int(x), y=int(y)):
            return [(x, y)]
        case Swipe():
            return [(action.x, action.y), (action.x2, action.y2)]
        case Drag():
            return list(action.path)
    return []


def placed(action: Action, at: Sequence[Point]) -> Action:
    """``action`` at other points, one for each that it has."""
    (x, y), (x2, y2) = at[0], at[-1]
    if isinstance(action, Swipe):
        return action.model_copy(update={"x": x, "y": y, "x2": x2, "y2": y2})
    if isinstance(action, Drag):
        return action.model_copy(update={"path": tuple(at)})
    return action.model_copy(update={"x": x, "y": y})


def held_keys(action: Action) -> Held:
    """The keys that are held during ``action``."""
    return action.held if isinstance(action, Click | Move | Drag | Scroll) else ()


class ParseError(Record):
    """Why a model's output is not an action. It is the policy's doing, so it is data and it is scored."""

    code: Literal[
        "no_call",
        "bad_json",
        "unknown_tool",
        "unsupported_action",
        "unsupported_on_device",
        "missing_argument",
        "bad_argument",
        "out_of_range",
        "not_found",
        "special_token",
        "truncated",
    ]
    message: str = ""


# --- screens -------------------------------------------------------------------------------------------------------


class ImageRef(Record):
    """Names a stored screenshot: SHA-256 of its canonical pixels (see ``Screenshot.digest``) and its size in pixels."""

    digest: str
    width: PositiveInt
    height: PositiveInt


class Screenshot:
    r"""An opaque RGB picture, ``(height, width, 3) uint8``, kept raw and encoded only for the record.

    ``digest`` is the SHA-256 of ``b"RGB {width}x{height}\n"`` plus the raw pixels, so that it does not depend on an
    encoder's version. Anything that is not RGB is converted once, here, over white (transparent parts would turn black
    under a naive conversion; 16-bit greys would saturate).
    """

    __slots__ = ("_digest", "_image", "_png", "_size")

    def __init__(self, image: Image.Image) -> None:
        self._image: Image.Image | None = image if image.mode == "RGB" else to_rgb(image)
        self._size = self._image.size
        self._digest: str | None = None
        self._png: bytes | None = None

    @classmethod
    def decode(cls, data: bytes) -> Screenshot:
        """Open encoded bytes (PNG, JPEG, WebP). Raises OSError for bytes that are no picture, or not all of one."""
        try:
            with Image.open(io.BytesIO(data)) as image:
                image.load()
                return cls(image)
        except (SyntaxError, ValueError, Image.DecompressionBombError) as error:  # as Pillow's decoders raise, too
            raise UnidentifiedImageError(str(error)) from error

    @classmethod
    def encoded(cls, png: bytes, ref: ImageRef) -> Screenshot:
        """What another process of ours encoded and named; decoded only once somebody looks at its pixels."""
        made = cls.__new__(cls)
        made._image, made._size, made._digest, made._png = None, (ref.width, ref.height), ref.digest, png
        return made

    @property
    def image(self) -> Image.Image:
        """The pixels."""
        if self._image is None:
            assert self._png is not None, "it has one of them"
            self._image = Screenshot.decode(self._png).image
        return self._image

    @property
    def width(self) -> int:
        """Pixels across."""
        return self._size[0]

    @property
    def height(self) -> int:
        """Pixels down."""
        return self._size[1]

    @property
    def is_encoded(self) -> bool:
        """Whether ``png`` is at hand."""
        return self._png is not None

    @property
    def digested(self) -> bool:
        """Whether the digest is known already."""
        return self._digest is not None

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical pixels, hexadecimal."""
        if self._digest is None:
            h = hashlib.sha256(b"RGB %dx%d\n" % (self.width, self.height))
            h.update(self.image.tobytes())
            self._digest = h.hexdigest()
        return self._digest

    @property
    def ref(self) -> ImageRef:
        """The reference that records use for this picture."""
        return ImageRef(digest=self.digest, width=self.width, height=self.height)

    def png(self) -> bytes:
        """Lossless encoding for the record: PNG without row filters, deflated at level 1.

        On simulated phone screens of 360 by 640 that takes half the time of Pillow's level 1, which tries five filters
        on every row, and 0.85 of the bytes: flat areas and repeated letters are what deflate finds best as they are.
        """
        if self._png is not None:
            return self._png
        # rows padded by a zero at their ends, all moved on by one: a zero, for "no filter", before each
        rows = b"\0" + self.image.tobytes("raw", "RGB", 3 * self.width + 1, 1)[:-1]
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join([_png_chunk(kind, data) for kind, data in parts])

    def jpeg(self, quality: int = 80) -> bytes:
        """Lossy encoding for people and slow links; never what a model was trained on."""
        out = io.BytesIO()
        self.image.save(out, "JPEG", quality=quality)
        return out.getvalue()


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert any Pillow mode to RGB over a white background."""
    if image.mode.startswith("I;16") or image.mode == "I":
        image = image.point(lambda v: v / 257).convert("L")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, rgba).convert("RGB")
    return image.convert("RGB")


NOTE = "note"
"""Text field of an observation by which a backend tells what no picture shows of what just happened, in sentences."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What an environment shows: the picture, and text fields that a backend may add (url, focused app, ``NOTE``)."""

    screenshot: Screenshot
    text: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepResult:
    """Answer of an environment to one action. ``reward`` is None where only the verdict at the end scores."""

    observation: Observation
    reward: float | None = None
    terminated: bool = False
    truncated: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)
    """May hold ``rejected`` (why the action had no effect), ``settle_ms``, ``settled``, ``changed``."""

    def __post_init__(self) -> None:
        if self.reward is not None and not math.isfinite(self.reward):
            raise EnvError(f"the environment's reward is {self.reward}, which is no finite number")


# --- outcomes ------------------------------------------------------------------------------------------------------


class StopReason(StrEnum):
    """Why an episode ended.

    FAILED and CANCELLED leave it without a score, and so does a DEADLINE that the infrastructure brought about.
    """

    DONE = "done"
    ENV_DONE = "env_done"
    MAX_TURNS = "max_turns"
    DEADLINE = "deadline"
    REPETITIVE_LOOP = "repetitive_loop"
    INVALID_ACTIONS = "invalid_actions"
    CONTEXT_FULL = "context_full"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Failure(Record):
    """An infrastructure failure inside an episode: which boundary broke, and how. It never becomes a reward."""

    boundary: Literal["env", "sampler", "agent", "reward", "rollout"]
    kind: str
    """Class name of the error."""
    message: str
    traceback: str = ""


class Usage(Record):
    """Tokens of one model call or a sum of them."""

    prompt_tokens: NonNegativeInt = 0
    sampled_tokens: NonNegativeInt = 0
    images: NonNegativeInt = 0


class Sink(Protocol):
    """Where metrics and events go. A sink that fails warns once and never stops a run."""

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Record the metrics of one training step or evaluation."""
        ...

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Record that something happened (``start``, ``episode``, ``checkpoint``, ``eval``, ``done`` …)."""
        ...

    def close(self) -> None:
        """Flush and release."""
        ...
