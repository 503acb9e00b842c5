"""The agent that asks a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PIL import Image

from cuarl.agent.base import Decision
from cuarl.agent.formats import Format, Size, saw
from cuarl.agent.prompt import Window, build_messages
from cuarl.policy.sampler import PromptTooLong, SampledText, Sampler, SampleRequest, SamplingParams, Sees
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Observation, ParseError, Screenshot


class ModelAgent:
    """Shows ``sampler`` the screen and reads its answer in ``format``. For one episode.

    ``window`` None means the format's usual one. ``strict`` reads answers as in training (see ``Format.parse``). ``max_prompt_tokens`` bounds the prompt; beyond it
    the episode ends with its context full.
    """

    def __init__(
        self, sampler: Sampler, format: Format, *, params: SamplingParams, window: Window | None = None,
        strict: bool = True, max_prompt_tokens: int | None = None, name: str = "",
    ) -> None:  # fmt: skip
        self.name = name or format.name
        self._sampler, self._format, self._params = sampler, format, params
        self._window = window or format.window
        self._strict, self._max_prompt_tokens = strict, max_prompt_tokens
        self._screens: list[Screenshot] = []

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """Sample an answer and read it; ``seed`` is the sample's own. Raises what the sampler raises."""
        screen = observation.screenshot
        size = Size(screen.width, screen.height)
        shown = shrunk(screen, self._format.sent(size))
        self._screens.append(shown)
        resized = self._seen(size)
        request = SampleRequest(
            messages=build_messages(
                task.goal, self._screens, past_answers(history), system=self._format.told(resized), window=self._window
            ),
            params=self._params, seed=seed, max_prompt_tokens=self._max_prompt_tokens,
        )  # fmt: skip
        sampled = await self._sampler.sample(request)
        if isinstance(sampled, PromptTooLong):
            return Decision(too_long=sampled)
        pictures = {} if shown is screen else {shown.digest: shown}
        return replace(self._read(sampled, size, resized), resized=resized, pictures=pictures, sampled=sampled)

    def _seen(self, screen: Size) -> Size:
        """The size at which the model saw a screenshot: the sampler knows, or else it is what is usual for the family."""
        told = self._sampler.sees(*self._format.sent(screen)) if isinstance(self._sampler, Sees) else None
        return saw(self._format, screen, Size(*told) if told else None)

    def _read(self, sampled: Sampled, screen: Size, resized: Size) -> Decision:
        if sampled.stop == "special_token":
            return Decision(parse_error=ParseError(code="special_token", message="a placeholder token was sampled"))
        parsed = self._format.parse(sampled.text, screen, resized=resized, strict=self._strict)
        error = parsed.error
        if error is not None and sampled.stop == "length":
            error = ParseError(code="truncated", message=f"cut off after {len(sampled.token_ids)} tokens")
        return Decision(action=parsed.action, parse_error=error, warnings=parsed.warnings)


def shrunk(screenshot: Screenshot, size: Size) -> Screenshot:
    """The screenshot at another size; itself where it has that size."""
    if (screenshot.width, screenshot.height) == size:
        return screenshot
    return Screenshot(screenshot.image.resize(size, Image.Resampling.LANCZOS))


def past_answers(history: Sequence[Turn]) -> list[SampledText]:
    """What the policy answered in each turn, with its ids where they are exact."""
    return [
        SampledText(t.sampled.text, t.sampled.token_ids if t.sampled.exact else None) if t.sampled else SampledText("")
        for t in history
    ]
