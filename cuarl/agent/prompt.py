"""Task and history to messages: which screens and answers of the past a model is shown. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import NonNegativeInt, PositiveInt

from cuarl.policy.sampler import Message, Part, Picture, SampledText, Text
from cuarl.types import Record, Screenshot


class Window(Record):
    """How much of the past is shown. Older turns are left out whole."""

    history_images: PositiveInt = 1
    """Screenshots, the present one included."""
    history_turns: NonNegativeInt = 0
    """Answers of the model."""

    def but(self, history_images: int | None, history_turns: int | None) -> Window:
        """This window with what is not None in place of its own."""
        return Window(
            history_images=self.history_images if history_images is None else history_images,
            history_turns=self.history_turns if history_turns is None else history_turns,
        )


def build_messages(
    goal: str, screens: Sequence[Screenshot], answers: Sequence[SampledText], *, system: str, window: Window
) -> tuple[Message, ...]:
    """The conversation that asks for the next action.

    ``screens`` are all screenshots of the episode, the present one last, and ``answers`` all past answers, one for each
    earlier screen. The first user message shown has its pictures and then the goal; with the usual window it is the
    only one. Screenshots whose answer is out of the window are among them, and a later user turn whose screenshot is
    out of the window says so.
    """
    if len(screens) != len(answers) + 1:
        raise ValueError(f"{len(answers)} answers need {len(answers) + 1} screens, not {len(screens)}")
    first = len(answers) - min(window.history_turns, len(answers))
    oldest = max(0, len(screens) - window.history_images)
    messages = [
        Message("system", (Text(system),)),
        Message("user", (*map(Picture, screens[oldest : first + 1]), Text(goal))),
    ]
    for i in range(first, len(answers)):
        messages.append(Message("assistant", (answers[i],)))
        messages.append(Message("user", _screen(screens, i + 1, oldest)))
    return tuple(messages)


def _screen(screens: Sequence[Screenshot], index: int, oldest: int) -> tuple[Part, ...]:
    return (Picture(screens[index]),) if index >= oldest else (Text("(earlier screen)"),)
