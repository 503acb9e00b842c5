"""Stored turns as conversations for supervised fine-tuning: the prompt that the model was shown, and its answer.

A turn is one conversation, since each prompt shows its own window of the past. The words of prompts are not stored;
they are built again from the record, by the family's format and the run's window, and the pictures are those that the
record says were shown. Scripted agents answered nothing: with a format named, their actions are said in its words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from cuarl.agent import formats
from cuarl.agent.formats import Format, Size, saw
from cuarl.agent.history import past_answers
from cuarl.agent.model import shrunk
from cuarl.agent.notes import note
from cuarl.agent.prompt import Window, build_messages
from cuarl.agent.wording import instead
from cuarl.errors import AgentError
from cuarl.policy.sampler import Message, Picture, SampledText
from cuarl.store.store import Store
from cuarl.trajectory import Sampled, Trajectory, Turn
from cuarl.types import Action, Observation, Screenshot

NO_FORMAT = "of scripted agents, or of models whose format is not known (--renderer-name names one)"
NO_ACTION = "whose answer was no action"
NO_WORDS = "whose action the format has no words for"
NO_PICTURE = "whose screenshots are missing"
OTHER_WINDOW = "whose prompt can't be built again"
_WINDOW = ("history_images", "history_turns", "history_older", "max_prompt_tokens")
_BLANK = Screenshot(Image.new("RGB", (1, 1)))
"""Stands for each picture while a prompt is built; which one it is follows from its place."""


@dataclass(frozen=True, slots=True)
class Chat:
    """One turn as a conversation that ends with its answer."""

    episode: Trajectory
    turn: Turn
    messages: tuple[Message, ...]
    pictures: tuple[Screenshot, ...]
    """Those of ``messages``, in their order."""


@dataclass(slots=True)
class Chats:
    """The conversations of a store's episodes. Counts what it leaves out while it is iterated over."""

    store: Store
    run: str | None = None
    """Id of one run; None: all."""
    failed: bool = False
    """Take episodes that were no success, too."""
    renderer: str | None = None
    """Format for what scripted agents did."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Turns that are left out, by why."""
    overruled: Mapping[str, bool] = field(default_factory=dict)
    """People's verdicts."""

    def __iter__(self) -> Iterator[Chat]:
        self.overruled = self.store.overruled(run=self.run)
        configs = {run.id: run.config for run in self.store.runs()}
        for episode in self.store.trajectories(run=self.run) if self.run else self.store.trajectories():
            if self.failed or self.overruled.get(episode.episode_id, episode.success):
                yield from self._of(episode, configs.get(episode.run_id, {}))

    def _of(self, episode: Trajectory, config: Mapping[str, Any]) -> Iterator[Chat]:
        format, scripted = _format_of(episode), False
        if format is None and self.renderer:
            format, scripted = formats.get(self.renderer, "phone" if episode.env in ("", "phone") else "desktop"), True
        if format is None:
            self.left_out[NO_FORMAT] += len(episode.turns)
            return
        window = format.window.but(**{name: config.get(name) for name in _WINDOW})
        turns = _spoken(episode.turns, format, window) if scripted else episode.turns
        for count in range(1, len(turns) + 1):
            found = self._chat(episode, turns[:count], format, window)
            if isinstance(found, Chat):
                yield found
            else:
                self.left_out[found] += 1

    def _chat(self, episode: Trajectory, turns: Sequence[Turn], format: Format, window: Window) -> Chat | str:
        """The last of ``turns``, behind the others; or why it is left out."""
        turn = turns[-1]
        if turn.action is None or turn.parse_error is not None:
            return NO_ACTION
        if turn.sampled is None:
            return NO_WORDS
        prompt = _prompt(episode, turns, format, window)
        if prompt is None:
            return OTHER_WINDOW
        digests = [image.digest for image in turn.sampled.images]
        if not all(map(self.store.blobs.exists, digests)):
            return NO_PICTURE
        pictures = [self.store.blobs.get(digest) for digest in digests]
        if (
            not turn.sampled.exact and not turn.sampled.policy
        ):  # said for a scripted agent: nobody was sent a picture yet
            pictures = [shrunk(one, format.sent(Size(one.width, one.height))) for one in pictures]
        return Chat(episode, turn, (*prompt, Message("assistant", (SampledText(turn.sampled.text),))), tuple(pictures))


def _format_of(episode: Trajectory) -> Format | None:
    """The format of a model, by the name that its agent has: ``qwen3-vl-mobile``, or ``oracle:qwen3-vl-mobile``."""
    family, _, kind = episode.agent.rpartition(":")[2].rpartition("-")
    if family not in formats.NAMES or kind not in ("mobile", "computer"):
        return None
    return formats.get(family, "phone" if kind == "mobile" else "desktop")


def _spoken(turns: Sequence[Turn], format: Format, window: Window) -> list[Turn]:
    """A scripted agent's turns with what a model would have been shown and answered, where the format can say it."""
    screens, found = [turn.screenshot for turn in turns], []
    for past, turn in enumerate(turns):
        size = Size(turn.screenshot.width, turn.screenshot.height)
        seen, images = saw(format, size), screens[window.widest(past).picture : past + 1]
        text = turn.action and _words(turn.action, format, size, seen)
        sampled = None if text is None else Sampled(text=text, images=tuple(images), exact=False)
        found.append(turn.model_copy(update={"sampled": sampled, "resized": tuple(seen)}))
    return found


def _words(action: Action, format: Format, screen: Size, seen: Size) -> str | None:
    """What calls for an action, or for another that comes to the same."""
    for one in (action, instead(action, screen)):
        with suppress(AgentError):
            if one is not None:
                return format.render(one, screen, resized=seen)
    return None


def _prompt(episode: Trajectory, turns: Sequence[Turn], format: Format, window: Window) -> tuple[Message, ...] | None:
    """What asked for the last of ``turns``: the widest prompt that has as many pictures as were shown."""
    turn = turns[-1]
    assert turn.sampled is not None
    resized = turn.resized or saw(format, Size(turn.screenshot.width, turn.screenshot.height))
    notes = [note(Observation(_BLANK, t.text), turns[:i]) if format.notes else "" for i, t in enumerate(turns)]
    for shown in window.narrowing(len(turns) - 1):
        messages = build_messages(
            episode.goal,
            [_BLANK] * len(turns),
            past_answers(turns[:-1]),
            system=format.told(Size(*resized)),
            shown=shown,
            notes=notes,
        )
        if sum(isinstance(part, Picture) for m in messages for part in m.parts) == len(turn.sampled.images):
            return messages
    return None
