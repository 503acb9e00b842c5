"""Which checkpoints a run has, and which of them it is resumed from. Weights are not loaded here.

::

    checkpoints/
      latest.json             {"step": 100}: the newest checkpoint whose step is over
      latest -> step-000100   the same for people and for other tools
      step-000100/            the model, or where Tinker keeps it
      trainer/step-000100/    state.pt: what training needs besides; pending.json: metrics that are still to be reported

A link is left out, or becomes a copy of its folder, where a run is copied by a tool that knows no links. So the file is
what counts; the link is believed in runs that have none, and else the newest checkpoint that is whole is taken.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from cuarl import strict_json
from cuarl.errors import CheckpointError
from cuarl.run.atomic import point, write_text

POINTER = "tinker.json"
"""In a checkpoint's folder: where Tinker keeps the weights."""
LATEST = "latest"
_MARK = "latest.json"
_PENDING = "pending.json"
_STEP = re.compile(r"step-(\d{6,})")


class Found(NamedTuple):
    """A checkpoint to resume from."""

    step: int
    note: str = ""
    """Why it is another than the one that was marked; empty if it is that."""


def step_name(step: int) -> str:
    """Name of a checkpoint's folder: ``step-000100``."""
    return f"step-{step:06d}"


def saved_steps(root: Path) -> list[int]:
    """Steps of the checkpoints in ``root``, committed or not, oldest first."""
    found = (_STEP.fullmatch(p.name) for p in root.iterdir() if p.is_dir()) if root.is_dir() else ()
    return sorted(int(m[1]) for m in found if m)


def mark(root: Path, step: int) -> None:
    """Make ``step`` the one to resume from. Step 0 says that nothing saved so far counts."""
    root.mkdir(parents=True, exist_ok=True)
    write_text(root / _MARK, json.dumps({"step": step}) + "\n")
    if step:
        point(root / LATEST, step_name(step))


def marked_step(root: Path) -> int | None:
    """The step that is marked by file, by link, or by the copy of a folder that a link became; None if nothing is."""
    link = root / LATEST
    for file in (root / _MARK, *((link / name for name in ("cuarl.json", POINTER)) if not link.is_symlink() else ())):
        try:
            return int(json.loads(file.read_text(encoding="utf-8"))["step"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    match = _STEP.fullmatch(link.readlink().name) if link.is_symlink() else None
    return int(match[1]) if match else None


def newest(root: Path, *, state: bool = True, finished: int = 0) -> Found | None:
    """The checkpoint to resume from; None where none was committed yet.

    Without ``state`` it need not have what training needs besides the model. ``finished`` says how many steps the run
    is known to have done: with any, checkpoints must be there. Raises CheckpointError for those that are missing or
    damaged.
    """
    marked, saved = marked_step(root), saved_steps(root)
    if marked is not None and marked in saved and (fault := _fault(root, marked, state=state)):
        raise CheckpointError(
            f"the newest checkpoint is not whole: {fault}",
            where=str(root / step_name(marked)),
            hint=f"copy it again, or go back to an older one: mv {root / step_name(marked)} {root}/damaged",
        )
    candidates = [step for step in reversed(saved) if marked is None or step <= marked]
    faults = {step: _fault(root, step, state=state) for step in candidates}
    whole = next((step for step in candidates if not faults[step]), None)
    if whole is not None:
        return Found(whole, "" if whole == marked else _why(marked, whole))
    if candidates:
        raise CheckpointError(
            f"none of {len(candidates)} checkpoints is whole; step {candidates[0]}: {faults[candidates[0]]}",
            where=str(root),
            hint="copy the run's checkpoints again",
        )
    lost = finished if marked is None else marked
    if lost:
        raise CheckpointError(
            f"the run has done {lost} steps, and none of its checkpoints is here",
            where=str(root),
            hint="copy the run with its folder checkpoints/, or begin anew under another --name",
        )
    return None


def keep_pending(folder: Path, metrics: Mapping[str, float] | None) -> None:
    """Note in a ``folder`` of a checkpoint which metrics of its step are still to be reported; None: none are."""
    if metrics is None:
        (folder / _PENDING).unlink(missing_ok=True)
    else:
        write_text(folder / _PENDING, strict_json.dumps_exact(dict(metrics), indent=2) + "\n")


def read_pending(folder: Path) -> dict[str, float] | None:
    """What ``keep_pending`` has noted there. Raises OSError or ValueError if it can't be read."""
    path = folder / _PENDING
    if not path.exists():
        return None
    return {name: float(value) for name, value in strict_json.reply(path.read_text(encoding="utf-8")).items()}


def _why(marked: int | None, step: int) -> str:
    what = (
        "nothing says which checkpoint is the newest" if marked is None else f"the checkpoint of step {marked} is gone"
    )
    return f"{what}: resuming from step {step}, the newest that is whole"


# --- what is whole -------------------------------------------------------------------------------------------------


def _fault(root: Path, step: int, *, state: bool) -> str:
    """What is wrong with the checkpoint of ``step``; empty if nothing can be seen without loading it."""
    folder = root / step_name(step)
    if (folder / POINTER).is_file():
        return ""
    file = root / "trainer" / step_name(step) / "state.pt"
    return next(_model_faults(folder), "") or (_state_fault(file) if state else "")


def _model_faults(folder: Path) -> Iterator[str]:
    wanted = {"cuarl.json"}
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            wanted |= set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError) as error:
            yield f"{index.name} can't be read: {error}"
    yield from (f"{name} is missing" for name in sorted(wanted) if not (folder / name).is_file())
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        yield "its weights are missing"
    yield from (f"{file.name} is cut off or damaged" for file in weights if not _is_complete(file))


def _is_complete(file: Path) -> bool:
    """Whether a file of safetensors has the size that its header promises: 8 bytes, the header, the tensors."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if size < 8 + length:
            return False
        try:
            header = json.loads(opened.read(length))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            return False
    return size == 8 + length + max(ends, default=0)


def _state_fault(file: Path) -> str:
    if not file.is_file():
        return f"{file.parent.parent.name}/{file.parent.name}/{file.name} is missing"
    # torch writes a zip file, whose directory comes last
    return "" if zipfile.is_zipfile(file) else f"{file.name} is cut off or damaged"
