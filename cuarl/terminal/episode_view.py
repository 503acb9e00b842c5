"""Shows one stored episode: pictures as files, and its course in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from cuarl.errors import ConfigError
from cuarl.monitor import film
from cuarl.monitor.draw import caption, half_blocks
from cuarl.monitor.frames import Drawn, draw, ending
from cuarl.monitor.prompt import shortened
from cuarl.terminal.output import console, has_colour, is_terminal, note, print_json, print_table, print_text
from cuarl.trajectory import Trajectory
from cuarl.types import Screenshot


def show_episode(
    trajectory: Trajectory,
    picture: Callable[[str], Screenshot],
    folder: Path,
    *,
    columns: int,
    as_json: bool,
    gif: Path | None = None,
) -> None:
    """Write the pictures into ``folder``; print the episode, with pictures where the terminal has colours.

    ``gif`` is a file for all of them as one moving picture. Raises ConfigError where there is nothing to move.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files, frames = [], []
    in_colour = columns > 0 and not as_json and is_terminal(sys.stdout) and has_colour(sys.stdout)
    for drawn in draw(trajectory, picture):
        path = folder / f"{drawn.name}.png"
        drawn.picture.save(path)
        files.append(path)
        if gif is not None:
            frames.append(drawn)
        if in_colour:
            console().print(half_blocks(drawn.picture, columns))
            print_text(f"{drawn.name}: {drawn.words}{f' ({drawn.trouble})' if drawn.trouble else ''}\n")
    if gif is not None:
        _write_gif(gif, frames)
    if as_json:
        print_json({"episode": trajectory, "pictures": files, **({"gif": gif} if gif else {})})
    else:
        _print_facts(trajectory)
        _print_turns(trajectory)
    note(f"pictures: {folder} ({len(files)} files)" + (f" and {gif}" if gif else ""))


def show_turn(trajectory: Trajectory, number: int, texts: Callable[[Sequence[int]], Sequence[str] | None]) -> None:
    """Print a turn (from 1): what the model was shown, its raw answer, and what was read from it.

    ``texts`` gives what token ids read, or None where nothing on this machine tells. Raises ConfigError for a turn that
    the episode has not.
    """
    if number > len(trajectory.turns):
        raise ConfigError(f"the episode has {len(trajectory.turns)} turns, and no turn {number}", hint="--turn 1")
    turn = trajectory.turns[number - 1]
    sampled = turn.sampled
    words, trouble = caption(turn)
    if sampled is None:
        note("no model was asked at this turn")
    else:
        pieces = texts(sampled.prompt_ids)
        unread = f"({len(sampled.prompt_ids)} tokens, whose text is not known on this machine)"
        print_text(f"prompt:\n{unread if pieces is None else shortened(''.join(pieces))}\n")
        print_text(f"raw answer:\n{sampled.text}\n")
    print_text(f"read as: {words}" + (f" ({trouble})" if trouble else ""))


def _write_gif(path: Path, frames: Sequence[Drawn]) -> None:
    if not frames:
        raise ConfigError("the episode has no screens, so there is nothing to draw", where="--gif", hint="leave it out")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(film.gif(frames))


def _print_facts(t: Trajectory) -> None:
    words, trouble = ending(t)
    version = f", version {t.policy_version}" if t.policy else ""
    facts = [
        ("episode", t.episode_id),
        ("task", f"{t.task_id}: {t.goal}"),
        ("agent", f"{t.agent} {t.policy}{version}".strip()),
        ("screens", _screens(t)),
        ("ended", words),
        ("because", trouble),
        ("answer", t.answer),
        *(("reward part", f"{p.name} {p.value:+g}  {p.evidence}") for p in t.reward_parts),
        ("took", f"{t.wall_s:.2f} s"),
    ]
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
