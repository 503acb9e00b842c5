"""One turn a row, for data frames. Needs pyarrow."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from cuarl.store.codec import dump_line
from cuarl.trajectory import Trajectory, Turn

_BATCH = 256
_SURROGATE = re.compile("[\ud800-\udfff]")
Row = dict[str, Any]


def write_turns(path: Path, trajectories: Iterable[Trajectory], overruled: Mapping[str, bool] | None = None) -> int:
    """Write the turns of episodes; gives the number of rows.

    ``image`` is the screenshot's path beside the file. Actions and parse errors are JSON text, since their fields
    differ from kind to kind; ``success`` is what holds, a person's verdict (``overruled``, by episode) before the
    recorded one; ids and logprobs are lists. Parquet takes no halves of surrogate pairs, which stand as U+FFFD.
    """
    arrow: Any = importlib.import_module("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    schema = arrow.schema(list((turn_columns(arrow) | {"image": arrow.string()}).items()))
    said = overruled or {}
    rows = (
        unicode_only(turn_row(one, turn) | judged(one, said) | {"image": _path(turn.screenshot.digest)})
        for one in trajectories
        for turn in one.turns
    )
    count = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(islice(rows, _BATCH)):
            writer.write_table(arrow.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    return count


def episode_columns(arrow: Any) -> dict[str, Any]:
    """Names and types of what ``episode_row`` and ``judged`` give."""
    text, whole, flag = arrow.string(), arrow.int64(), arrow.bool_()
    return {
        "episode_id": text,
        "run_id": text,
        "group_id": text,
        "attempt": whole,
        "step": whole,
        "purpose": text,
        "task_id": text,
        "goal": text,
        "category": text,
        "difficulty": text,
        "agent": text,
        "policy": text,
        "policy_version": whole,
        "stop": text,
        "success": flag,
        "recorded_success": flag,
        "backend": text,
        "device": text,
    }


def turn_columns(arrow: Any) -> dict[str, Any]:
    """Names and types of what ``turn_row`` and ``judged`` give."""
    text, whole, real, ids = arrow.string(), arrow.int64(), arrow.float64(), arrow.list_(arrow.int32())
    return {
        **episode_columns(arrow),
        "episode_reward": real,
        "turn": whole,
        "width": whole,
        "height": whole,
        "seen_width": whole,
        "seen_height": whole,
        "action": text,
        "parse_error": text,
        "rejected": text,
        "turn_reward": real,
        "text": text,
        "prompt_ids": ids,
        "token_ids": ids,
        "logprobs": arrow.list_(real),
        "window": arrow.list_(text),
    }


def unicode_only(row: Row) -> Row:
    """The row with U+FFFD for each half of a surrogate pair."""
    return {name: _SURROGATE.sub("\ufffd", cell) if isinstance(cell, str) else cell for name, cell in row.items()}


def turn_row(e: Trajectory, t: Turn) -> Row:
    """What a turn, and its episode, has that makes a column; ``window`` has the paths of the pictures in the prompt."""
    sampled = t.sampled
    return {
        **episode_row(e),
        "episode_reward": e.reward,
        "turn": t.index,
        "width": t.screenshot.width,
        "height": t.screenshot.height,
        "seen_width": t.resized and t.resized[0],
        "seen_height": t.resized and t.resized[1],
        "action": dump_line(t.action.model_dump()) if t.action else None,
        "parse_error": dump_line(t.parse_error.model_dump()) if t.parse_error else None,
        "rejected": t.rejected,
        "turn_reward": t.reward,
        "text": sampled and sampled.text,
        "prompt_ids": sampled and list(sampled.prompt_ids),
        "token_ids": sampled and list(sampled.token_ids),
        "logprobs": sampled and sampled.logprobs and list(sampled.logprobs),
        "window": sampled and [_path(image.digest) for image in sampled.images],
    }


def episode_row(e: Trajectory) -> Row:
    """What an episode has that makes a column of its turns, too."""
    return {
        "episode_id": e.episode_id,
        "run_id": e.run_id,
        "group_id": e.group_id,
        "attempt": e.attempt,
        "step": e.step,
        "purpose": e.purpose,
        "task_id": e.task_id,
        "goal": e.goal,
        "category": e.category,
        "difficulty": e.difficulty,
        "agent": e.agent,
        "policy": e.policy,
        "policy_version": e.policy_version,
        "stop": e.stop.value,
        "backend": e.backend,
        "device": e.device,
    }


def judged(e: Trajectory, overruled: Mapping[str, bool]) -> Row:
    """What holds of an episode, and what was recorded."""
    return {"success": overruled.get(e.episode_id, e.success), "recorded_success": e.success}


def _path(digest: str) -> str:
    return f"blobs/{digest[:2]}/{digest[2:]}.png"
