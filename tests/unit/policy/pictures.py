"""Screenshots and prompts for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from cuarl.policy.inputs import Row
from cuarl.policy.prompt import Prompt
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import Message, Picture, Text
from cuarl.types import Screenshot

SYSTEM = "You act on a phone."


def screen(seed: int, width: int = 64, height: int = 96) -> Screenshot:
    """A screenshot of noise."""
    noise = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Screenshot(Image.fromarray(noise))


def messages(goal: str, *screens: Screenshot) -> tuple[Message, ...]:
    """The usual conversation: system text, then pictures and goal."""
    user = (*(Picture(s) for s in screens), Text(goal))
    return (Message("system", (Text(SYSTEM),)), Message("user", user))


def prompt(policy: QwenVLPolicy, goal: str, *screens: Screenshot) -> Prompt:
    """The same, rendered."""
    rendered = policy.render(messages(goal, *screens))
    assert isinstance(rendered, Prompt)
    return rendered


def row(policy: QwenVLPolicy, goal: str, screens: Sequence[Screenshot], answer: Sequence[int]) -> Row:
    """A prompt with an answer."""
    return Row(*prompt(policy, goal, *screens), answer_ids=tuple(answer))
