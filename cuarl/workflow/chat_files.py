"""Conversations as files that trainers take: TRL's (``messages`` and ``images``) and LLaMA-Factory's (sharegpt)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cuarl.errors import ConfigError
from cuarl.policy.sampler import Part, Picture
from cuarl.store.aside import whole_or_not_at_all
from cuarl.store.dataset.card import Told, chat_card
from cuarl.store.dataset.shards import Shards, picture_type, require_pyarrow
from cuarl.store.export import run_id
from cuarl.store.parquet import unicode_only
from cuarl.store.redaction import Redaction
from cuarl.workflow.chats import Chat, Chats

ChatLayout = Literal["trl", "llama-factory"]
NO_PLACE = "whose text has a mark that LLaMA-Factory takes for a picture"
_MARKS = re.compile(r"<(image|video|audio)>")
Write = Callable[[Chat, Sequence[tuple[str, bytes]]], None]
"""Takes a conversation, and names and files of its pictures."""


@dataclass(frozen=True, slots=True)
class Written:
    """What an export of conversations holds."""

    folder: Path
    conversations: dict[str, int]
    """By split: the purpose of their episodes."""
    episodes: int
    screenshots: int
    left_out: dict[str, int]
    """Turns, by why."""


def export_chats(chats: Chats, folder: Path, layout: ChatLayout, *, redact: str | None = None) -> Written:
    """Write conversations into an empty folder, whole or not at all.

    Raises ConfigError if it holds something, there is no such run or there is nothing to write, StoreError for what
    can't be read, MissingExtra for TRL's layout without pyarrow.
    """
    store, counts, told = chats.store, Counter[str](), Told(redacted=redact)
    if chats.run is not None:
        chats.run = run_id(store.runs(), chats.run)
    redaction = Redaction(redact) if redact else None
    episodes, shown, runs = set[str](), set[str](), set[str]()
    with whole_or_not_at_all(folder) as aside:
        with (_trl if layout == "trl" else _llama_factory)(aside) as write:
            for chat in chats:
                if layout == "llama-factory" and _misread(chat):
                    chats.left_out[NO_PLACE] += 1
                    continue
                pictures = [redaction.picture(one) if redaction else one for one in chat.pictures]
                write(chat, [(f"{one.digest}.png", one.png()) for one in pictures])
                counts[chat.episode.purpose] += 1
                shown.update(one.digest for one in pictures)
                runs.add(chat.episode.run_id)
                if chat.episode.episode_id not in episodes:
                    episodes.add(chat.episode.episode_id)
                    told.add(chat.episode, chats.overruled)
        if not counts:
            raise _nothing(chats)
        card = chat_card(layout, told, [run for run in store.runs() if run.id in runs], counts)
        (aside / "README.md").write_text(card, encoding="utf-8")
    return Written(folder, dict(counts), len(episodes), len(shown), dict(chats.left_out))


def _nothing(chats: Chats) -> ConfigError:
    why = "; ".join(f"{count} {reason}" for reason, count in chats.left_out.items())
    return ConfigError(
        f"no turn can be written: {f'there are {why}' if why else 'no episode was a success'}",
        hint="cuarl db export FOLDER --format trl " + ("--renderer-name qwen3-vl" if why else "--failed"),
    )


# --- TRL -----------------------------------------------------------------------------------------------------------


@contextmanager
def _trl(folder: Path) -> Iterator[Write]:
    arrow = require_pyarrow()
    text = arrow.string()
    part = arrow.struct([("type", text), ("text", text)])
    columns = {
        "messages": arrow.list_(arrow.struct([("role", text), ("content", arrow.list_(part))])),
        "images": arrow.list_(picture_type(arrow)),
        "episode_id": text,
        "turn": arrow.int64(),
        "task_id": text,
    }
    with Shards(folder / "data", columns) as shards:

        def write(chat: Chat, pictures: Sequence[tuple[str, bytes]]) -> None:
            row = {
                "messages": [
                    {"role": m.role, "content": [unicode_only(_part(p)) for p in m.parts]} for m in chat.messages
                ],
                "images": [{"bytes": data, "path": name} for name, data in pictures],
                **_from(chat),
            }
            shards.add(chat.episode.purpose, row, sum(len(data) for _, data in pictures))

        yield write


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Picture):
        return {"type": "image", "text": None}
    return {"type": "text", "text": part.text}


def _from(chat: Chat) -> dict[str, Any]:
    """Where a conversation comes from."""
    return unicode_only(
        {
            "episode_id": chat.episode.episode_id,
            "turn": chat.turn.index,
            "task_id": chat.episode.task_id,
        }
    )


# --- LLaMA-Factory -------------------------------------------------------------------------------------------------


@contextmanager
def _llama_factory(folder: Path) -> Iterator[Write]:
    (folder / "images").mkdir()
    opened: dict[str, Any] = {}

    def write(chat: Chat, pictures: Sequence[tuple[str, bytes]]) -> None:
        for name, data in pictures:
            path = folder / "images" / name
            if not path.exists():
                path.write_bytes(data)
        split = chat.episode.purpose
        if split not in opened:
            opened[split] = (folder / f"{split}.jsonl").open("w", encoding="ascii")
        messages = [unicode_only({"role": m.role, "content": "".join(map(_marked, m.parts))}) for m in chat.messages]
        row = {"messages": messages, "images": [f"images/{name}" for name, _ in pictures], **_from(chat)}
        opened[split].write(f"{json.dumps(row, separators=(',', ':'), allow_nan=False)}\n")

    try:
        yield write
    finally:
        for file in opened.values():
            file.close()
    known = {f"cuarl_{split}": _described(f"{split}.jsonl") for split in sorted(opened)}
    (folder / "dataset_info.json").write_text(json.dumps(known, indent=2) + "\n", encoding="ascii")


def _described(file: str) -> dict[str, Any]:
    """What LLaMA-Factory has to know of a file."""
    return {
        "file_name": file,
        "formatting": "sharegpt",
        "columns": {"messages": "messages", "images": "images"},
        "tags": {
            "role_tag": "role",
            "content_tag": "content",
            "user_tag": "user",
            "assistant_tag": "assistant",
            "system_tag": "system",
        },
    }


def _marked(part: Part) -> str:
    return "<image>" if isinstance(part, Picture) else part.text


def _misread(chat: Chat) -> bool:
    return any(_MARKS.search(part.text) for m in chat.messages for part in m.parts if not isinstance(part, Picture))
