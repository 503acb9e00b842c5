"""Keys that are held during an action of the mouse, and keys pressed several times: what not every device can do."""

from __future__ import annotations

from cuarl.types import Action, Key, held_keys


def beyond(action: Action, device: str, *, repeats: bool = False) -> str:
    """Why a device that holds no keys meanwhile can't do ``action``; empty if it can.

    ``device`` is what it is called (``a phone``). Without ``repeats`` it presses keys once at a time. A part of an
    action is never left out: a plain click in the place of one with Ctrl would be another action.
    """
    held = held_keys(action)
    if held:
        return f"{device} can't hold {'+'.join(held)} during a {action.kind}"
    if not repeats and isinstance(action, Key) and action.count > 1:
        return f"{device} presses keys once at a time, not {action.count} times"
    return ""
