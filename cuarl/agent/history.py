"""What an agent remembers of its episode, and the prompts it makes of it: as wide a window as there is room for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cuarl.agent.prompt import Window, build_messages
from cuarl.errors import ConfigError
from cuarl.policy.sampler import Message, PromptTooLong, SampledText
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Turn
from cuarl.types import Screenshot


class History:
    """The screens of one episode, as they were shown.

    Which of them a prompt has follows from their number and size alone.
    """

    def __init__(self, window: Window) -> None:
        self.window = window
        self._screens: list[Screenshot] = []
        self._notes: list[str] = []

    def see(self, screenshot: Screenshot, note: str = "") -> None:
        """The present screen, and what there is to tell beside it; it becomes a past one with the next."""
        self._screens.append(screenshot)
        self._notes.append(note)

    def prompts(self, task: TaskInstance, turns: Sequence[Turn], *, system: str) -> Iterator[tuple[Message, ...]]:
        """Prompts for the next action behind ``turns``, each with less of the past than the one before: ``Window``."""
        answers = past_answers(turns)
        for shown in self.window.narrowing(len(answers)):
            yield build_messages(task.goal, self._screens, answers, system=system, shown=shown, notes=self._notes)

    def checked(self, refused: PromptTooLong, task: TaskInstance) -> PromptTooLong:
        """Why the last of ``prompts`` was refused.

        Raises ConfigError if for the budget: no turn would ever fit then.
        """
        if refused.limit == self.window.max_prompt_tokens:
            raise ConfigError(
                f"one turn alone (system prompt, task and a screenshot) takes {refused.needed} tokens, and "
                f"max_prompt_tokens is {refused.limit}",
                where=f"task {task.task_id}",
                hint=f"--max-prompt-tokens {refused.needed}",
            )
        return refused


def past_answers(turns: Sequence[Turn]) -> list[SampledText]:
    """What the policy answered in each turn, with its ids where they are exact."""
    return [
        SampledText(t.sampled.text, t.sampled.token_ids if t.sampled.exact else None) if t.sampled else SampledText("")
        for t in turns
    ]
