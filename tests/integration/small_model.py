"""The miniature model for commands. What the format says in every prompt is one token, as it is for the shipped base.

A turn takes some 110 tokens then; spelt in bytes it would be 2,000, and a run of a few steps three times as long.
"""

from __future__ import annotations

import pytest
from transformers import PreTrainedTokenizerFast

from cuarl.agent.formats import get
from tests.unit.policy.conftest import qwen3_folder, qwen25_folder, small_tokenizer

__all__ = ["qwen3_folder", "qwen25_folder", "tokenizer"]


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    return small_tokenizer(get("qwen3-vl").system_prompt)
