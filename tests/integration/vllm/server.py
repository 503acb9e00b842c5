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
from types import MappingProxyType
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


class Server:
    """``vllm serve`` over a copy of the shipped base in ``folder``, at one port however often it is started.

    ``generation`` are settings in its ``generation_config.json``.
    """

    def __init__(self, folder: Path, generation: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._model, self._log = folder / "model", folder / "vllm.log"
        shutil.copytree(tiny.path(), self._model)
        about = self._model / "generation_config.json"
        about.write_text(json.dumps({**json.loads(about.read_text(encoding="utf-8")), **generation}), encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> None:
        """Start it, unless it runs; it may not answer yet."""
        if self._process is not None:
            return
        words = [str(COMMAND), "serve", str(self._model), *OPTIONS, "--port", str(self._port)]
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(
                words, env={**os.environ, **ENVIRONMENT}, stdout=out, stderr=out, start_new_session=True
            )

    def wait(self) -> None:
        """Wait until it answers."""
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            assert self._process is not None and self._process.poll() is None, self._said()
            try:
                httpx.get(f"{self.url}/models", timeout=5.0).raise_for_status()
            except httpx.HTTPError:
                time.sleep(1.0)
            else:
                return
        raise AssertionError(f"vllm is not up after {START_S} s: {self._said()}")

    def kill(self) -> None:
        """As a machine that is gone: it and its engine end at once."""
        assert self._process is not None, "it runs"
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        """End it in order, if it runs."""
        if self._process is None:
            return
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None

    def _said(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-3000:]


@contextmanager
def serving(folder: Path, generation: Mapping[str, Any]) -> Iterator[str]:
    """Inside, one answers; yields its URL."""
    server = Server(folder, generation)
    server.start()
    try:
        server.wait()
        yield server.url
    finally:
        server.stop()
