"""vLLM beside the engine in process: ``python -m benchmarks.against_vllm --vllm-python V/bin/python --out FILE``.

A Qwen3-VL of real size with random weights is written to a folder, loaded here on the first GPU, and served by vLLM
on the second; its tokenizer is the shipped one, with as many tokens as the shape has. Both engines are given the same
episodes of ``benchmarks/real_sizes.py``, through the samplers that ``cuarl train`` uses. Every part prints one JSON
line as soon as it is measured; one that fails is told with its error, and the next goes on. What vLLM says goes to
``--log``.

``--tiny`` runs a small model on a CPU, with vLLM's CPU build: figures then mean nothing. Only the transfer of whole
weights needs two GPUs.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import torch

from benchmarks.against_vllm import model
from benchmarks.against_vllm.bench import Bench
from benchmarks.against_vllm.parts import PARTS, back_to_base
from benchmarks.against_vllm.server import Place, ServerError, options, serving
from benchmarks.against_vllm.weights import OPTIONS, weights
from benchmarks.real_sizes import QWEN3
from cuarl.agent.formats import Size
from cuarl.errors import CuarlError
from cuarl.policy.load import load_policy
from cuarl.policy.spec import LoraSpec, ModelSpec

LORA = ("--enable-lora", "--max-lora-rank", "16", "--max-loras", "2")
ASLEEP = ("--enable-sleep-mode",)


class OutOfTime(Exception):
    """A part took longer than it may."""


FAILURES = (
    OutOfTime, ServerError, CuarlError, RuntimeError, ValueError, TypeError, LookupError, AttributeError,
    AssertionError, OSError, subprocess.SubprocessError, httpx.HTTPError, ExceptionGroup,
)  # fmt: skip
"""What a part may fail by without ending the others."""


@dataclass(frozen=True)
class Report:
    """Where measurements go, and how long all of them may take."""

    out: Path | None
    end: float

    def line(self, part: str, found: Mapping[str, Any]) -> None:
        text = json.dumps({"part": part, **found})
        print(text, flush=True)
        if self.out:
            with self.out.open("a", encoding="utf-8") as file:
                file.write(text + "\n")

    @property
    def left_s(self) -> float:
        return self.end - time.monotonic()

    def measured(self, part: str, work: Callable[[], Mapping[str, Any]], limit_s: float) -> None:
        """One part, or why it failed."""
        start = time.perf_counter()
        try:
            with within(min(limit_s, self.left_s)):
                found = work()
        except FAILURES as error:
            traceback.print_exc()
            found = {"error": f"{type(error).__name__}: {error}"[-3500:]}
        self.line(part, {**found, "part_s": round(time.perf_counter() - start, 2)})


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises OutOfTime once ``seconds`` are over."""

    def ring(_: int, __: FrameType | None) -> None:
        raise OutOfTime(f"{seconds:.0f} s were not enough")

    before, start = signal.signal(signal.SIGALRM, ring), time.monotonic()
    outer, _ = signal.setitimer(signal.ITIMER_REAL, max(0.1, seconds))
    try:
        yield
    finally:
        # the limit around this one goes on
        signal.setitimer(signal.ITIMER_REAL, max(0.1, outer - (time.monotonic() - start)) if outer else 0)
        signal.signal(signal.SIGALRM, before)


def with_adapters(args: argparse.Namespace, base: Path, place: Place, report: Report) -> None:
    """The parts that one server with adapters serves; it starts while the model is loaded here."""
    cuda = not args.tiny
    parts = [name for name in PARTS if name in args.parts and (cuda or name != "sleep")]
    words = [*options(args.dtype, args.context), *LORA, *(ASLEEP if cuda and "sleep" in parts else ())]
    with serving(place, base, words, min(args.start_limit, report.left_s)) as starting, ThreadPoolExecutor(1) as beside:
        up = beside.submit(starting.ready)
        spec = ModelSpec(model=str(base), lora=LoraSpec(rank=16), train="adapter", device=args.device)
        start = time.perf_counter()
        policy = load_policy(spec)
        loaded_s = round(time.perf_counter() - start, 2)
        up.result()
        bench = benched(args, policy, starting)
        report.line(
            "start", {"vllm_s": starting.started_s, "load_s": loaded_s, "gib": bench.memory_gib(), **about(args)}
        )
        for name in parts:
            report.measured(name, lambda name=name: PARTS[name](bench), args.part_limit)
            report.measured(f"after {name}", lambda: back_to_base(bench) or {}, 30)


def with_transfer(args: argparse.Namespace, base: Path, place: Place, report: Report) -> None:
    """Whole weights, in a server without adapters: they would wrap the layers that are to be exchanged."""
    words = [*options(args.dtype, args.context), *OPTIONS]
    with serving(place, base, words, min(args.start_limit, report.left_s)) as server:
        server.ready()
        report.line("start for weights", {"vllm_s": server.started_s})
        bench = benched(args, load_policy(ModelSpec(model=str(base), device=args.device)), server)
        report.measured("weights", lambda: weights(bench, place, base, args.device), args.part_limit)


def benched(args: argparse.Namespace, policy: Any, server: Any) -> Bench:
    handed = args.folder / "adapters"
    handed.mkdir(parents=True, exist_ok=True)
    size = Size(128, 256) if args.tiny else Size(1080, 2400)
    return Bench(
        policy,
        server,
        size,
        args.answer_tokens,
        args.folder / "base",
        handed,
        args.gpu,
        args.rows,
        args.row_tokens,
        args.steps,
    )


def about(args: argparse.Namespace) -> dict[str, Any]:
    """What was measured on."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {
        "model": args.model,
        "dtype": args.dtype,
        "device": device,
        "torch": torch.__version__,
        "vllm": list(args.vllm_options),
    }


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [*PARTS, "weights"]
    parser.add_argument("--vllm-python", default=sys.executable, help="interpreter of the environment that vLLM is in")
    parser.add_argument("--vllm-path", default="", help="its PYTHONPATH")
    parser.add_argument(
        "--vllm-options", nargs=argparse.REMAINDER, default=[], help="more options of vllm serve; comes last"
    )
    parser.add_argument("--parts", nargs="+", choices=every, default=every)
    parser.add_argument("--model", choices=list(QWEN3), default="Qwen3-VL-2B")
    parser.add_argument("--tiny", action="store_true", help="a small model on a CPU, to see that it runs")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm/against_vllm"), help="for the model and adapters")
    parser.add_argument("--out", type=Path, help="file to append the JSON lines to, besides standard output")
    parser.add_argument("--log", type=Path, default=Path("vllm.log"))
    parser.add_argument("--limit", type=float, default=3600, help="seconds of the whole")
    parser.add_argument("--part-limit", type=float, default=300, help="seconds of one part")
    parser.add_argument("--start-limit", type=float, default=300, help="seconds until a server is up")
    parser.add_argument("--gpu", default="1", help="vLLM's")
    parser.add_argument("--rows", nargs="+", type=int, default=[16, 64])
    parser.add_argument("--row-tokens", type=int, default=128)
    parser.add_argument("--answer-tokens", type=int, default=32)
    parser.add_argument("--steps", type=int, default=2, help="how many of each step are timed")
    args = parser.parse_args(words)
    args.dtype, args.context, args.device = "bfloat16", 16_384, "cuda:0"
    if args.tiny:
        args.model, args.dtype, args.context, args.device = "tiny-Qwen3-VL", "float32", 4096, "cpu"
        args.rows, args.row_tokens, args.answer_tokens = [2, 4], 8, 4
    return args


def main() -> None:
    args = parsed()
    report = Report(args.out, time.monotonic() + args.limit)
    args.log.write_text("", encoding="utf-8")
    dtype = getattr(torch, args.dtype)
    base = model.write(args.folder / "base", args.model, torch.device(args.device), dtype)
    place = Place(args.vllm_python, args.log, args.vllm_path, args.gpu, args.vllm_options)
    if set(args.parts) & PARTS.keys():
        report.measured("server with adapters", lambda: with_adapters(args, base, place, report) or {}, args.limit)
    if "weights" in args.parts:
        report.measured("server for weights", lambda: with_transfer(args, base, place, report) or {}, args.limit)


if __name__ == "__main__":
    main()
