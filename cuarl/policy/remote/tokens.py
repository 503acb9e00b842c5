"""Token in, token out: ``POST /inference/v1/generate``, as vLLM has it (0.32: with ``--enable-scale-out``).

The prompt goes as ids, so an earlier answer stands in it as it was sampled, whatever a tokenizer would make of its
text. A picture is one placeholder, which the server expands; placeholders that are expanded already would be expanded
again without a word, so the reply's ids of the prompt are compared with ours. The reply says, too, which of the
server's weights sampled which tokens: an answer of two is of no policy that is known here. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from cuarl.errors import SamplerError
from cuarl.policy.prompt import Prompt, Renderer
from cuarl.policy.remote.wire import (
    BIAS,
    NEUTRAL,
    NEVER,
    EndpointFeatures,
    Outgoing,
    data_uri,
    exact_logprobs,
    stop_of,
)
from cuarl.policy.sampler import SampleRequest
from cuarl.policy.special import SpecialIds
from cuarl.trajectory import Sampled


def unexpanded(ids: Sequence[int], image: int) -> list[int]:
    """``ids`` with one placeholder for each picture."""
    return [b for a, b in pairwise([-1, *ids]) if not a == b == image]


def weight_versions(body: Any) -> list[str]:
    """Names of the server's weights that sampled the spans of the answer, in order; empty where it doesn't tell."""
    try:
        return [str(span["version"]) for span in body["choices"][0].get("weight_versions") or ()]
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise SamplerError("the reply's weight versions can't be read", where=str(body)[:200]) from error


def generate_body(
    prompt: Prompt, request: SampleRequest, model: str, features: EndpointFeatures, out: Outgoing, special: SpecialIds
) -> dict[str, Any]:
    """The JSON body that asks for one answer to a rendered prompt."""
    params = request.params
    sampling: dict[str, Any] = {name: value for name, value in NEUTRAL.items() if name not in features.left_out}
    sampling |= {
        "temperature": params.temperature,
        "top_p": params.top_p,
        "top_k": params.top_k or features.top_k_off,
        "max_tokens": params.max_tokens,
        "seed": request.seed % (1 << 63),
        "logprobs": 0,
        "stop_token_ids": sorted(special.eos),
    }
    if out.suppressed and BIAS not in features.left_out:
        sampling[BIAS] = {str(i): NEVER for i in out.suppressed}
    body: dict[str, Any] = {
        "model": model,
        "token_ids": unexpanded(prompt.ids, special.image),
        "sampling_params": sampling,
        "return_token_ids": True,
    }
    shown = [out.shown(s) if out.shown else s for s in prompt.screenshots]
    if shown:
        body["content_parts"] = [{"type": "image_url", "url": data_uri(s, out.encoding)} for s in shown]
    return body


def read_generated(
    body: Any, prompt: Prompt, request: SampleRequest, features: EndpointFeatures, renderer: Renderer
) -> Sampled:
    """The sample in a reply, its policy still to be named. Raises ``SamplerError`` if it is none."""
    try:
        choice = body["choices"][0]
        ids, finish = tuple(map(int, choice["token_ids"])), choice["finish_reason"]
        told = [float(one["logprob"]) for one in (choice.get("logprobs") or {}).get("content") or ()]
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise SamplerError("the reply is no generated tokens", where=str(body)[:200]) from error
    if told and len(told) != len(ids):
        raise SamplerError(f"the reply has {len(ids)} token ids but {len(told)} log-probabilities")
    prompt_ids, one_policy = tuple(body.get("prompt_token_ids") or ()), len(set(weight_versions(body))) <= 1
    return Sampled(
        prompt_ids=prompt_ids,
        images=tuple(s.ref for s in prompt.screenshots),
        token_ids=ids,
        logprobs=tuple(told) if told and exact_logprobs(request.params, features) else None,
        text=renderer.decode(ids),
        stop=stop_of(finish, None),
        temperature=request.params.temperature,
        exact=bool(ids) and prompt_ids == prompt.ids and one_policy,
    )
