"""Shows one stored episode: pictures as files, and its course in the terminal."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cuarl.cli.output import console, has_colour, is_terminal, note, print_json, print_table, print_text
from cuarl.errors import ConfigError
from cuarl.monitor.draw import annotate, caption, final, half_blocks
from cuarl.safe_text import printable
from cuarl.trajectory import Trajectory
from cuarl.types import Screenshot

if TYPE_CHECKING:
    from PIL import Image

    from cuarl.store import Store


_CANDIDATES = 5


class Drawn(NamedTuple):
    """One turn, drawn; the last one is how the episode ended."""

    name: str
    words: str
    trouble: str
    picture: Image.Image


def find_episode(store: Store, reference: str) -> Trajectory:
    """The episode with this id, with the only id that begins so, the latest, or that of a run by its name. Raises ConfigError."""
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
    return (folder if run and (folder / "manifest.json").is_file() else runs_dir / ".pictures") / "pictures" / name


def folder_name(episode_id: str) -> str:
    """A name for a folder, whatever the id holds: ids come from imports and from the clients of servers, too."""
    if re.fullmatch(r"\w[\w.:@+-]{0,99}", episode_id, re.ASCII):
        return episode_id
    digest = hashlib.sha256(episode_id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    kept = re.sub(r"[^\w.-]+", "-", episode_id, flags=re.ASCII).strip("-.")[:60]
    return f"{kept}-{digest}".lstrip("-")


def show_episode(
    trajectory: Trajectory, picture: Callable[[str], Screenshot], folder: Path, *, columns: int, as_json: bool
) -> None:  # fmt: skip
    """Write the pictures into ``folder``; print the episode, with pictures where the terminal has colours."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    in_colour = columns > 0 and not as_json and is_terminal(sys.stdout) and has_colour(sys.stdout)
    for drawn in draw(trajectory, picture):
        path = folder / f"{drawn.name}.png"
        drawn.picture.save(path)
        files.append(path)
        if in_colour:
            console().print(half_blocks(drawn.picture, columns))
            print_text(f"{drawn.name}: {drawn.words}{f' ({drawn.trouble})' if drawn.trouble else ''}\n")
    if as_json:
        print_json({"episode": trajectory, "pictures": files})
    else:
        _print_facts(trajectory)
        _print_turns(trajectory)
    note(f"pictures: {folder} ({len(files)} files)")


def draw(trajectory: Trajectory, picture: Callable[[str], Screenshot]) -> Iterator[Drawn]:
    """Every turn with its action on the screenshot, then the last screen with the outcome."""
    for turn in trajectory.turns:
        words, trouble = caption(turn)
        yield Drawn(f"turn-{turn.index + 1:03d}", words, trouble, annotate(picture(turn.screenshot.digest).image, turn))
    if trajectory.final_screenshot is not None:
        words, trouble = _ending(trajectory)
        last = picture(trajectory.final_screenshot.digest).image
        yield Drawn("final", words, trouble, final(last, words, trouble))


def _ending(t: Trajectory) -> tuple[str, str]:
    outcome = {True: "success", False: "no success", None: "no verdict"}[t.success]
    reward = "" if t.reward is None else f", reward {t.reward:g}"
    checks = (
        [f"{c.path} is {c.actual!r}, not {c.op} {c.expected!r}" for c in t.verdict.checks if not c.passed]
        if t.verdict
        else []
    )
    effects = [f"changed without being asked: {path}" for path in t.verdict.side_effects] if t.verdict else []
    failure = [f"{t.failure.boundary} failed: {t.failure.message}"] if t.failure else []
    return f"{t.stop}: {outcome}{reward}", printable("; ".join([*checks, *effects, *failure]))


def _print_facts(t: Trajectory) -> None:
    words, trouble = _ending(t)
    version = f", version {t.policy_version}" if t.policy else ""
    facts = [
        ("episode", t.episode_id), ("task", f"{t.task_id}: {t.goal}"), ("agent", f"{t.agent} {t.policy}{version}".strip()),
        ("screens", _screens(t)), ("ended", words), ("because", trouble), ("answer", t.answer),
        *(("reward part", f"{p.name} {p.value:+g}  {p.evidence}") for p in t.reward_parts),
        ("took", f"{t.wall_s:.2f} s"),
    ]  # fmt: skip
    print_table(("what", "value"), [fact for fact in facts if fact[1]])


def _screens(t: Trajectory) -> str:
    """The sizes of the screens, and those at which the model saw them where that is known."""
    sizes = {(x.screenshot.width, x.screenshot.height): x.resized for x in t.turns}
    return ", ".join(f"{w}x{h}" + (f", seen at {s[0]}x{s[1]}" if s else "") for (w, h), s in sizes.items())


def _print_turns(t: Trajectory) -> None:
    changed = {True: "yes", False: "no", None: None}
    rows = [
        (x.index + 1, *(text or None for text in caption(x)), changed[x.changed], f"{x.model_s:.2f}", f"{x.env_s:.2f}")
        for x in t.turns
    ]
    columns = ("turn", "action", "trouble", "changed", "model s", "env s")
    print_text("")
    print_table(columns, rows, numeric={"turn", "model s", "env s"})
