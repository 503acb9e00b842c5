"""Whole weights handed to a server that runs: by NCCL, and what then lies there, tensor by tensor."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from benchmarks.against_vllm import model
from benchmarks.against_vllm.bench import Bench, pictures, timed
from benchmarks.against_vllm.checksums import Checksums, expected
from benchmarks.against_vllm.differences import difference, recorded, scored
from benchmarks.against_vllm.server import Place, Server, ServerError
from cuarl.policy.load import load_policy
from cuarl.policy.spec import ModelSpec

OPTIONS = (
    "--weight-transfer-config",
    '{"backend": "nccl"}',
    "--enforce-eager",
    "--worker-extension-cls",
    f"{Checksums.__module__}.{Checksums.__name__}",
)
_SEND_S = 150


def weights(bench: Bench, place: Place, base: Path, device: str, rounds: int = 3) -> dict[str, Any]:
    """Before the transfer the server has ``base``, after it the moved weights, as checksums and answers tell."""
    moved_s, moved = timed(lambda: model.write_moved(base, base.with_name(f"{base.name}-moved")))
    asked = bench.requests(4, 16)
    found: dict[str, Any] = {"write": round(moved_s, 2), "before": _compared(bench.server, base)}
    found["before"]["mean_apart"] = _apart(bench, base, device, asked)
    if bench.policy.device.type == "cuda":
        found["sent"] = _sent(place, bench.server, moved / "model.safetensors", rounds)
        found["after"] = _compared(bench.server, moved)
        found["after"]["mean_apart"] = _apart(bench, moved, device, asked)
    return found


def _sent(place: Place, server: Server, file: Path, rounds: int) -> dict[str, Any]:
    words = [place.python, "-m", "benchmarks.against_vllm.sender", server.url, str(file), str(rounds)]
    done = subprocess.run(words, env=place.environment("0"), capture_output=True, text=True, timeout=_SEND_S)
    if done.returncode:
        raise ServerError(f"the sender failed: {done.stdout[-500:]} {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _compared(server: Server, folder: Path) -> dict[str, Any]:
    """What the server has against the file of ``folder``: how many tensors are equal, and which are not."""
    seconds, reply = timed(lambda: server.post("collective_rpc", {"method": "cuarl_checksums"}))
    there, ours = reply["results"][0], expected(load_file(str(folder / "model.safetensors")))
    other = sorted(name for name in there if there[name] != ours.get(name))
    return {
        "tensors": len(there),
        "equal": len(there) - len(other),
        "other": other[:5],
        "not_there": sorted(ours.keys() - there.keys())[:5],
        "checksums_s": round(seconds, 2),
    }


def _apart(bench: Bench, folder: Path, device: str, asked: Any) -> float:
    """Mean difference in nats of what the server answers from what the weights in ``folder`` give here."""
    # screens seen by the weights before are kept, too
    for known in ("reset_prefix_cache", "reset_mm_cache", "reset_encoder_cache"):
        bench.server.post(known)
    answers = bench.answers("vllm", asked)
    policy = load_policy(ModelSpec(model=str(folder), device=device))
    return float(difference(recorded(answers), scored(policy, answers, pictures(asked)))["mean"])
