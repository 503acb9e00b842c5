"""Where the policy is sampled from, and where it is trained: the records of ``policy`` and ``trainer``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from cuarl.config.fields import Choice


class PolicyOptions(Choice):
    """The options of what is sampled from."""

    bare = True


class LocalPolicy(PolicyOptions):
    """The options of ``policy: local``: the model, sampled where it is trained."""

    type: Literal["local"] = "local"
    sampler_device: Annotated[str, Field(pattern=r"^(cpu|mps|cuda(:\d+)?)$")] | None = None
    """Where a second copy of the model samples training episodes; unset: where it is trained. See
    docs/guides/off-policy.md."""
    kv_cache_gib: PositiveFloat | None = None
    """GiB of keys and values that sampling may keep, over turns too; unset: half of a GPU's free memory, 2 on a CPU."""


class OpenAIPolicy(PolicyOptions):
    """The options of ``policy: openai``: a model behind an OpenAI-compatible server."""

    flags = MappingProxyType({"base_url": "model_base_url"})
    implied_by = frozenset({"base_url"})

    type: Literal["openai"] = "openai"
    base_url: str | None = None
    """URL of an OpenAI-compatible server that the policy is sampled from, such as http://localhost:8000/v1; or of
    several that serve the same model, with commas between."""
    served_model_name: str | None = None
    """What that server calls the model; unset means the only one it serves, else model_name."""
    rescore: bool = False
    """Train on what that server can't give exactly: answers tokenised anew, their log-probabilities recomputed here."""
    keep_adapters: bool = False
    """Keep the adapter of every step that the server was given, so that rollout verify can prove every turn."""


class VLLMPolicy(PolicyOptions):
    """The options of ``policy: vllm``: a vLLM that is started for a training run, and ends with it."""

    flags = MappingProxyType(
        {
            "python": "vllm_python",
            "port": "vllm_port",
            "devices": "vllm_devices",
            "gpu_memory": "vllm_gpu_memory",
            "sleep": "vllm_sleep",
            "arguments": "vllm_args",
            "start_seconds": "vllm_start_seconds",
        }
    )
    implied_by = frozenset({"python"})

    type: Literal["vllm"] = "vllm"
    python: str = "python"
    """The interpreter of an environment that vLLM is installed in, its own: vLLM pins another torch than yours."""
    port: Annotated[int, Field(ge=1, le=65535)] = 8017
    """Where vLLM listens, on this machine alone."""
    devices: Annotated[str, Field(pattern=r"^\d+(,\d+)*$")] | None = None
    """GPUs that vLLM may use, by number, such as 1; unset: those that this process sees."""
    gpu_memory: Annotated[float, Field(gt=0, le=1)] = 0.45
    """Share of its GPU's memory that vLLM takes, weights included. Where training has another GPU, take 0.9."""
    sleep: bool = False
    """Have vLLM give its memory back while this process trains: for one GPU that both take in turn. vllm_gpu_memory is
    then what it takes while it samples."""
    arguments: str = ""
    """Further arguments of vllm serve, as one would type them, such as --max-model-len 16384."""
    start_seconds: PositiveFloat = 900.0
    """How long vLLM may take to start."""
    keep_adapters: bool = False
    """Keep the adapter of every step that the server was given, so that rollout verify can prove every turn."""

    @property
    def url(self) -> str:
        """Where it is to be found."""
        return f"http://127.0.0.1:{self.port}/v1"


class TrainerOptions(Choice):
    """The options of what trains."""


class LocalTrainer(TrainerOptions):
    """The options of ``trainer: local``: this process, or several on this machine."""

    bare = True

    type: Literal["local"] = "local"
    gradient_checkpointing: bool = False
    """Trade a third more computing for much less activation memory."""
    activation_gib: NonNegativeFloat = 0.0
    """With gradient_checkpointing: GiB of activations to keep all the same, which need not be computed
    again."""
    micro_batch_tokens: PositiveInt = 8192
    """Most tokens, padding included, of one forward and backward pass."""
    pack_turns: bool = True
    """Compute turns that extend one another as one sequence: the same loss, each token computed once. Only a history of
    earlier answers makes turns extend one another."""


class TinkerTrainer(TrainerOptions):
    """The options of ``trainer: tinker``: the Tinker service, which samples, too."""

    type: Literal["tinker"] = "tinker"
    loss: Literal["ppo", "importance_sampling", "cispo"] = "ppo"
    """Policy loss that Tinker computes: clipped, not clipped, or with clipped weights."""


POLICIES: Mapping[str, type[PolicyOptions]] = MappingProxyType(
    {"local": LocalPolicy, "openai": OpenAIPolicy, "vllm": VLLMPolicy}
)
TRAINERS: Mapping[str, type[TrainerOptions]] = MappingProxyType({"local": LocalTrainer, "tinker": TinkerTrainer})
