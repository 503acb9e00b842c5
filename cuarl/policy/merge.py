"""An adapter folded into its base for good, and the proof that the folder written says the same.

The sum is made in float32 whatever is written. The proof compares what the written folder, loaded anew, says of prompts
with pictures against the base with its adapter, both computed in float32: the largest difference of log-probabilities
of tokens that are likely at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

import torch
from PIL import Image

from cuarl.errors import CheckpointError, ConfigError
from cuarl.policy.base import Policy
from cuarl.policy.inputs import Row
from cuarl.policy.load import load_policy
from cuarl.policy.nf4.linear import dequantise
from cuarl.policy.prompt import Prompt
from cuarl.policy.sampler import Message, Picture, Text
from cuarl.policy.score import Scorer
from cuarl.policy.spec import ModelSpec
from cuarl.types import Screenshot

MergeType = Literal["bfloat16", "float32"]
TOLERANCE: dict[MergeType, float] = {"float32": 1e-3, "bfloat16": 0.25}
"""Largest difference of log-probabilities, in nats. Rounding to bfloat16 keeps eight bits of each weight."""
_LIKELY = 1e-3
_SAID = "Open Settings, then look for Wi-Fi and turn it on."


class Merged(NamedTuple):
    """What was compared, and how far apart it is."""

    dtype: MergeType
    largest: float
    """Largest difference in nats of the log-probability of a token with a probability above 0.001."""
    tolerance: float
    tokens: int
    """Positions that were compared."""


def merge(spec: ModelSpec, folder: Path, dtype: MergeType) -> Merged:
    """Write the base of ``spec`` with its adapter folded in, tokenizer and processor beside it, into ``folder``.

    A base that was in four bits is written as the numbers that these stand for. Raises ConfigError for a base that
    comes quantised or a spec without an adapter, and CheckpointError if the written folder does
    not say the same within ``TOLERANCE``; what was written is then left to the caller to delete.
    """
    if spec.adapter is None:
        raise ConfigError("there is no adapter to merge: this is a whole model already", where=spec.model)
    policy = load_policy(spec.model_copy(update={"dtype": "float32"}))
    if getattr(policy.base.config, "quantization_config", None) is not None:
        raise ConfigError(
            "an adapter can't be merged into a base that comes quantised",
            where=spec.model,
            hint="cuarl model export latest --out FOLDER",
        )
    prompts = _prompts(policy)
    expected = logprobs_of(policy, prompts)
    # what an adapter was trained on is what it is folded into: the numbers that four bits stand for
    dequantise(policy.model, torch.float32)
    merged = policy.model.merge_and_unload(safe_merge=True)
    merged.to(getattr(torch, dtype)).save_pretrained(str(folder))
    policy.save_companions(str(folder))
    del policy, merged
    written = load_policy(
        spec.model_copy(
            update={
                "model": str(folder),
                "revision": None,
                "adapter": None,
                "dtype": "float32",
                "quantization": "none",
            }
        )
    )
    found = logprobs_of(written, prompts)
    largest = float((found - expected)[expected > torch.tensor(_LIKELY).log()].abs().max())
    if not largest <= TOLERANCE[dtype] or [p.ids for p in _prompts(written)] != [p.ids for p in prompts]:
        raise CheckpointError(
            f"the merged model does not say what base and adapter say: they differ by {largest:.2g} nats, "
            f"{TOLERANCE[dtype]:g} is allowed",
            where=f"{spec.adapter}, merged in {dtype}",
            hint="--dtype float32" if dtype == "bfloat16" else None,
        )
    return Merged(dtype, largest, TOLERANCE[dtype], len(expected))


def logprobs_of(policy: Policy, prompts: list[Prompt]) -> torch.Tensor:
    """(N, V) float32 log-probabilities at the N tokens of an answer to every prompt, as the head gives them."""
    answer = policy.encode_answer(_SAID)
    seen: list[torch.Tensor] = []
    hook = policy.base.get_output_embeddings().register_forward_hook(lambda _, __, logits: seen.append(logits))
    try:
        with torch.no_grad():
            Scorer(policy).eval()(policy.collate([Row(*p, answer_ids=answer) for p in prompts]))
    finally:
        hook.remove()
    return torch.log_softmax(torch.cat([s.flatten(0, -2) for s in seen]).float().cpu(), dim=-1)


def _prompts(policy: Policy) -> list[Prompt]:
    """Two short conversations about pictures: one of smooth colours, one of stripes."""
    smooth = Image.merge("RGB", [Image.linear_gradient("L").rotate(a).resize((192, 320)) for a in (0, 90, 180)])
    stripes = Image.new("RGB", (192, 320), "white")
    for y in range(0, 320, 16):
        stripes.paste((40, 8 * y % 256, 120), (8, y, 184, y + 8))
    asked = [
        (Message("user", (Picture(Screenshot(picture)), Text(goal))),)
        for picture, goal in ((smooth, "Turn on Wi-Fi."), (stripes, "Open the settings."))
    ]
    found = [policy.render(m) for m in asked]
    return [p for p in found if isinstance(p, Prompt)]
