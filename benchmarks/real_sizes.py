"""A rollout and a LoRA step of models of real size: ``python benchmarks/real_sizes.py --out real.jsonl``.

Qwen2.5-VL-3B and Qwen3-VL-2B, -4B and -8B as their configurations describe them, with random weights made on the GPU in
bfloat16: nothing is downloaded, and time and memory are those of the real models, since they don't depend on what the
weights say. The tokenizer is that of the shipped base; what a random model says can't be read, so every answer counts
as a tap. Four attempts of five turns see a new screenshot of 1080x2400 each turn and up to four of them at a time, then
comes one update with gradient checkpointing. The saved adapter is put on the bare base by PEFT alone and must give the
same logits, and the policy's own forward pass must give those of transformers.

Prints one JSON line a model: seconds and peak memory by phase. Each model has a process of its own. ``--tiny`` runs
small models of the same two families on small screens instead, and so does a machine without a GPU.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import peft
import torch
import transformers
from PIL import Image
from transformers import (
    AutoModelForImageTextToText,
    AutoTokenizer,
    Qwen2_5_VLConfig,
    Qwen2VLImageProcessorPil,
    Qwen3VLConfig,
)

from cuarl.agent import formats
from cuarl.agent.base import Agent
from cuarl.agent.formats import Format, ParsedAction, Size
from cuarl.agent.model import ModelAgent
from cuarl.env.base import Capabilities, Env
from cuarl.policy import tiny
from cuarl.policy.adapters.lora import add_lora
from cuarl.policy.inputs import Row
from cuarl.policy.qwen_vl.images import ImageProcessor
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.qwen_vl.special import special_ids
from cuarl.policy.sampler import Sampler, SamplingParams
from cuarl.policy.sampling.local import LocalSampler
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec
from cuarl.rollout.pool import collect
from cuarl.rollout.setup import Episode, Setup
from cuarl.rollout.spec import EpisodeSpec, Limits, plan
from cuarl.tasks.task import Check, Task, TaskInstance
from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.card import About
from cuarl.train.checkpoint import Checkpoints
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.trajectory import Turn
from cuarl.types import Action, Click, Observation, Screenshot, StepResult

PICTURES, TURNS, ATTEMPTS, ANSWER_TOKENS = 4, 5, 4, 32
OWN_TOLERANCE = 0.25
"""Nats by which the log-probability of a token may differ between our forward pass and that of transformers in
bfloat16."""


# --- the models, as facts ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size3:
    """What differs among the dense Qwen3-VL models."""

    width: int
    layers: int
    heads: int
    mlp: int
    tied: bool
    vision: tuple[int, int, int, int]
    """Width, layers, width of the MLP, heads."""
    deep: tuple[int, ...]
    kv_heads: int = 8
    head_dim: int = 128
    sections: tuple[int, ...] = (24, 20, 20)
    vocabulary: int = 151_936


SMALL_TOWER, LARGE_TOWER = (1024, 24, 4096, 16), (1152, 27, 4304, 16)
QWEN3 = {
    "Qwen3-VL-2B": Size3(2048, 28, 16, 6144, True, SMALL_TOWER, (5, 11, 17)),
    "Qwen3-VL-4B": Size3(2560, 36, 32, 9728, True, SMALL_TOWER, (5, 11, 17)),
    "Qwen3-VL-8B": Size3(4096, 36, 32, 12_288, False, LARGE_TOWER, (8, 16, 24)),
    "tiny-Qwen3-VL": Size3(64, 3, 4, 96, True, (32, 3, 48, 2), (1, 2), 2, 32, (4, 6, 6), 8192),
}
QWEN25 = {
    "Qwen2.5-VL-3B": dict(
        text=dict(
            vocab_size=151_936, hidden_size=2048, intermediate_size=11_008, num_hidden_layers=36,
            num_attention_heads=16,
            num_key_value_heads=2, max_position_embeddings=128_000, rms_norm_eps=1e-6,
            rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=[16, 24, 24]),
        ),
        vision=dict(
            depth=32, hidden_size=1280, intermediate_size=3420, num_heads=16, out_hidden_size=2048, patch_size=14,
            window_size=112, fullatt_block_indexes=[7, 15, 23, 31],
        ),
        tied=True,
    ),
    "tiny-Qwen2.5-VL": dict(
        text=dict(
            vocab_size=8192, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=32_768,
            rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=[2, 3, 3]),
        ),
        vision=dict(
            depth=3, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=64, patch_size=14,
            window_size=56, fullatt_block_indexes=[2],
        ),
        tied=True,
    ),
}  # fmt: skip
REAL = ("Qwen3-VL-2B", "Qwen2.5-VL-3B", "Qwen3-VL-4B", "Qwen3-VL-8B")
TINY = ("tiny-Qwen3-VL", "tiny-Qwen2.5-VL")
PROCESSORS: Mapping[str, Mapping[str, Any]] = {
    "qwen3-vl": dict(
        patch_size=16,
        size={"shortest_edge": 256 * 256, "longest_edge": 4096 * 4096},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    ),
    "qwen2.5-vl": dict(patch_size=14, size={"shortest_edge": 56 * 56, "longest_edge": 12_845_056}),
}
"""The families' own settings; with these a screen of 1080x2400 is 2,550 tokens of Qwen3-VL and 3,354 of Qwen2.5-VL."""


def family(name: str) -> str:
    """The format of a model."""
    return "qwen3-vl" if name in QWEN3 else "qwen2.5-vl"


def configuration(name: str, tokenizer: Any) -> Any:
    """The model's configuration, with the special ids of ``tokenizer``."""
    ids = tokenizer.get_vocab()
    special = {
        f"{field}_token_id": ids[f"<|{token}|>"]
        for field, token in (
            ("image", "image_pad"),
            ("video", "video_pad"),
            ("vision_start", "vision_start"),
            ("vision_end", "vision_end"),
        )
    }
    ends = dict(pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id)
    if name in QWEN25:
        known: Any = QWEN25[name]
        text = known["text"] | ends | {"bos_token_id": None, "tie_word_embeddings": known["tied"]}
        return Qwen2_5_VLConfig(
            text_config=text, vision_config=known["vision"], tie_word_embeddings=known["tied"], **special
        )
    s = QWEN3[name]
    width, layers, mlp, heads = s.vision
    return Qwen3VLConfig(
        text_config=dict(
            vocab_size=s.vocabulary,
            hidden_size=s.width,
            intermediate_size=s.mlp,
            num_hidden_layers=s.layers,
            num_attention_heads=s.heads,
            num_key_value_heads=s.kv_heads,
            head_dim=s.head_dim,
            max_position_embeddings=262_144,
            tie_word_embeddings=s.tied,
            **ends,
            rope_parameters=dict(
                rope_type="default", rope_theta=5e6, mrope_section=list(s.sections), mrope_interleaved=True
            ),
        ),
        vision_config=dict(
            depth=layers,
            hidden_size=width,
            intermediate_size=mlp,
            num_heads=heads,
            out_hidden_size=s.width,
            patch_size=16,
            spatial_merge_size=2,
            temporal_patch_size=2,
            num_position_embeddings=2304,
            deepstack_visual_indexes=list(s.deep),
        ),
        tie_word_embeddings=s.tied,
        **special,
    )


def random_policy(name: str, device: torch.device, rank: int, dtype: torch.dtype | None = None) -> QwenVLPolicy:
    """A policy of that size with random weights and a fresh adapter, put together as ``load_policy`` does."""
    tokenizer = AutoTokenizer.from_pretrained(str(tiny.path()))
    dtype = dtype or (torch.bfloat16 if device.type == "cuda" else torch.float32)
    torch.manual_seed(0)
    with device:
        model = AutoModelForImageTextToText.from_config(
            configuration(name, tokenizer), dtype=dtype, attn_implementation="sdpa"
        )
    model.eval()
    # without a name to load a base from, PEFT would look for one when it saves
    model.name_or_path = name
    return QwenVLPolicy(
        add_lora(model, LoraSpec(rank=rank)),
        tokenizer,
        ImageProcessor(Qwen2VLImageProcessorPil(**PROCESSORS[family(name)])),
        special_ids(model.config, model.generation_config, tokenizer),
        name=name,
    )


# --- the episodes --------------------------------------------------------------------------------------------------


class Slides:
    """A device that shows another picture after each step; half of the devices end up as the task wants it."""

    capabilities = Capabilities(actions=frozenset({"click"}), state=True)

    def __init__(self, number: int, size: Size, grain: int = 1) -> None:
        self.number, self.size, self.grain, self.steps = number, size, grain, 0

    async def reset(self, task: object, seed: int) -> Observation:
        return self._look()

    async def step(self, action: Action) -> StepResult:
        self.steps += 1
        return StepResult(self._look())

    async def state(self) -> dict[str, object]:
        return {"number": self.number % 2 if self.steps else 0}

    async def close(self) -> None:
        pass

    def _look(self) -> Observation:
        # the attempts of a group start on the same screen
        seed = (self.number if self.steps else 0, self.steps)
        return Observation(Screenshot(noise(seed, self.size, self.grain)))


def noise(seed: Sequence[int], size: Size, grain: int = 1) -> Image.Image:
    """A picture of squares of ``grain`` pixels; of single ones nothing is left to compress."""
    small = (-(-size.height // grain), -(-size.width // grain), 3)
    squares = np.random.default_rng(seed).integers(0, 256, small, dtype=np.uint8)
    return Image.fromarray(squares.repeat(grain, 0).repeat(grain, 1)[: size.height, : size.width])


class AnyAnswer:
    """A format in which any text is a tap, at a point that depends on it."""

    def __init__(self, format: Format) -> None:
        self._format = format

    def __getattr__(self, name: str) -> Any:
        return getattr(self._format, name)

    def parse(self, text: str, screen: Size, **_: object) -> ParsedAction:
        at = zlib.crc32(text.encode())
        return ParsedAction(action=Click(x=at % screen.width, y=at // screen.width % screen.height))


def play(
    sampler: Sampler,
    format: Format,
    size: Size,
    answer_tokens: int,
    *,
    attempts: int = ATTEMPTS,
    turns: int = TURNS,
    shown: int = PICTURES,
    first: int = 0,
    grain: int = 1,
) -> Batch:
    """One group of attempts through the runner that ``cuarl train`` uses; ``shown`` pictures at a time.

    Devices are numbered from ``first`` on; those of another number show other pictures after their first, of ``grain``.
    """
    numbers, pictures = iter(range(first, 10**6)), {}
    join = sampler.join if isinstance(sampler, LocalSampler) else nullcontext
    window = format.window.but(history_images=shown, history_turns=shown)
    task = Task(id="slides", description="Turn on Wi-Fi", max_steps=turns, checks=(Check(path="number", value=1),))

    async def make_env(task: TaskInstance) -> Env:
        return Slides(next(numbers), size, grain)

    def make_agent(spec: EpisodeSpec, env: Env) -> Agent:
        # answers of real models differ in length, so the prompts that they become part of are padded
        params = SamplingParams(max_tokens=max(1, answer_tokens - 4 * spec.attempt))
        return ModelAgent(sampler, AnyAnswer(format), params=params, window=window)

    async def save(episode: Episode) -> None:
        pictures.update(episode.pictures)

    async def work() -> Batch:
        setup = Setup(make_env=make_env, make_agent=make_agent, join=join, limits=Limits(max_turns=turns, turn_s=600))
        specs = plan([task], group_size=attempts, run_seed=first, prefix=f"b{first}")
        try:
            return Batch(tuple(await collect(specs, setup, max_concurrent=attempts, save=save)), pictures)
        finally:
            await sampler.close()

    batch = anyio.run(work)
    failed = [t.failure for g in batch.groups for t in g.trajectories if t.failure]
    if failed:
        raise SystemExit(f"{len(failed)} of {attempts} episodes failed: {failed[0]}")
    return batch


# --- what is checked -----------------------------------------------------------------------------------------------


def plain_logits(model: Any, policy: QwenVLPolicy, turn: Turn, batch: Batch) -> torch.Tensor:
    """(T, V) float32 logits from which ``turn`` was drawn, by transformers' own processor and forward pass."""
    assert turn.sampled is not None
    ids = torch.tensor([[*turn.sampled.prompt_ids, *turn.sampled.token_ids]], device=policy.device)
    seen = policy.images.processor(
        images=[batch.pictures[i.digest].image for i in turn.sampled.images], return_tensors="pt"
    )
    inputs = {name: value.to(policy.device) for name, value in seen.items()}
    inputs["pixel_values"] = inputs["pixel_values"].to(policy.dtype)
    if "mm_token_type_ids" in inspect.signature(policy.base.forward).parameters:
        inputs["mm_token_type_ids"] = (ids == policy.special.image).int()
    with torch.no_grad():
        kept = len(turn.sampled.token_ids) + 1
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), logits_to_keep=kept, **inputs).logits
    return logits[0, :-1].float()


def own_difference(policy: QwenVLPolicy, turn: Turn, batch: Batch, logits: torch.Tensor) -> float:
    """Largest difference in nats of a token's log-probability: our forward pass against transformers' ``logits``."""
    sampled = turn.sampled
    assert sampled is not None
    row = Row(sampled.prompt_ids, tuple(batch.pictures[i.digest] for i in sampled.images), sampled.token_ids)
    with torch.no_grad():
        own = Scorer(policy).eval()(policy.collate([row])).logprobs[0]
    allowed = logits.index_fill(1, torch.tensor(policy.special.suppressed, device=logits.device), -torch.inf)
    expected = allowed.log_softmax(1).gather(1, torch.tensor(sampled.token_ids, device=logits.device)[:, None])[:, 0]
    return float((own - expected).abs().max())


def reload(policy: QwenVLPolicy, folder: Path, turn: Turn, batch: Batch) -> dict[str, float]:
    """How far the logits of the policy are from those of the bare base, and of the base with the adapter in
    ``folder``."""
    policy.model.eval()
    trained = plain_logits(policy.model, policy, turn, batch)
    own = own_difference(policy, turn, batch, trained)
    base = policy.model.unload()
    bare = plain_logits(base, policy, turn, batch)
    again = plain_logits(peft.PeftModel.from_pretrained(base, str(folder)).eval(), policy, turn, batch)
    return {
        "reload_logits_diff": float((again - trained).abs().max()),
        "adapter_logits_diff": float((bare - trained).abs().max()),
        "own_logprob_diff": own,
    }


# --- the measurement -----------------------------------------------------------------------------------------------


class Clock:
    """Seconds and peak memory of named phases."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self.seconds: dict[str, float] = {}
        self.peak_gib: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        if self._cuda:
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        yield
        if self._cuda:
            torch.cuda.synchronize()
            self.peak_gib[name] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
        self.seconds[name] = round(time.perf_counter() - start, 2)


def measure(
    name: str, device: torch.device, size: Size, answer_tokens: int, rank: int, activation_gib: float = 0.0
) -> dict[str, Any]:
    """Everything about one model. Raises what training raises, for example for an adapter without a gradient."""
    clock = Clock(device)
    with clock.phase("build"):
        policy = random_policy(name, device, rank)
    # the first calls compile and choose kernels, once a process
    with clock.phase("warm_up"):
        play(LocalSampler(policy), formats.get(family(name)), size, answer_tokens, attempts=2, turns=2)
    with clock.phase("rollout"):
        batch = play(LocalSampler(policy), formats.get(family(name)), size, answer_tokens)
    adapter = sum(p.numel() for p in policy.parameters())
    config = LearnerConfig(
        batch=BatchConfig(max_tokens=8192), gradient_checkpointing=True, activation_gib=activation_gib
    )
    learner = Learner(policy, config)
    with clock.phase("update"):
        learner.begin_step(1)
        metrics = learner.update(batch, 1)
    turns = [t for g in batch.groups for e in g.trajectories for t in e.turns]
    fullest = max(turns, key=lambda t: len(t.sampled.prompt_ids) if t.sampled else 0)
    with tempfile.TemporaryDirectory() as folder:
        with clock.phase("save"):
            saved = Checkpoints(Path(folder), learner, About(run="benchmark", base_model=name)).save(1)
        del learner
        with clock.phase("reload"):
            differences = reload(policy, saved, fullest, batch)
    sampled = [t.sampled for t in turns if t.sampled]
    return {
        "model": name,
        "parameters_b": round(_parameters(name) / 1e9, 3),
        "adapter_m": round(adapter / 1e6, 3),
        "rank": rank,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "peft": peft.__version__,
        "screen": list(size),
        "turns": len(turns),
        "pictures_max": max(len(s.images) for s in sampled),
        "prompt_tokens_max": max(len(s.prompt_ids) for s in sampled),
        "prompt_tokens": sum(len(s.prompt_ids) for s in sampled),
        "answer_tokens": sum(len(s.token_ids) for s in sampled),
        "seconds": clock.seconds,
        "peak_gib": clock.peak_gib,
        "turns_per_s": {p: round(len(turns) / clock.seconds[p], 2) for p in ("rollout", "update") if clock.seconds[p]},
        "grad_norm": metrics["optim/grad_norm"],
        "logprob_diff_mean": metrics["policy/logprob_diff_mean"],
        **differences,
    }


def _parameters(name: str) -> int:
    """Parameters of the base, tied ones once."""
    with torch.device("meta"):
        tokenizer = AutoTokenizer.from_pretrained(str(tiny.path()))
        model = AutoModelForImageTextToText.from_config(configuration(name, tokenizer))
    return sum(p.numel() for p in model.parameters())


def faults(found: Mapping[str, Any]) -> list[str]:
    """What of a measurement is not as it must be."""
    checks: dict[str, Callable[[], bool]] = {
        "no prompt had all the screenshots": lambda: found["pictures_max"] == PICTURES,
        "the adapter changed nothing": lambda: found["adapter_logits_diff"] > 0,
        "the reloaded adapter gives other logits": lambda: (
            found["reload_logits_diff"] <= 1e-3 * max(1.0, found["adapter_logits_diff"])
        ),
        "our forward pass differs from that of transformers": lambda: found["own_logprob_diff"] < OWN_TOLERANCE,
    }
    return [text for text, holds in checks.items() if not holds()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file to append the JSON lines to, besides standard output")
    parser.add_argument("--models", nargs="+", choices=[*REAL, *TINY], help="all four real ones unless named")
    parser.add_argument("--tiny", action="store_true", help="small models on small screens")
    parser.add_argument("--answer-tokens", type=int, default=ANSWER_TOKENS)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--activation-gib", type=float, default=0.0, help="activations kept, on a GPU")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    names = args.models or (TINY if args.tiny or args.device == "cpu" else REAL)
    if len(names) == 1:
        size = Size(108, 240) if names[0] in TINY else Size(1080, 2400)
        found = measure(names[0], torch.device(args.device), size, args.answer_tokens, args.rank, args.activation_gib)
        line = json.dumps(found | {"faults": faults(found)})
        print(line, flush=True)
        if args.out:
            with args.out.open("a") as file:
                file.write(line + "\n")
        raise SystemExit(1 if faults(found) else 0)
    options = ["--answer-tokens", str(args.answer_tokens), "--rank", str(args.rank), "--device", args.device]
    options += ["--activation-gib", str(args.activation_gib)]
    options += ["--out", str(args.out)] if args.out else []
    codes = [subprocess.run([sys.executable, __file__, "--models", name, *options]).returncode for name in names]
    raise SystemExit(max(codes))


if __name__ == "__main__":
    main()
