"""``vllm serve`` as a process, over a copy of the shipped base."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from cuarl.policy import tiny

COMMAND = Path(os.environ.get("CUARL_TEST_VLLM", Path(sys.prefix) / "vllm")) / "bin" / "vllm"
START_S = 600
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
}  # fmt: skip
OPTIONS = (
    "--served-model-name", "base", "--dtype", "float32", "--max-model-len", "2048", "--enforce-eager",
    "--max-num-seqs", "64",
    # in one piece: a seeded request whose prompt comes in several ends the CPU build
    "--max-num-batched-tokens", "32768", "--enable-lora", "--max-lora-rank", "16", "--enable-scale-out",
    "--logprobs-mode", "processed_logprobs", "--host", "127.0.0.1",
)  # fmt: skip


@contextmanager
def serving(folder: Path, generation: Mapping[str, Any]) -> Iterator[str]:
    """Serve the shipped base with these settings in its ``generation_config.json``; yields the URL."""
    model = folder / "model"
    shutil.copytree(tiny.path(), model)
    about = model / "generation_config.json"
    about.write_text(json.dumps({**json.loads(about.read_text(encoding="utf-8")), **generation}), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "vllm.log"
    with log.open("wb") as out:
        words = [str(COMMAND), "serve", str(model), *OPTIONS, "--port", str(port)]
        process = subprocess.Popen(
            words, env={**os.environ, **ENVIRONMENT}, stdout=out, stderr=out, start_new_session=True
        )
        try:
            url = f"http://127.0.0.1:{port}/v1"
            _await(url, process, log)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")[-3000:]
        try:
            httpx.get(f"{url}/models", timeout=5.0).raise_for_status()
        except httpx.HTTPError:
            time.sleep(1.0)
        else:
            return
    raise AssertionError(
        f"vllm is not up after {START_S} s: {log.read_text(encoding='utf-8', errors='replace')[-3000:]}"
    )
