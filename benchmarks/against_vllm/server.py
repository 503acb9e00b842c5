"""``vllm serve`` as a child of the benchmark, which ends with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

NAME = "base"
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}  # fmt: skip
SHOWN = 3000
"""Characters at the end of the log that an error repeats."""


class ServerError(Exception):
    """The server did not do what it was asked for."""


@dataclass(frozen=True)
class Place:
    """Where vLLM is: an interpreter, what it finds beside its own packages, a GPU, and a file for what it says."""

    python: str
    log: Path
    path: str = ""
    gpu: str = "1"
    more: Sequence[str] = ()
    """Further options of ``vllm serve``."""

    def environment(self, gpu: str | None = None) -> dict[str, str]:
        """Of a process of that interpreter; this repository can be imported there, too."""
        here = str(Path(__file__).parents[2])
        path = os.pathsep.join(part for part in (self.path, here) if part)
        return {
            **os.environ,
            **ENVIRONMENT,
            "PYTHONPATH": path,
            "CUDA_VISIBLE_DEVICES": self.gpu if gpu is None else gpu,
        }


@dataclass
class Server:
    """A server that is up."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    limit_s: float
    started_s: float = 0.0
    client: httpx.Client = field(default_factory=httpx.Client)

    def ready(self) -> None:
        """Wait until it answers, and keep how long that took. Raises ServerError if it ends, or takes too long."""
        start = time.perf_counter()
        while (taken := time.perf_counter() - start) < self.limit_s:
            if self.process.poll() is not None:
                raise ServerError(f"vllm ended with status {self.process.returncode}: {tail(self.log)}")
            try:
                self.client.get(f"{self.api}/models", timeout=2.0).raise_for_status()
            except httpx.HTTPError:
                time.sleep(0.2)
            else:
                self.started_s = round(taken, 2)
                return
        raise ServerError(f"vllm is not up after {self.limit_s:.0f} s: {tail(self.log)}")

    def post(self, path: str, body: Any = None, timeout_s: float = 60.0) -> Any:
        """What a route beside the API answers, as JSON if it is any. Raises ServerError with the server's words."""
        try:
            reply = self.client.post(f"{self.url}/{path}", json=body, timeout=timeout_s)
        except httpx.HTTPError as error:
            raise ServerError(f"{path}: {type(error).__name__} {error}; {tail(self.log)}") from error
        if not reply.is_success:
            raise ServerError(f"{path} answered {reply.status_code}: {reply.text[:500]}")
        return reply.json() if reply.content else None

    @property
    def api(self) -> str:
        return f"{self.url}/v1"


def options(dtype: str, tokens: int) -> list[str]:
    """Options that every server of this benchmark has, for contexts of ``tokens``."""
    return [
        "--served-model-name",
        NAME,
        "--dtype",
        dtype,
        "--max-model-len",
        str(tokens),
        "--max-num-seqs",
        "64",
        # in one piece on a CPU: a seeded request whose prompt comes in several ends that build
        "--max-num-batched-tokens",
        str(max(tokens, 16_384)),
        "--logprobs-mode",
        "processed_logprobs",
        "--limit-mm-per-prompt",
        '{"image": 4, "video": 0}',
        "--host",
        "127.0.0.1",
    ]


@contextmanager
def serving(place: Place, model: Path, words: Sequence[str], limit_s: float) -> Iterator[Server]:
    """A server of ``model`` that starts, and may take ``limit_s`` for it (``ready``). Whatever happens, it is ended."""
    port = free_port()
    command = [
        place.python,
        "-m",
        "vllm.entrypoints.cli.main",
        "serve",
        str(model),
        *words,
        *place.more,
        "--port",
        str(port),
    ]
    with place.log.open("ab") as out:
        process = subprocess.Popen(command, env=place.environment(), stdout=out, stderr=out, start_new_session=True)
    try:
        yield Server(f"http://127.0.0.1:{port}", process, place.log, limit_s)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    for sent, patience_s in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue
        if sent is signal.SIGKILL:
            return


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def tail(log: Path) -> str:
    """The end of what the server said."""
    return log.read_text(encoding="utf-8", errors="replace")[-SHOWN:] if log.exists() else ""
