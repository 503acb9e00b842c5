"""Task and history to messages: which screens and answers of the past a model is shown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from pydantic import NonNegativeInt, PositiveInt

from cuarl.policy.sampler import Message, Part, Picture, SampledText, Text
from cuarl.types import Record, Screenshot


class Shown(NamedTuple):
    """Where what is shown of an episode begins; everything from there to the present is shown."""

    picture: int
    """Index of the first screenshot."""
    answer: int
    """Index of the first answer; that of the present turn, which has none yet, if none is shown."""


class Window(Record):
    """How much of the past is shown. Older turns are left out whole."""

    history_images: PositiveInt = 1
    """Screenshots, the present one included."""
    history_turns: NonNegativeInt = 0
    """Answers of the model."""
    history_older: Literal["text", "drop"] = "text"
    """What becomes of an answer whose screenshot is not shown any more: it stays, with words in the place of the
    screenshot, or goes with it."""
    max_prompt_tokens: PositiveInt | None = None
    """Most tokens of a prompt: what is oldest gives way. None: the policy's context alone counts."""

    def but(self, **changes: object) -> Window:
        """This window with what is not None in place of its own."""
        return Window.model_validate(self.model_dump() | {k: v for k, v in changes.items() if v is not None})

    def widest(self, past: int) -> Shown:
        """What is shown behind ``past`` turns where there is room for all of it."""
        picture = max(0, past + 1 - self.history_images)
        answer = max(0, past - self.history_turns)
        return Shown(picture, max(answer, picture) if self.history_older == "drop" else answer)

    def narrowing(self, past: int) -> Iterator[Shown]:
        """What may be shown, widest first; without a budget there is one choice.

        Each is the one before without its oldest part: a screenshot while there is more than the present one, then an
        answer; with ``history_older`` drop an answer goes with its screenshot. The last is the present screenshot
        alone.
        """
        shown = self.widest(past)
        yield shown
        while self.max_prompt_tokens is not None and shown != (past, past):
            if shown.picture == past:
                shown = Shown(past, shown.answer + 1)
            else:
                picture = shown.picture + 1
                together = self.history_older == "drop"
                shown = Shown(picture, max(shown.answer, picture) if together else shown.answer)
            yield shown


def build_messages(
    goal: str,
    screens: Sequence[Screenshot],
    answers: Sequence[SampledText],
    *,
    system: str,
    shown: Shown,
    notes: Sequence[str] = (),
) -> tuple[Message, ...]:
    """The conversation that asks for the next action. The system message and the goal are always there.

    ``screens`` are all screenshots of the episode, the present one last, and ``answers`` all past answers, one for each
    earlier screen. The first user message shown has its pictures and then the goal; with the usual window it is the
    only one. Screenshots whose answer is not shown are among them, and a later user turn whose screenshot is not shown
    says so. ``notes``, if there are any, belong to the screens; one stands in the message in which its screen is the
    last.
    """
    if len(screens) != len(answers) + 1:
        raise ValueError(f"{len(answers)} answers need {len(answers) + 1} screens, not {len(screens)}")
    notes = notes or [""] * len(screens)
    first = "\n\n".join(filter(None, (goal, notes[shown.answer])))
    messages = [
        Message("system", (Text(system),)),
        Message("user", (*map(Picture, screens[shown.picture : shown.answer + 1]), Text(first))),
    ]
    for i in range(shown.answer, len(answers)):
        messages.append(Message("assistant", (answers[i],)))
        messages.append(Message("user", _screen(screens[i + 1] if i + 1 >= shown.picture else None, notes[i + 1])))
    return tuple(messages)


def _screen(screen: Screenshot | None, note: str) -> tuple[Part, ...]:
    if screen is None:
        return (Text("\n".join(filter(None, ("(earlier screen)", note)))),)
    return (Picture(screen), Text(note)) if note else (Picture(screen),)
