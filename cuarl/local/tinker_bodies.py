"""What clients of Tinker send, as far as the stand-in reads it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, Field
from tinker.proto import tinker_public_pb2 as pb

from cuarl.policy.inputs import Row
from cuarl.policy.prompt import Prompt
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.transformers_policy import TransformersPolicy
from cuarl.types import Screenshot

CONTEXT = 8192
Number = Annotated[float, Field(allow_inf_nan=False)]
Sequence_ = Annotated[int, Field(ge=0, lt=1 << 31)]
LOSSES = {
    "cross_entropy": ("weights",),
    **dict.fromkeys(("importance_sampling", "ppo", "cispo"), ("advantages", "logprobs")),
}
"""Losses, and what each needs of every token beside its target."""
DTYPES = {pb.DTYPE_FLOAT32: np.float32, pb.DTYPE_INT64: np.int64}


class Lora(BaseModel):
    rank: int = Field(8, ge=1, le=64)
    seed: int | None = Field(None, ge=0, lt=1 << 63)


class CreateModel(BaseModel):
    session_id: str
    model_seq_id: Sequence_
    lora_config: Lora = Lora()


class OfModel(BaseModel):
    model_id: str


class Ordered(OfModel):
    seq_id: Sequence_


class Adam(BaseModel):
    learning_rate: Number = Field(ge=0, le=1)
    beta1: Number = Field(ge=0, lt=1)
    beta2: Number = Field(ge=0, lt=1)
    eps: Number = Field(gt=0)
    weight_decay: Number = Field(ge=0, le=1)
    grad_clip_norm: Number = Field(ge=0)


class OptimStep(Ordered):
    adam_params: Adam


class SaveWeights(Ordered):
    path: str


class SaveForSampler(Ordered):
    path: str | None = None


class LoadWeights(BaseModel):
    """Into a model that is there, or into a new one of a session."""

    path: str
    optimizer: bool
    model_id: str | None = None
    seq_id: Sequence_ | None = None
    session_id: str | None = None
    model_seq_id: Sequence_ | None = None

    @property
    def into(self) -> str:
        return self.model_id or f"{self.session_id}:train:{self.model_seq_id}"


class SamplingSession(BaseModel):
    model_path: str | None = None


class Chunk(BaseModel):
    type: Literal["encoded_text", "image"]
    tokens: list[int] = []
    data: str = ""
    expected_tokens: int | None = None


class ModelInput(BaseModel):
    chunks: list[Chunk]


class Params(BaseModel):
    max_tokens: int = Field(ge=1, le=CONTEXT)
    temperature: Number = 1.0
    top_p: Number = 1.0
    top_k: int = -1
    seed: int | None = Field(None, ge=0, lt=1 << 63)

    def made(self) -> tuple[SamplingParams, int]:
        params = SamplingParams(
            temperature=self.temperature, top_p=self.top_p, top_k=max(0, self.top_k), max_tokens=self.max_tokens
        )
        return params, self.seed or 0


class Sample(BaseModel):
    prompt: ModelInput
    sampling_params: Params
    sampling_session_id: str
    num_samples: int = Field(1, ge=1, le=16)
    prompt_logprobs: bool | None = None
    prompt_logprobs_last_n: int | None = Field(None, ge=1)


class Retrieve(BaseModel):
    request_id: str


def read_prompt(chunks: Sequence[Mapping[str, Any]], policy: TransformersPolicy, room: int = 0) -> Prompt:
    """The prompt of a model's input, with ``room`` for so many tokens. Raises ValueError."""
    ids: list[int] = []
    screens: list[Screenshot] = []
    for chunk in chunks:
        if chunk["type"] == "encoded_text":
            ids += _text(chunk["tokens"], policy)
            continue
        data = chunk["data"]
        screen = Screenshot.decode(base64.b64decode(data) if isinstance(data, str) else data)
        tokens = policy.picture_tokens(screen.width, screen.height)
        if tokens != chunk["expected_tokens"]:
            raise ValueError(f"a picture of {tokens} tokens, of which {chunk['expected_tokens']} were expected")
        ids += [policy.special.image] * tokens
        screens.append(screen)
    if not 0 < len(ids) <= CONTEXT - room:
        raise ValueError(f"{len(ids)} tokens and room for {room} more, of {CONTEXT}")
    return Prompt(tuple(ids), tuple(screens))


def scored_row(prompt: Prompt, last: int | None, policy: TransformersPolicy) -> Row:
    """The prompt as what is scored of it, its ``last`` tokens (None: all but the first), and what stands before.

    Raises ValueError for pictures among these: they have no probability.
    """
    count = len(prompt.ids) - 1 if last is None else last
    if not 1 <= count < len(prompt.ids):
        raise ValueError(f"prompt_logprobs_last_n {count} of {len(prompt.ids)} tokens")
    before, scored = prompt.ids[:-count], prompt.ids[-count:]
    if policy.special.image in scored:
        raise ValueError("pictures have no log-probability: ask for the tokens behind them (prompt_logprobs_last_n)")
    return Row(before, prompt.screenshots, scored)


def _text(tokens: Sequence[int], policy: TransformersPolicy) -> Sequence[int]:
    vocabulary = policy.model.get_input_embeddings().num_embeddings
    if not all(0 <= token < vocabulary and token != policy.special.image for token in tokens):
        raise ValueError("tokens that are no text of this model's")
    return tokens


@dataclass
class DatumRow:
    """One example: what is scored, and the inputs of the loss for it."""

    row: Row
    inputs: dict[str, torch.Tensor]
    """Of the positions from ``idle`` on."""
    idle: int


def read_data(message: Any, policy: TransformersPolicy) -> list[DatumRow]:
    """The examples of a ``ForwardBackwardRequest``. Raises ValueError."""
    if message.loss_fn not in LOSSES:
        raise ValueError(f"there is no loss {message.loss_fn[:40]!r}, but {', '.join(LOSSES)}")
    return [_read_datum(datum, policy, LOSSES[message.loss_fn]) for datum in message.data]


def _read_datum(datum: Any, policy: TransformersPolicy, needed: Sequence[str]) -> DatumRow:
    chunks: list[dict[str, Any]] = []
    for chunk in datum.model_input:
        if chunk.HasField("image"):
            image = chunk.image
            chunks.append({"type": "image", "data": image.data, "expected_tokens": image.expected_tokens})
        else:
            tokens = np.frombuffer(chunk.encoded_text.tokens, np.int32).tolist()
            chunks.append({"type": "encoded_text", "tokens": tokens})
    prompt = read_prompt(chunks, policy)
    inputs = {name: np.frombuffer(t.dense, DTYPES[t.dtype]).copy() for name, t in datum.loss_fn_inputs.items()}
    for name in ("target_tokens", *needed):
        if len(inputs[name]) != len(prompt.ids) or not np.all(np.isfinite(inputs[name])):
            raise ValueError(f"{name}: no finite number for each of {len(prompt.ids)} tokens")
    active = inputs[needed[0]]
    idle = int(np.flatnonzero(active)[0]) if np.any(active) else len(prompt.ids) - 1
    targets = inputs["target_tokens"][idle:].astype(np.int64)
    if list(targets[:-1]) != list(prompt.ids[idle + 1 :]):
        raise ValueError("the targets are not the inputs, shifted by one")
    _text([int(targets[-1])], policy)
    row = Row(prompt.ids[: idle + 1], prompt.screenshots, tuple(int(t) for t in targets))
    return DatumRow(row, {name: torch.from_numpy(v[idle:]) for name, v in inputs.items()}, idle)
