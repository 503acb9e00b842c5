"""Which stored episode a person means, and where its pictures go."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from cuarl.errors import ConfigError
from cuarl.trajectory import Trajectory

if TYPE_CHECKING:
    from cuarl.store import Store

_CANDIDATES = 5


def find_episode(store: Store, reference: str) -> Trajectory:
    """The episode with this id, with the only id that begins so, the latest, or that of a run by its name.

    Raises ConfigError.
    """
    newest = store.newest(1)
    if not newest:
        raise ConfigError("there are no episodes in the store yet", hint="cuarl rollout --agent oracle")
    if reference == "latest":
        return store.trajectory(newest[0].episode_id)
    found = store.beginning(reference, limit=_CANDIDATES + 1)
    if reference in found:
        found = [reference]
    if not found and (of_run := _latest_of(store, reference)):
        found = [of_run]
    if len(found) != 1:
        count = f"more than {_CANDIDATES}" if len(found) > _CANDIDATES else str(len(found))
        some = f"{count} episodes begin so: {', '.join(found[:_CANDIDATES])}" if found else "none begins so"
        raise ConfigError(
            f'"{reference}" is neither the id of an episode nor a run with one; {some}',
            hint="cuarl rollout show latest",
        )
    return store.trajectory(found[0])


def _latest_of(store: Store, name: str) -> str | None:
    """The newest episode of the newest run of that name."""
    run = next((record.id for record in store.runs() if record.name == name), None)
    newest = store.newest(1, run=run) if run else []
    return newest[0].episode_id if newest else None


def pictures_folder(store: Store, trajectory: Trajectory, runs_dir: Path) -> Path:
    """Where its pictures go: in the folder of its run, or beside the runs where that is not here."""
    name = folder_name(trajectory.episode_id)
    run = store.run(trajectory.run_id).name if trajectory.run_id else ""
    folder = runs_dir / run
    return (folder if run and (folder / "manifest.json").is_file() else runs_dir) / "pictures" / name


def folder_name(episode_id: str) -> str:
    """A name for a folder, whatever the id holds: ids come from imports and from the clients of servers, too."""
    if re.fullmatch(r"\w[\w.:@+-]{0,99}", episode_id, re.ASCII):
        return episode_id
    digest = hashlib.sha256(episode_id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    kept = re.sub(r"[^\w.-]+", "-", episode_id, flags=re.ASCII).strip("-.")[:60]
    return f"{kept}-{digest}".lstrip("-")
