"""A vLLM of one's own (``policy: vllm``): started from another environment for a run, and ended with it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import anyio
import httpx

from cuarl.config.places import VLLMPolicy
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError, PrerequisiteError
from cuarl.safe_text import loggable
from cuarl.workflow.watcher import Note

_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Largest ranks of adapters that vLLM can be told."""
_MODULE = "vllm.entrypoints.cli.main"
_FIND = "import importlib.util, sys; sys.exit(None if importlib.util.find_spec('vllm') else 'there is no vllm')"
"""Importing it would take many seconds."""
_ERROR = re.compile(r"(\(\w+ pid=\d+\) )?[\w.]*Error\b")
"""How a traceback's last line begins, also where vLLM puts the name of its process before it."""
_LOOK_S, _FIND_S, _END_S = 0.5, 120.0, 30.0


def check(config: ExperimentConfig) -> None:
    """See that it could be started. Raises PrerequisiteError for what is missing, ConfigError for a port in use."""
    policy = _options(config)
    _check_rank(config)
    _check_import(_python(policy))
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", policy.port))
        except OSError as error:
            raise ConfigError(
                f"port {policy.port} can't be listened on: {error.strerror}",
                where="--vllm-port",
                hint=f"--vllm-port {policy.port + 1}",
            ) from error


def command(config: ExperimentConfig, model: str) -> list[str]:
    """The command line of ``vllm serve`` for the folder or hub name ``model``."""
    policy = _options(config)
    on_cpu = config.device == "cpu"
    dtype = config.dtype if config.dtype != "auto" else "float32" if on_cpu else "bfloat16"
    words = [_python(policy), "-m", _MODULE, "serve", model, "--host", "127.0.0.1", "--port", str(policy.port)]
    words += ["--served-model-name", Path(config.model_name).name, "--dtype", dtype]
    # a model's own settings of sampling would decide what is left out of a request
    words += ["--generation-config", "vllm", "--logprobs-mode", "processed_logprobs"]
    words += ["--enable-lora", "--max-lora-rank", str(_rank(config)), "--max-loras", "2"]
    words += ["--enable-tower-connector-lora"] if config.train_vision else []
    words += ["--trust-remote-code"] if config.trust_remote_code else []
    words += ["--enable-sleep-mode"] if policy.sleep else []
    words += [] if on_cpu else ["--gpu-memory-utilization", f"{policy.gpu_memory:g}"]
    return [*words, *shlex.split(policy.arguments)]


@asynccontextmanager
async def running(config: ExperimentConfig, model: str, log: Path, note: Note) -> AsyncIterator[None]:
    """Inside, it answers; whatever happens, it ends with this process. What it says is kept in ``log``.

    Raises PrerequisiteError if it does not come up, with its own words.
    """
    policy, began = _options(config), monotonic()
    words = command(config, model)
    note(f"starting vLLM, which may take minutes: {shlex.join(words)}")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "cuarl.policy.remote.keeper", *words],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            env=_environment(policy),
            start_new_session=True,
        )
    try:
        await _up(keeper, policy, log)
        note(f"vLLM answers at {policy.url} after {monotonic() - began:.0f} s")
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_end, keeper)


async def _up(keeper: subprocess.Popen[bytes], policy: VLLMPolicy, log: Path) -> None:
    until = monotonic() + policy.start_seconds
    async with httpx.AsyncClient(timeout=5.0, trust_env=False) as client:
        while monotonic() < until:
            if keeper.poll() is not None:
                raise PrerequisiteError(
                    f"vLLM ended while it started: {_last_words(log)}", where=str(log), hint=f"tail -50 {log}"
                )
            try:
                (await client.get(f"{policy.url}/models")).raise_for_status()
            except httpx.HTTPError:
                await anyio.sleep(_LOOK_S)
            else:
                return
    raise PrerequisiteError(
        f"vLLM did not answer within {policy.start_seconds:g} s",
        where=str(log),
        hint=f"--vllm-start-seconds {2 * policy.start_seconds:g}",
    )


def _end(keeper: subprocess.Popen[bytes]) -> None:
    assert keeper.stdin is not None
    keeper.stdin.close()
    try:
        keeper.wait(_END_S)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()


def _options(config: ExperimentConfig) -> VLLMPolicy:
    assert isinstance(config.policy, VLLMPolicy), "asked for by name"
    return config.policy


_HINT = "python3 -m venv vllm-env && vllm-env/bin/pip install vllm, then --vllm-python vllm-env/bin/python"


def _python(policy: VLLMPolicy) -> str:
    """The interpreter's path. Raises PrerequisiteError."""
    found = shutil.which(Path(policy.python).expanduser())
    if found is None:
        raise PrerequisiteError(f'"{policy.python}" is no program', where="--vllm-python", hint=_HINT)
    # one that is a link stays what it is: by where the link lies it is that environment's
    return str(Path(found).absolute())


def _check_import(python: str) -> None:
    """See that it has vLLM. Raises PrerequisiteError."""
    done = subprocess.run(
        [python, "-c", _FIND], capture_output=True, text=True, timeout=_FIND_S, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        why = loggable((done.stderr.strip().splitlines() or ["no word why"])[-1])
        raise PrerequisiteError(f"{python} can't import vllm: {why}", where="--vllm-python", hint=_HINT)


def _environment(policy: VLLMPolicy) -> Mapping[str, str]:
    own = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True", "VLLM_NO_USAGE_STATS": "1"}
    if policy.sleep:
        own["VLLM_SERVER_DEV_MODE"] = "1"  # else it has no route to be put to sleep by
    if policy.devices is not None:
        own["CUDA_VISIBLE_DEVICES"] = policy.devices
    return {**os.environ, **own}


def _rank(config: ExperimentConfig) -> int:
    return next(rank for rank in _RANKS if rank >= config.lora_rank)


def _check_rank(config: ExperimentConfig) -> None:
    if config.lora_rank > _RANKS[-1]:
        raise ConfigError(
            f"vLLM takes adapters of rank {_RANKS[-1]} at most, not {config.lora_rank}",
            where="--lora-rank",
            hint=f"--lora-rank {_RANKS[-1]}",
        )


def _last_words(log: Path) -> str:
    """The last error in what it said, with the lines behind it: some libraries tell the reason there."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [i for i, line in enumerate(lines) if _ERROR.match(line)] or [len(lines) - 1]
    # its engine ends first, and then what waited for it says that it has
    errors = [i for i in errors if not lines[i].startswith("(APIServer")] or errors
    return loggable(" ".join(lines[errors[-1] :][:3]) or "it said nothing")[:400]
