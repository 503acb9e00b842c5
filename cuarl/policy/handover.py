"""Adapters handed over to a server by way of a folder that both can read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from cuarl.policy.adapters.files import expected_shapes, write
from cuarl.policy.adapters.lora import add_lora
from cuarl.policy.load import on_meta
from cuarl.policy.spec import ModelSpec

_FILE, _FOLDER = 0o644, 0o755
"""A server may run as another user; files are written for their owner alone by default."""


def publish(model: Any, folder: Path) -> None:
    """Write ``model``'s adapter into ``folder``, for every user to read. Raises CheckpointError, OSError."""
    write(model, folder)
    make_readable(folder)


def make_readable(folder: Path) -> None:
    """Let every user read what is in ``folder``. Folders above it are left as they are."""
    folder.chmod(_FOLDER)
    for path in folder.rglob("*"):
        path.chmod(_FOLDER if path.is_dir() else _FILE)


@contextmanager
def trial_adapter(spec: ModelSpec, parent: Path) -> Iterator[Path]:
    """A folder in ``parent`` with an adapter like the one that ``spec`` trains, which is gone afterwards.

    A fresh one is all zeros, so that it changes nothing; no weights of the model are read for it. Raises as
    ``load_policy`` does.
    """
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".adapter-", dir=parent)).resolve()
    try:
        if spec.adapter is not None:
            shutil.copytree(Path(spec.adapter).expanduser(), folder, dirs_exist_ok=True, ignore=_beside_an_adapter)
        else:
            _write_zeros(spec, folder)
        make_readable(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _beside_an_adapter(_: str, names: list[str]) -> list[str]:
    """What lies beside an adapter in a checkpoint, and is none of a server's business."""
    return [name for name in names if not name.startswith("adapter_")]


def _write_zeros(spec: ModelSpec, folder: Path) -> None:
    assert spec.lora is not None, "there is an adapter to load, or one to make"
    wrapped = add_lora(on_meta(spec), spec.lora)
    weights = {name: torch.zeros(shape) for name, shape in expected_shapes(wrapped).items()}
    save_file(weights, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    wrapped.peft_config["default"].save_pretrained(str(folder))
