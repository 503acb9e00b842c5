"""The agent that asks a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PIL import Image

from cuarl.agent.base import Decision
from cuarl.agent.formats import Format, Size, saw
from cuarl.agent.history import History
from cuarl.agent.notes import note
from cuarl.agent.pointing import Pointer, pointed
from cuarl.agent.prompt import Window
from cuarl.pacing import own_pass
from cuarl.policy.sampler import PromptTooLong, Sampler, SampleRequest, SamplingParams, Sees
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Observation, ParseError, Screenshot


class ModelAgent:
    """Shows ``sampler`` the screen and reads its answer in ``format``. For one episode.

    ``window`` None means the format's usual one. ``strict`` reads answers as in training (see ``Format.parse``). A
    prompt that does not fit into the policy's context, however little of the past it shows, ends the episode.
    ``pointer`` finds what a format of descriptions names.
    """

    def __init__(
        self,
        sampler: Sampler,
        format: Format,
        *,
        params: SamplingParams,
        window: Window | None = None,
        strict: bool = True,
        name: str = "",
        pointer: Pointer | None = None,
        group: str = "",
    ) -> None:
        self.name = name or format.name
        self._sampler, self._format, self._params, self._group = sampler, format, params, group
        self._history, self._strict, self._pointer = History(window or format.window), strict, pointer

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """Sample an answer and read it; ``seed`` is the sample's own.

        Raises what the sampler raises, and ConfigError for a budget of tokens that is too small for a single turn.
        """
        screen = observation.screenshot
        size = Size(screen.width, screen.height)
        shown = self.see(observation, history)
        resized = await self._seen(size)
        sampled = await self._sample(task, history, seed, self._format.told(resized))
        if isinstance(sampled, PromptTooLong):
            return Decision(too_long=sampled)
        # the answers to all episodes of a batch come at once
        await own_pass()
        pictures = {} if shown is screen else {shown.digest: shown}
        decision = await self._read(sampled, screen, resized)
        return replace(decision, resized=resized, pictures=pictures, sampled=sampled)

    def see(self, observation: Observation, history: Sequence[Turn]) -> Screenshot:
        """Take in the present screen, which is all there is to do in a turn that somebody else has; as it is shown."""
        screen = observation.screenshot
        shown = shrunk(screen, self._format.sent(Size(screen.width, screen.height)))
        self._history.see(shown, note(observation, history) if self._format.notes else "")
        return shown

    async def _sample(
        self, task: TaskInstance, turns: Sequence[Turn], seed: int, system: str
    ) -> Sampled | PromptTooLong:
        """An answer to the widest prompt that fits; nothing is computed for one that does not."""
        budget = self._history.window.max_prompt_tokens
        for messages in self._history.prompts(task, turns, system=system):
            request = SampleRequest(messages, self._params, seed, max_prompt_tokens=budget, group=self._group)
            sampled = await self._sampler.sample(request)
            if not isinstance(sampled, PromptTooLong):
                return sampled
            refused = sampled
        return self._history.checked(refused, task)

    async def _seen(self, screen: Size) -> Size:
        """The size at which the model saw a screenshot.

        The sampler knows, or else it is what is usual for the family.
        """
        told = await self._sampler.sees(*self._format.sent(screen)) if isinstance(self._sampler, Sees) else None
        return saw(self._format, screen, Size(*told) if told else None)

    async def _read(self, sampled: Sampled, screen: Screenshot, resized: Size) -> Decision:
        if sampled.stop == "special_token":
            return Decision(parse_error=ParseError(code="special_token", message="a placeholder token was sampled"))
        size = Size(screen.width, screen.height)
        parsed = self._format.parse(sampled.text, size, resized=resized, strict=self._strict)
        if sampled.stop == "length" and (parsed.error is not None or parsed.guessed):
            error = ParseError(code="truncated", message=f"cut off after {len(sampled.token_ids)} tokens")
            return Decision(parse_error=error, warnings=parsed.warnings)
        if self._pointer is not None:
            parsed = await pointed(parsed, screen, self._pointer)
        return Decision(action=parsed.action, parse_error=parsed.error, warnings=parsed.warnings)


def shrunk(screenshot: Screenshot, size: Size) -> Screenshot:
    """The screenshot at another size; itself where it has that size."""
    if (screenshot.width, screenshot.height) == size:
        return screenshot
    return Screenshot(screenshot.image.resize(size, Image.Resampling.LANCZOS))
