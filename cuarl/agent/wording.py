"""Actions said in a model's own words: records of what nobody sampled, made so that they can be imitated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuarl.agent.base import Decision
from cuarl.agent.demonstration_points import stepped
from cuarl.agent.formats import Format, Size, saw
from cuarl.agent.formats.gestures import scrolled
from cuarl.agent.formats.points import RELATIVE
from cuarl.agent.history import History
from cuarl.agent.model import shrunk
from cuarl.agent.notes import note
from cuarl.agent.prompt import Window
from cuarl.errors import AgentError
from cuarl.policy.sampler import Message, PromptTooLong
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Action, Answer, Finish, Observation, Screenshot, Scroll

Write = Callable[[tuple[Message, ...], str, int | None], Sampled | PromptTooLong]
"""Makes a record of a prompt, of so many tokens at most, and a given answer, tokenised as if sampled
(``TransformersPolicy.written``)."""
Resize = Callable[[int, int], tuple[int, int] | None]
"""The size at which a model sees a picture of a width and a height; None if that is not known."""


class Wording:
    """The words of one model for what is done in one episode.

    ``resize`` is the model's own; None means the usual one of its family. ``step``: the model names points in
    thousandths of the screen, and multiples of this only.
    """

    def __init__(
        self,
        format: Format,
        write: Write,
        *,
        window: Window | None = None,
        resize: Resize | None = None,
        step: int | None = None,
    ) -> None:
        self.format = format
        self._write, self._resize, self._step = write, resize, step
        self._history = History(window or format.window)
        self._pictures: dict[str, Screenshot] = {}

    @property
    def name(self) -> str:
        """The format's."""
        return self.format.name

    def see(self, observation: Observation, turns: Sequence[Turn]) -> None:
        """Take in the screen that is acted on next. Once a turn."""
        screen = observation.screenshot
        self._size = Size(screen.width, screen.height)
        sent = self.format.sent(self._size)
        shown = shrunk(screen, sent)
        self._pictures = {} if shown is screen else {shown.digest: shown}
        self._history.see(shown, note(observation, turns) if self.format.notes else "")
        told = self._resize(*sent) if self._resize else None
        self._resized = saw(self.format, self._size, Size(*told) if told else None)

    def understood(self, action: Action) -> tuple[str, Action]:
        """The words for ``action`` on the present screen, and what they mean. Raises AgentError if there are none."""
        text = self._words(action)
        said = self.format.parse(text, self._size, resized=self._resized).action
        if said is None:
            raise AgentError(f"{self.format.name} can't say {action.kind} so that it is understood")
        return text, said

    def decision(self, task: TaskInstance, turns: Sequence[Turn], action: Action) -> Decision:
        """``action`` as the answer to the widest prompt that fits. Raises as ``understood``.

        What is decided is what the words mean, so that replays and checks agree with what is learnt.
        """
        text, _ = self.understood(action)
        sampled = self._recorded(task, turns, text)
        if isinstance(sampled, PromptTooLong):
            return Decision(too_long=sampled)
        said = self.format.parse(text, self._size, resized=self._resized)
        return Decision(
            action=said.action,
            warnings=said.warnings,
            resized=self._resized,
            pictures=self._pictures,
            sampled=sampled,
        )

    def _recorded(self, task: TaskInstance, turns: Sequence[Turn], text: str) -> Sampled | PromptTooLong:
        system = self.format.told(self._resized)
        for messages in self._history.prompts(task, turns, system=system):
            written = self._write(messages, text, self._history.window.max_prompt_tokens)
            if not isinstance(written, PromptTooLong):
                return written
            refused = written
        return self._history.checked(refused, task)

    def _words(self, action: Action) -> str:
        return words(self.format, action, self._size, step=self._step, resized=self._resized)


def words(format: Format, action: Action, screen: Size, *, step: int | None = None, resized: Size | None = None) -> str:
    """The words of ``format`` for ``action``, or for another that comes to the same, where the family has none.

    ``step``: points are named in thousandths of the screen, and multiples of this only. Raises AgentError if there are
    no words.
    """
    try:
        return _render(format, action, screen, step, resized)
    except AgentError:
        other = instead(action, screen)
        if other is None:
            raise
        return _render(format, other, screen, step, resized)


def _render(format: Format, action: Action, screen: Size, step: int | None, resized: Size | None) -> str:
    if step is None:
        return format.render(action, screen, resized=resized)
    return format.render(stepped(action, screen, step), RELATIVE, resized=resized)


def instead(action: Action, screen: Size) -> Action | None:
    """What comes to the same: a finger's slide for a scroll, and finishing with the answer for answering."""
    match action:
        case Scroll(x=int(x), y=int(y), direction=direction, amount=amount, unit="px", held=()):
            return scrolled("phone", screen, (x, y), direction, amount)
        case Answer(text=text):
            return Finish(message=text)
    return None
