"""Scoring and training: all sequences of a batch behind each other, without padding.

The layers are those of the model itself, taken apart as in sampling (``engine``), but with their own weights, adapters
apart and gradients through. Adapters are kept in float32 and multiplied in the base's type; on a float32 base they are
merged for each product (``merged``), on one in four bits never. A prompt that several answers continue is computed
once, as in ``Scorer``; what is not kept for the backward pass is computed again there. Attention is flash attention for
segments where that runs, and elsewhere a call for each prompt and its answers (``branches``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils.checkpoint import checkpoint

from cuarl.policy.nf4.linear import Linear4
from cuarl.policy.qwen_vl import branches, merged
from cuarl.policy.qwen_vl.engine.attention import Segments, causal, segments
from cuarl.policy.qwen_vl.engine.fits import plain_layers
from cuarl.policy.qwen_vl.fused.ops import norm_rotate, rms_norm, swiglu
from cuarl.policy.qwen_vl.inputs import QwenInputs

if TYPE_CHECKING:
    from cuarl.policy.qwen_vl.policy import QwenVLPolicy


def fits(policy: QwenVLPolicy) -> bool:
    """Whether the policy's layers are those that are computed here. Dropout in an adapter is not."""
    if not plain_layers(policy.base.model.language_model, policy.width):
        return False
    dropouts = [d for m in policy.model.modules() if hasattr(m, "lora_dropout") for d in m.lora_dropout.values()]
    return all(isinstance(d, torch.nn.Identity) for d in dropouts)


class Layout(NamedTuple):
    """Where tokens go: N in all.

    ``tokens`` (N,) picks them from the flattened prompts (P, L), then the flattened answers (S, U - 1). ``wanted`` are
    the tokens whose states answers were drawn from, row by row. ``place_of`` (P × L,) is where a prompt's token went.
    ``looked_at`` are the tokens that keys and values are taken from, None for all in their order; where ``calls`` are
    given, attention goes by these instead.
    """

    tokens: torch.Tensor
    wanted: torch.Tensor
    place_of: torch.Tensor
    parts: Segments
    looked_at: torch.Tensor | None
    calls: list[branches.Call] | None = None
    last: Last | None = None


class Last(NamedTuple):
    """What the last layer is run for where ``calls`` are given: of all other tokens only keys and values matter.

    ``rows`` (M,) are the tokens ``wanted``, each once and in their order, and ``of`` (A,) says which of them each is.
    """

    rows: torch.Tensor
    of: torch.Tensor
    calls: list[branches.Call]


def lay_out(inputs: QwenInputs) -> Layout:
    """One segment a prompt, joined by its answer if it has just one; further segments for the answers of the others."""
    behind, device = inputs.behind, inputs.prompt_ids.device
    prompts, width = inputs.prompt_ids.shape
    steps = behind.answer_ids.shape[1] - 1
    lengths: list[int] = inputs.prompt_mask.sum(1).tolist()
    offsets: list[int] = inputs.prompt_mask.int().argmax(1).tolist()
    answers: list[int] = behind.answer_mask.sum(1).tolist()
    of: list[int] = behind.prompt_of.tolist()
    rows_of: list[list[int]] = [[] for _ in range(prompts)]
    for row, p in enumerate(of):
        rows_of[p].append(row)

    tokens: list[range] = []
    looked_at: list[range] = []
    forks: list[tuple[int, list[int]]] = []
    queries: list[int] = []
    keys: list[int] = []
    start_of_prompt = [0] * prompts
    start_of_answer = [0] * len(of)
    count = 0
    for p, rows in enumerate(rows_of):
        first = p * width + offsets[p]
        tokens.append(range(first, first + lengths[p]))
        start_of_prompt[p], count = count, count + lengths[p]
        own = [range(prompts * width + r * steps, prompts * width + r * steps + answers[r] - 1) for r in rows]
        for row, part in zip(rows, own, strict=True):
            start_of_answer[row], count = count, count + len(part)
        tokens += own
        forks.append((lengths[p], [len(part) for part in own]))
        prompt = range(start_of_prompt[p], start_of_prompt[p] + lengths[p])
        joined = [len(own[0])] if len(rows) == 1 else []
        queries += [lengths[p] + sum(joined)]
        keys += queries[-1:]
        looked_at.append(range(prompt.start, prompt.stop + sum(joined)))
        for row, part in zip(rows, own, strict=True) if not joined else ():
            if part:
                queries.append(len(part))
                keys.append(lengths[p] + len(part))
                looked_at += [prompt, range(start_of_answer[row], start_of_answer[row] + len(part))]
    last = [start_of_prompt[p] + lengths[p] - 1 for p in of]
    index = _joined(tokens, device)
    place_of = torch.zeros(prompts * width + len(of) * max(steps, 0), dtype=torch.long, device=device)
    place_of[index] = torch.arange(count, device=device)
    wanted = _wanted(inputs, behind, last, start_of_answer, place_of)
    calls = branches.calls(forks) if device.type == "cpu" else None
    return Layout(
        tokens=index,
        wanted=wanted,
        place_of=place_of,
        parts=segments(queries, keys, device),
        looked_at=_joined(looked_at, device) if sum(keys) != count else None,
        calls=calls,
        last=None if calls is None else _last(wanted, calls),
    )


def _last(wanted: torch.Tensor, calls: Sequence[branches.Call]) -> Last:
    rows, of = wanted.unique(return_inverse=True)
    return Last(rows, of, branches.narrowed(calls, rows.tolist()))


def _wanted(
    inputs: QwenInputs, behind: QwenInputs, last: Sequence[int], start: Sequence[int], place_of: torch.Tensor
) -> torch.Tensor:
    device = place_of.device
    steps = torch.arange(behind.answer_ids.shape[1], device=device)
    first, later = (torch.tensor(x, device=device)[:, None] for x in (last, start))
    places = torch.where(steps == 0, first, later + steps - 1)
    if inputs.packed is None:
        return places[inputs.answer_mask]
    prompts, width = inputs.prompt_ids.shape
    inside = inputs.packed.inside + torch.arange(prompts, device=device)[:, None] * width
    return inputs.packed.gather(places, place_of[inside])


def _joined(ranges: Sequence[range], device: torch.device) -> torch.Tensor:
    return torch.cat([torch.arange(r.start, r.stop) for r in ranges]).to(device, non_blocking=True)


def answer_hidden(policy: QwenVLPolicy, inputs: QwenInputs, *, keep_bytes: int | None) -> torch.Tensor:
    """(A, D): the state from which each of the A real answer tokens was drawn, row by row.

    ``keep_bytes`` bounds the activations kept for the backward pass; None keeps all.
    """
    embedded, deep = policy.embed_prompts(inputs)
    behind, layout = inputs.behind, lay_out(inputs)
    flat, positions = embedded.flatten(0, 1), inputs.prompt_positions.flatten(1)
    if behind.answer_ids.shape[1] > 1:
        flat = torch.cat([flat, policy.decoder.embed(behind.answer_ids[:, :-1]).flatten(0, 1)])
        positions = torch.cat([positions, behind.answer_positions[:, :, :-1].flatten(1)], dim=1)
    hidden = flat.index_select(0, layout.tokens)
    angles = policy.decoder.model.rotary_emb(hidden[None], positions[:, None, layout.tokens])
    rotary = angles[0][0], angles[1][0]
    index = layout.place_of[inputs.vision.index] if inputs.vision is not None else None
    layers = policy.decoder.model.layers
    again, adapters = _recomputed(policy, len(hidden), keep_bytes), adapters_of(policy)
    # what pictures add behind the last layer is added to all tokens
    last = layout.last if deep is None or len(deep) < len(layers) else None
    for i, layer in enumerate(layers):
        run = partial(checkpoint, _layer, use_reentrant=False, preserve_rng_state=False) if i < again else _layer
        hidden = run(layer, adapters[i], hidden, rotary, layout, last if i + 1 == len(layers) else None)
        if deep is not None and i < len(deep):
            hidden = hidden.index_add(0, index, deep[i].to(hidden.dtype))
    norm = policy.decoder.model.norm
    wanted = layout.wanted if last is None else last.of
    return rms_norm(hidden.index_select(0, wanted), norm.weight, norm.variance_epsilon)


def _recomputed(policy: QwenVLPolicy, tokens: int, keep_bytes: int | None) -> int:
    """How many layers keep nothing but their input."""
    layers = policy.decoder.model.layers
    if keep_bytes is None or not torch.is_grad_enabled():
        return 0
    kept = int(keep_bytes // max(1, tokens * layer_bytes(policy)))
    return max(0, len(layers) - kept)


def layer_bytes(policy: QwenVLPolicy) -> int:
    """Bytes a token that a layer keeps for its backward pass, about."""
    config = policy.decoder.model.config
    size = policy.decoder.model.layers[0].self_attn.head_dim
    q, kv = config.num_attention_heads * size, config.num_key_value_heads * size
    # the residuals and their norms; queries, keys and values before and behind rotation, and what came of them;
    # gate, up and their product
    values = 4 * config.hidden_size + 3 * q + 3 * kv + 3 * config.intermediate_size
    return int(values * policy.dtype.itemsize)


def _layer(
    layer: Any,
    adapters: LayerAdapters,
    hidden: torch.Tensor,
    rotary: tuple[torch.Tensor, torch.Tensor],
    layout: Layout,
    last: Last | None,
) -> torch.Tensor:
    """What a layer makes of ``hidden`` (N, D); (M, D) of the tokens of ``last`` alone where that is given."""
    a, m = layer.self_attn, layer.mlp
    before, after = layer.input_layernorm, layer.post_attention_layernorm
    x = rms_norm(hidden, before.weight, before.variance_epsilon)
    angles = rotary
    if last is None:
        q, k, v = _products(x, (a.q_proj, a.k_proj, a.v_proj), adapters.qkv)
    else:
        k, v = _products(x, (a.k_proj, a.v_proj), _only(adapters.qkv, 1, 3))
        hidden, x = hidden.index_select(0, last.rows), x.index_select(0, last.rows)
        angles = rotary[0].index_select(0, last.rows), rotary[1].index_select(0, last.rows)
        (q,) = _products(x, (a.q_proj,), _only(adapters.qkv, 0, 1))
    q, k, v = (t.unflatten(1, (-1, a.head_dim)) for t in (q, k, v))
    q = _turned(q, getattr(a, "q_norm", None), angles)
    k = _turned(k, getattr(a, "k_norm", None), rotary)
    mixed = _attend(q, k, v, layout, a.scaling, last).flatten(1)
    hidden = hidden + _products(mixed, (a.o_proj,), adapters.out)[0]
    x = rms_norm(hidden, after.weight, after.variance_epsilon)
    gate, up = _products(x, (m.gate_proj, m.up_proj), adapters.gate_up)
    return hidden + _products(swiglu(gate, up), (m.down_proj,), adapters.down)[0]


def _turned(heads: torch.Tensor, norm: Any, angles: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    weight = norm.weight if norm is not None else None
    return norm_rotate(heads, weight, *angles, getattr(norm, "variance_epsilon", 0.0))


def _attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layout: Layout, scale: float, last: Last | None
) -> torch.Tensor:
    if last is not None:
        return branches.attend(q, k, v, last.calls, scale)
    if layout.calls is not None:
        return branches.attend(q, k, v, layout.calls, scale)
    if layout.looked_at is not None:
        k, v = k.index_select(0, layout.looked_at), v.index_select(0, layout.looked_at)
    return causal(q, k, v, layout.parts, scale)


class Low(NamedTuple):
    """The adapters of some products of one input: ``down`` (all ranks, in), and of each which product it adds to.

    ``ups`` has the number of the product, the first and last + 1 of its ranks, its (out, rank) factor and its scale.
    """

    down: torch.Tensor
    ups: tuple[tuple[int, int, int, torch.Tensor, float], ...]


def _only(low: Low | None, first: int, end: int) -> Low | None:
    """The adapters of the products ``first`` to ``end`` - 1, numbered anew."""
    ups = [up for up in low.ups if first <= up[0] < end] if low is not None else []
    if low is None or not ups:
        return None
    at = ups[0][1]
    return Low(low.down[at : ups[-1][2]], tuple((i - first, a - at, b - at, up, scale) for i, a, b, up, scale in ups))


class LayerAdapters(NamedTuple):
    """Of one layer, product by product; None where there are none."""

    qkv: Low | None
    out: Low | None
    gate_up: Low | None
    down: Low | None


def adapters_of(policy: QwenVLPolicy) -> list[LayerAdapters]:
    """The active adapters of all layers in the base's type: cast at once, for thousands of small casts take long."""
    groups: list[list[tuple[int, Any, str]]] = []
    for layer in policy.decoder.model.layers:
        a, m = layer.self_attn, layer.mlp
        for modules in ((a.q_proj, a.k_proj, a.v_proj), (a.o_proj,), (m.gate_proj, m.up_proj), (m.down_proj,)):
            groups.append([(i, module, name) for i, module in enumerate(modules) for name in _active(module)])
    downs = _cast([m.lora_A[name].weight for group in groups for _, m, name in group], policy.dtype)
    ups = _cast([m.lora_B[name].weight for group in groups for _, m, name in group], policy.dtype)
    found: list[Low | None] = []
    for group in groups:
        mine = [(next(downs), next(ups), i, m.scaling[name]) for i, m, name in group]
        ends = list(accumulate(len(down) for down, _, _, _ in mine))
        parts = tuple(
            (i, end - len(down), end, up, scale) for (down, up, i, scale), end in zip(mine, ends, strict=True)
        )
        found.append(
            Low(mine[0][0] if len(mine) == 1 else torch.cat([d for d, _, _, _ in mine]), parts) if mine else None
        )
    return [LayerAdapters(*found[i : i + 4]) for i in range(0, len(found), 4)]


def _cast(weights: Sequence[torch.Tensor], dtype: torch.dtype) -> Iterator[torch.Tensor]:
    """Each of ``weights`` in another type, by one cast of them all."""
    if not weights:
        return iter(())
    flat = torch.cat([w.flatten() for w in weights]).to(dtype)
    parts = flat.split([w.numel() for w in weights])
    return (part.view(w.shape) for part, w in zip(parts, weights, strict=True))


def _products(x: torch.Tensor, modules: Sequence[Any], low: Low | None) -> list[torch.Tensor]:
    """What each of some linear layers makes of ``x`` (N, in), adapters included: their first products as one."""
    bases = [getattr(m, "base_layer", m) for m in modules]
    whole = not any(b.weight.requires_grad or isinstance(b, Linear4) for b in bases)
    if low is not None and x.dtype == torch.float32 and whole:
        return merged.products(x, [b.weight for b in bases], [b.bias for b in bases], low.down, low.ups)
    out = [b(x) for b in bases]
    if low is None:
        return out
    narrow = torch.nn.functional.linear(x, low.down)
    for i, start, stop, up, scale in low.ups:
        out[i] = torch.addmm(out[i], narrow[:, start:stop], up.t(), alpha=scale)
    return out


def _active(module: Any) -> list[str]:
    """The adapters that add to a linear layer's product; those that are merged are in its weight."""
    if not hasattr(module, "lora_A") or module.disable_adapters or module.merged:
        return []
    return [name for name in module.active_adapters if name in module.lora_A]
