"""UI-TARS 1.0 and 1.5 (https://arxiv.org/abs/2501.12326): a thought, then an action that reads like a call of Python.

    Thought: The switch is off.
    Action: click(start_box='(512,233)')

Version 1.0 gives points from 0 to 1000, version 1.5 in pixels of the resized picture, and no answer tells which. Points
of both spellings (boxes in brackets, ``<point>`` tags) are read. Readings of ours: on a phone ``drag`` slides a finger
and ``scroll`` slides it the other way by half of the screen; ``amount`` says how many pixels a wheel scrolls; ``time``
how many seconds a long press takes; ``call_user`` gives up.
"""

from __future__ import annotations

from typing import ClassVar

from cuarl.agent.formats.base import DeviceKind, Size
from cuarl.agent.formats.family import Family
from cuarl.agent.formats.qwen25_vl.format import MAX_PIXELS, MIN_PIXELS, SIDE
from cuarl.agent.formats.ui_tars.syntax import find_call
from cuarl.agent.formats.ui_tars.vocabulary import Style, read_action, write_action
from cuarl.agent.prompt import Window
from cuarl.policy.resize import whole_tokens
from cuarl.types import Action

_EXAMPLES: dict[DeviceKind, tuple[tuple[str, str], ...]] = {
    "phone": (
        ("click({at})", "tap a point"),
        ("long_press({at})", "hold a point; time='2' holds it two seconds"),
        ("drag({start}, {end})", "slide a finger from one point to another"),
        ("scroll({at}, direction='down')", "bring into view what lies down, up, left or right of a point"),
        ("type(content='tea')", "type into the focused field"),
        ("open_app(app_name='Clock')", "open an app by its name"),
        ("press_home()", "go to the home screen"),
        ("press_back()", "go back"),
    ),
    "desktop": (
        ("click({at})", "click the left button"),
        ("left_double({at})", "click the left button twice"),
        ("right_single({at})", "click the right button"),
        ("drag({start}, {end})", "hold the left button from one point to another"),
        ("hotkey(key='ctrl c')", "press keys together, with blanks between them"),
        ("type(content='tea')", "type into the focused field"),
        ("scroll({at}, direction='down')", "bring into view what lies down, up, left or right of a point"),
    ),
}
_ENDS = (
    ("wait()", "let five seconds pass"),
    ("finished(content='It is 5 pm.')", "the task is done; content answers what was asked"),
    ("call_user()", "the task can't be done"),
)


class UITars(Family):
    """Version 1.0 for one kind of device."""

    family: ClassVar[str] = "ui-tars-1.0"
    style: ClassVar[Style] = "box"
    window = Window(history_images=5, history_turns=5)

    @property
    def examples(self) -> tuple[str, ...]:
        """A call for every verb that the prompt offers."""
        return tuple(self._spelled(call) for call, _ in (*_EXAMPLES[self.kind], *_ENDS))

    @property
    def system_prompt(self) -> str:
        """A constant of the kind of device."""
        device = "a phone" if self.kind == "phone" else "a desktop computer"
        grid = (
            "Points are pixels of the screenshot, from its top left corner."
            if self.absolute
            else "Points run from 0 to 1000 across the screen, from its top left corner."
        )
        calls = "\n".join(f"{self._spelled(call)}  # {meaning}" for call, meaning in (*_EXAMPLES[self.kind], *_ENDS))
        return (
            f"You carry out tasks on {device}. Each time you see its screen, think, and choose one action. Answer in "
            "two lines:\n\nThought: what you see, and what to do about it\nAction: one call\n\n"
            f"The calls:\n{calls}\n\n{grid} Within content, write \\n for a line break, \\' for a quote and \\\\ for "
            "a backslash. A line break at the end of typed content presses Enter."
        )

    def _spelled(self, call: str) -> str:
        if self.style == "box":
            return call.format(at="start_box='(512,233)'", start="start_box='(512,233)'", end="end_box='(512,80)'")
        places = ("point='<point>512 233</point>'", "<point>512 80</point>")
        return call.format(at=places[0], start=f"start_{places[0]}", end=f"end_point='{places[1]}'")

    def _read(self, text: str, screen: Size, grid: Size, *, strict: bool, warnings: list[str]) -> Action:
        call = find_call(text, strict=strict, warnings=warnings)
        return read_action(call, self.kind, screen, grid, strict=strict, warnings=warnings)

    def _write(self, action: Action, screen: Size, grid: Size) -> str:
        return f"Action: {write_action(action, self.kind, screen, grid, self.style)}"


class UITars15(UITars):
    """Version 1.5, built on Qwen2.5-VL, for one kind of device."""

    family: ClassVar[str] = "ui-tars-1.5"
    style: ClassVar[Style] = "point"
    absolute: ClassVar[bool] = True

    def seen(self, sent: Size) -> Size:
        """Whole tokens, as Qwen2.5-VL sees a picture."""
        return Size(*whole_tokens(*sent, side=SIDE, min_pixels=MIN_PIXELS, max_pixels=MAX_PIXELS))
