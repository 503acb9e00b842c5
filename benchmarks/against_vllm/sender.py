"""Sends the weights of a file to a server by vLLM's NCCL transfer; run by the server's interpreter, on another GPU.

``python -m benchmarks.against_vllm.sender URL FILE ROUNDS`` prints one JSON object: seconds of each stage. The
trainer's side of the transfer is vLLM's own code, which is why it is a process of the server's environment.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests
import torch
from safetensors.torch import load_file
from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerSendWeightsArgs, NCCLWeightTransferEngine

from benchmarks.against_vllm.server import free_port

PATIENCE_S = 60


def main(url: str, file: str, rounds: int) -> dict[str, Any]:
    """Join the server's group, and send everything ``rounds`` times."""
    start = time.perf_counter()
    torch.cuda.set_device(0)
    weights = load_file(file, device="cuda:0")
    found: dict[str, Any] = {"load": _since(start), "tensors": len(weights)}
    found["gib"] = round(sum(w.nbytes for w in weights.values()) / 2**30, 3)
    with ThreadPoolExecutor(1) as beside:
        start = time.perf_counter()
        joining = {"master_address": "127.0.0.1", "master_port": free_port(), "world_size": 2}
        joined = beside.submit(_post, url, "init_weight_transfer_engine", {"init_info": {**joining, "rank_offset": 1}})
        group = NCCLWeightTransferEngine.trainer_init(joining)
        joined.result(PATIENCE_S)
        found["join"] = _since(start)
        about = {
            "names": list(weights),
            "dtype_names": [str(w.dtype).split(".")[-1] for w in weights.values()],
            "shapes": [list(w.shape) for w in weights.values()],
            "packed": True,
        }
        found["rounds"] = [_send(url, group, weights, about, beside) for _ in range(rounds)]
    return found


def _send(
    url: str, group: Any, weights: dict[str, torch.Tensor], about: dict[str, Any], beside: Any
) -> dict[str, float]:
    whole = time.perf_counter()
    _post(url, "pause?mode=keep")
    _post(url, "start_weight_update")
    started = time.perf_counter()
    received = beside.submit(_post, url, "update_weights", {"update_info": about})
    NCCLWeightTransferEngine.trainer_send_weights(
        iter(weights.items()), NCCLTrainerSendWeightsArgs(group=group, packed=True)
    )
    torch.cuda.synchronize()
    received.result(PATIENCE_S)
    sent_s = _since(started)
    _post(url, "finish_weight_update")
    _post(url, "resume")
    return {"transfer": sent_s, "whole": _since(whole)}


def _post(url: str, path: str, body: Any = None) -> None:
    reply = requests.post(f"{url}/{path}", json=body, timeout=PATIENCE_S)
    if not reply.ok:
        raise SystemExit(f"{path} answered {reply.status_code}: {reply.text[:500]}")


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 3)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))), flush=True)
