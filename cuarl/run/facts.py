"""Facts about the code and the machine that a manifest keeps. None of them is worth failing a run for."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import cuarl
from cuarl.run.manifest import Code, Machine

PACKAGES = (
    "torch", "transformers", "peft", "accelerate", "tokenizers", "safetensors", "numpy", "pillow", "pydantic",
    "sqlalchemy", "httpx", "anyio",
)  # fmt: skip


def code() -> Code:
    """Version of cuarl, and commit and cleanliness where it runs from a checkout."""
    commit = _git("rev-parse", "HEAD")
    dirty = bool(_git("status", "--porcelain")) if commit else None
    return Code(version=cuarl.__version__, commit=commit, dirty=dirty)


def difference() -> str | None:
    """What the checkout has that its commit has not, as a patch."""
    return _git("diff", "HEAD")


def machine() -> Machine:
    """Interpreter, operating system, processors and the packages that decide results."""
    return Machine(
        python=platform.python_version(),
        platform=platform.platform(),
        cpus=os.cpu_count() or 1,
        gpus=gpus(),
        packages={name: version for name in PACKAGES if (version := package_version(name))},
    )


def package_version(name: str) -> str | None:
    """Installed version of a distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def gpus() -> tuple[str, ...]:
    """Name and driver of each NVIDIA GPU; asks the driver's own tool, since importing torch takes seconds."""
    tool = shutil.which("nvidia-smi")
    text = _output([tool, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]) if tool else None
    return tuple(line.strip() for line in text.splitlines() if line.strip()) if text else ()


def resident_gib() -> float | None:
    """Memory of this process that is in use now, GiB; None where the system has no /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**30


def _git(*arguments: str) -> str | None:
    folder = Path(cuarl.__file__).parents[1]
    # an installed package inside somebody else's repository is not that repository
    if not (folder / ".git").exists():
        return None
    return _output(["git", "-C", str(folder), *arguments])


def _output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
