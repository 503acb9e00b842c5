"""The agent that asks a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cuarl.agent.base import Decision
from cuarl.agent.formats import Format, Size
from cuarl.agent.prompt import Window, build_messages
from cuarl.policy.sampler import PromptTooLong, SampledText, Sampler, SampleRequest, SamplingParams
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Observation, ParseError, Screenshot


class ModelAgent:
    """Shows ``sampler`` the screen and reads its answer in ``format``. For one episode.

    ``strict`` reads answers as in training (see ``Format.parse``). ``max_prompt_tokens`` bounds the prompt; beyond it
    the episode ends with its context full.
    """

    def __init__(
        self, sampler: Sampler, format: Format, *, params: SamplingParams, window: Window | None = None,
        strict: bool = True, max_prompt_tokens: int | None = None, name: str = "",
    ) -> None:  # fmt: skip
        self.name = name or format.name
        self._sampler, self._format, self._params = sampler, format, params
        self._window = window or Window()
        self._strict, self._max_prompt_tokens = strict, max_prompt_tokens
        self._screens: list[Screenshot] = []

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """Sample an answer and read it; ``seed`` is the sample's own. Raises what the sampler raises."""
        screen = observation.screenshot
        self._screens.append(screen)
        request = SampleRequest(
            messages=build_messages(
                task.goal, self._screens, past_answers(history), system=self._format.system_prompt, window=self._window
            ),
            params=self._params, seed=seed, max_prompt_tokens=self._max_prompt_tokens,
        )  # fmt: skip
        sampled = await self._sampler.sample(request)
        if isinstance(sampled, PromptTooLong):
            return Decision(too_long=sampled)
        return replace(self._read(sampled, Size(screen.width, screen.height)), sampled=sampled)

    def _read(self, sampled: Sampled, screen: Size) -> Decision:
        if sampled.stop == "special_token":
            return Decision(parse_error=ParseError(code="special_token", message="a placeholder token was sampled"))
        parsed = self._format.parse(sampled.text, screen, strict=self._strict)
        error = parsed.error
        if error is not None and sampled.stop == "length":
            error = ParseError(code="truncated", message=f"cut off after {len(sampled.token_ids)} tokens")
        return Decision(action=parsed.action, parse_error=error, warnings=parsed.warnings)


def past_answers(history: Sequence[Turn]) -> list[SampledText]:
    """What the policy answered in each turn, with its ids where they are exact."""
    return [
        SampledText(t.sampled.text, t.sampled.token_ids if t.sampled.exact else None) if t.sampled else SampledText("")
        for t in history
    ]
