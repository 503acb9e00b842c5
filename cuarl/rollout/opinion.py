"""A model's opinion on whether a task is done, asked of any server that speaks OpenAI's chat completions.

It is shown the goal, what was done in words, the last screens and the answer, always in the same form, and answers with
one JSON object. For goals that no check can be written for, and to be held against checks where there are some.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuarl.agent.describe import describe
from cuarl.errors import EnvError, RewardError
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import CheckResult, Turn, Verdict
from cuarl.types import ImageRef, Record, Screenshot

INFO = "judge"
"""Where an episode's record keeps the opinion on it."""
SYSTEM = (
    "You judge whether an agent has done on a device what it was asked to. You are given the goal, the agent's actions "
    "in order, the last screens with the oldest first, and what the agent told the user, if anything. Go by what the "
    "screens show: what the agent says of itself is no evidence. What nobody asked for must not have been changed. "
    'Answer with one JSON object and nothing else: {"reason": "<one sentence>", "success": true} or with false.'
)
ATTEMPTS = 2
"""How often a judge is asked that does not answer in that form."""
MOST_TOKENS = 400
_STEP = 200
"""Most characters of one action in the question."""
_OBJECT = re.compile(r"\{[^{}]*\}")


class Opinion(Record):
    """What a judge said of an episode."""

    success: bool
    reason: str
    model: str
    key: str
    """Digest of what it was asked, hexadecimal."""
    tokens_in: int = 0
    tokens_out: int = 0

    def verdict(self) -> Verdict:
        """As the verdict of a task without checks."""
        check = CheckResult(path=INFO, op="equals", expected=True, actual=self.reason, passed=self.success)
        return Verdict(success=self.success, score=float(self.success), checks=(check,))


@dataclass(frozen=True, slots=True)
class Seen:
    """What of an episode a judge is asked about."""

    task: TaskInstance
    turns: Sequence[Turn]
    final: ImageRef | None
    answer: str | None
    pictures: Mapping[str, Screenshot]
    """By digest; the last ones of the episode are enough."""

    def screens(self, most: int) -> list[Screenshot]:
        """The last screens, oldest first; one that follows itself counts once."""
        refs = [turn.screenshot for turn in self.turns] + ([self.final] if self.final else [])
        kept = [ref for i, ref in enumerate(refs) if not i or ref.digest != refs[i - 1].digest]
        return [self.pictures[ref.digest] for ref in kept[-most:]]


class JudgeModel:
    """A model behind ``base_url`` that is asked for opinions, ``screens`` of them with each question."""

    def __init__(self, base_url: str, model: str, key: str | None = None, *, screens: int = 4) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.model, self.screens = model, screens
        # every command imports this module, and few have such a judge
        from cuarl.env.http import Service

        self.service = Service("the judge", base_url, headers, timeout_s=120.0)

    async def __call__(self, seen: Seen) -> Opinion:
        """The opinion on an episode. Raises RewardError if there is none to be had."""
        messages = self._question(seen)
        spent = [0, 0]
        said = ""
        for _ in range(ATTEMPTS):
            said, used = await self._asked(messages)
            spent = [a + b for a, b in zip(spent, used, strict=True)]
            found = _read(said)
            if found is not None:
                success, reason = found
                key = self.key(seen)
                return Opinion(
                    success=success, reason=reason, model=self.model, key=key, tokens_in=spent[0], tokens_out=spent[1]
                )
        raise RewardError(f"the judge {self.model} did not answer in the form that it was asked for: {said[:200]!r}")

    def key(self, seen: Seen) -> str:
        """Digest of the question and of who is asked."""
        return hashlib.sha256(json.dumps([self.model, self._question(seen)]).encode()).hexdigest()

    async def close(self) -> None:
        """Close the connections."""
        await self.service.close()

    async def _asked(self, messages: list[dict[str, Any]]) -> tuple[str, tuple[int, int]]:
        body = {"model": self.model, "messages": messages, "max_tokens": MOST_TOKENS, "temperature": 0}
        try:
            reply = await self.service.json("POST", "chat/completions", json=body, repeatable=True)
            said = reply["choices"][0]["message"]["content"]
        except EnvError as error:
            raise RewardError(f"no opinion of the judge: {error.what}", where=error.where) from error
        except (KeyError, IndexError, TypeError) as error:
            raise RewardError("the judge's server did not answer with a chat completion") from error
        used = reply.get("usage") or {}
        return str(said or ""), (int(used.get("prompt_tokens") or 0), int(used.get("completion_tokens") or 0))

    def _question(self, seen: Seen) -> list[dict[str, Any]]:
        steps = "\n".join(f"{turn.index + 1}. {_words(turn)}" for turn in seen.turns) or "none"
        answer = "nothing" if seen.answer is None else json.dumps(seen.answer)
        text = f"Goal: {seen.task.goal}\n\nActions:\n{steps}\n\nThe agent told the user: {answer}\n\nThe last screens:"
        shown = [{"type": "image_url", "image_url": {"url": _uri(screen)}} for screen in seen.screens(self.screens)]
        return [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": [{"type": "text", "text": text}, *shown]},
        ]


def _words(turn: Turn) -> str:
    if turn.action is None:
        return "an answer that is no action" if turn.parse_error else "an action of its own"
    return describe(turn.action)[:_STEP]


def _uri(screen: Screenshot) -> str:
    return "data:image/png;base64," + base64.b64encode(screen.png()).decode()


def _read(said: str) -> tuple[bool, str] | None:
    """Success and reason of the last JSON object in the text that has a ``success`` of true or false."""
    for text in reversed(_OBJECT.findall(said)):
        try:
            found = json.loads(text)
        except ValueError:
            continue
        if isinstance(found.get("success"), bool):
            return found["success"], str(found.get("reason", ""))
    return None
