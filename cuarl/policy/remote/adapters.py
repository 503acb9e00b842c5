"""LoRA adapters put into a server, as vLLM has it: loaded, unloaded, and what to do where it refuses."""

from __future__ import annotations

import re

from cuarl.errors import SamplerError
from cuarl.policy.remote.http import SHOWN, Endpoint
from cuarl.safe_text import loggable

_ALLOW = "vLLM: VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and --enable-lora; cuarl serve: --adapters FOLDER"
_HINTS = (
    (("max_lora_rank", "lora rank"), "vLLM: --max-lora-rank {rank}"),
    (("max_loras", "max-loras"), "vLLM: --max-loras 2"),
    (("tower", "connector", "visual."), "vLLM: --enable-tower-connector-lora; or train without --train-vision"),
    (("no such file", "no adapter found", "does not exist", "permission denied", "not found for", "errno"),
     "the server must see the folder under the same path, and its user must be able to read it: --runs-dir FOLDER"),
)  # fmt: skip
"""Words of a refusal, and what to do about it."""
_GONE = (400, 404)


async def load(endpoint: Endpoint, name: str, path: str) -> None:
    """Have the server load the adapter in ``path`` as ``name``. Raises ``SamplerError`` with the server's own words."""
    reply = await endpoint.adapter("load", {"lora_name": name, "lora_path": path})
    if not reply.is_success:
        raise _refused(endpoint, "load", reply.status_code, reply.text)


async def unload(endpoint: Endpoint, name: str) -> None:
    """Have the server forget an adapter; one that it does not have is as good. Raises ``SamplerError``."""
    reply = await endpoint.adapter("unload", {"lora_name": name})
    if not reply.is_success and reply.status_code not in _GONE:
        raise _refused(endpoint, "unload", reply.status_code, reply.text)


def _refused(endpoint: Endpoint, verb: str, status: int, text: str) -> SamplerError:
    lowered = text.lower()
    hint = next((hint for words, hint in _HINTS if any(word in lowered for word in words)), _ALLOW)
    asked = re.search(r"rank (\d+)", lowered)
    hint = hint.format(rank=asked[1] if asked else "RANK")
    return SamplerError(
        f"the server does not {verb} the adapter ({status}): {loggable(text[:SHOWN])}",
        where=loggable(f"{endpoint.url}/{verb}_lora_adapter"),
        hint=hint,
    )
