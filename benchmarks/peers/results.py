"""A measured side of a cell as a JSON line, and whether two sides did the same."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SIDES = ("trl", "cuarl")
SAME = ("prompts", "prompt_tokens", "answer_tokens", "sequence_tokens", "trained_tokens")
"""What must be equal on both sides."""
_PACKAGES = ("torch", "transformers", "peft", "accelerate", "trl", "datasets")


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """In what two results of one cell are not of the same work."""
    return [f"{name}: {a[name]} and {b[name]}" for name in ("work", *SAME) if a[name] != b[name]]


def surroundings(device: str, commit: str) -> dict[str, Any]:
    """Commit, hardware and versions."""
    return {"commit": commit or current_commit(), "hardware": hardware(device), "versions": versions()}


def current_commit() -> str:
    """Short hash of what is checked out, with ``+`` if files differ from it; "" outside of a repository."""

    def git(*command: str) -> str:
        try:
            done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)
        except FileNotFoundError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    return git("rev-parse", "--short=9", "HEAD") + "+" * bool(git("status", "--porcelain", "--", "cuarl", "benchmarks"))


def hardware(device: str) -> str:
    """The GPU, or the processor with the cores that this process may use."""
    if device == "cuda":
        import torch

        return str(torch.cuda.get_device_name())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores of {_processor()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def versions() -> dict[str, str]:
    """Of Python and the packages that matter, where they are installed."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The lines of all files, in order. Exits with the place of a line that is no result."""
    found: list[dict[str, Any]] = []
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            try:
                result = json.loads(line)
                result["side"], result["work"]["turns"], result["hardware"], result["run"]
            except (ValueError, KeyError, TypeError) as error:
                sys.exit(f"{path}:{number}: no result of the contest ({error})")
            found.append(result)
    return found
