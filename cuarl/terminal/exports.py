"""What an export has written, for people."""

from __future__ import annotations

from cuarl.store.export import Exported
from cuarl.terminal.output import closing, note, print_table
from cuarl.workflow.chat_files import Written


def show_export(done: Exported | Written, address: str | None) -> None:
    """Print what was written, where, and what to do with it; ``address``: where it was pushed to."""
    if isinstance(done, Written):
        _show_conversations(done)
    else:
        _show_episodes(done)
    if address:
        note(f"pushed to {address}")


def _show_episodes(done: Exported) -> None:
    print_table(("file", "lines"), list(done.counts.items()), numeric=("lines",))
    result = f"exported {done.counts['episodes']} episodes and {done.screenshots} screenshots"
    if done.missing_screenshots:
        result += f"; {done.missing_screenshots} screenshots are missing in the store"
    closing(result, where=done.folder, then=f"cuarl db import {done.folder} --db sqlite:///copy.db")


def _show_conversations(done: Written) -> None:
    print_table(("split", "conversations"), list(done.conversations.items()), numeric=("conversations",))
    for why, count in done.left_out.items():
        note(f"left out: {count} turns {why}")
    count = sum(done.conversations.values())
    result = f"exported {count} conversations of {done.episodes} episodes and {done.screenshots} screenshots"
    closing(result, where=done.folder, then=f"read {done.folder / 'README.md'}")
