"""The words of ``/act``, both ways: an action as queries, and a query as an action.

``pods`` sessions understand the protocol's own words. Sessions of our server take any action besides: ``action`` then
holds it as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping

from cuarl.env.held import beyond
from cuarl.env.points import outside
from cuarl.types import ACTION, Action, Answer, Click, Finish, Key, Move, Scroll, TypeText, Wait
from cuarl.web.refusal import whole

KINDS = frozenset({"click", "move", "type", "key", "scroll", "wait", "answer", "finish"})
"""What the protocol has words for, and what needs none."""
SCREENSHOT = "screenshot"
CLICKS = {
    ("left", 1): "left_click", ("left", 2): "double_click", ("left", 3): "triple_click", ("right", 1): "right_click"
}  # fmt: skip
SCROLL_NOTCHES = 3
"""How far one ``scroll`` goes."""
NOTCH_PX = 50
"""About what one notch of a wheel scrolls."""
CHUNK = 500
"""Longest text of one ``type``: it travels in the address, which proxies bound."""
Query = dict[str, str]


def refusal(action: Action, size: tuple[int, int], kinds: frozenset[str] = KINDS) -> str:
    """Why a session of the protocol can't do it; empty if it can. ``size`` is the screenshot's, in pixels."""
    if action.kind not in kinds:
        return f"a session has no {action.kind}"
    if kinds is KINDS:
        if isinstance(action, Click) and (action.button, action.count) not in CLICKS:
            return f"a session has no click of the {action.button} button, {action.count} times"
        if isinstance(action, Scroll) and action.direction in ("left", "right"):
            return "a session scrolls up and down only"
        if reason := beyond(action, "a session", repeats=True):
            return reason
    return outside(action, size)


def queries(action: Action, *, own: bool = False) -> list[Query]:
    """The queries that carry an action out, in order; none for those that its server has no part in.

    ``own`` says that the session's server is ours.
    """
    match action:
        case Finish():
            return []
        case Wait() | Answer() if not own:
            return []
        case Click(held=()) if (action.button, action.count) in CLICKS:
            return [{"action_type": CLICKS[action.button, action.count], **_at(action.x, action.y)}]
        case Move(held=()):
            return [{"action_type": "mouse_move", **_at(action.x, action.y)}]
        case TypeText() if own and len(action.text) > CHUNK:
            *pieces, last = _pieces(action.text)
            typed = [*(TypeText(text=piece) for piece in pieces), TypeText(text=last, submit=action.submit)]
            return [query for piece in typed for query in queries(piece, own=True)]
        case _ if own:
            return [{"action_type": action.kind, "action": action.model_dump_json()}]
        case TypeText():
            submit = [_keys(("enter",))] if action.submit else []
            return [*({"action_type": "type", "text": piece} for piece in _pieces(action.text)), *submit]
        case Key(keys=(key,)) if len(key) == 1 and key.isupper():
            return [{"action_type": "type", "text": key}] * action.count  # as a key, its name would be in lower case
        case Key():
            return [_keys(action.keys)] * action.count
        case Scroll():
            return [_scroll(action)] * _turns(action)
        case _:
            raise ValueError(f"a session has no {action.kind}")


def read(query: Mapping[str, str]) -> Action | None:
    """The action that a query means; None for a screenshot alone.

    Raises ValueError, KeyError for one that means nothing.
    """
    kind = query["action_type"]
    if kind == SCREENSHOT:
        return None
    if "action" in query:
        return ACTION.validate_json(query["action"])
    clicks = {word: how for how, word in CLICKS.items()}
    if kind in clicks:
        button, count = clicks[kind]
        return ACTION.validate_python({"kind": "click", **_point(query), "button": button, "count": count})
    match kind:
        case "mouse_move":
            return Move.model_validate(_point(query))
        case "type":
            return TypeText(text=query["text"])
        case "keys":
            return Key(keys=tuple(_split(query["keys"])))
        case "scroll":
            where = _point(query) if {"x", "y"} & query.keys() else {}
            return Scroll.model_validate(
                {**where, "direction": query["direction"], "amount": SCROLL_NOTCHES, "unit": "notch"}
            )
        case _:
            raise ValueError(f"there is no action_type {kind!r}")


def _at(x: int, y: int) -> Query:
    return {"x": str(x), "y": str(y)}


def _point(query: Mapping[str, str]) -> dict[str, int]:
    return {"x": whole("x", query["x"]), "y": whole("y", query["y"])}


def _pieces(text: str) -> list[str]:
    return [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]


def _keys(keys: tuple[str, ...]) -> Query:
    """Names in lower case without the underscores of xdotool: ``Page_Up`` is ``pageup``."""
    names = (key if len(key) == 1 else key.replace("_", "") for key in keys)
    return {"action_type": "keys", "keys": "+".join(names).lower()}


def _split(keys: str) -> list[str]:
    """The names of a chord; a plus at its end is the key itself."""
    if keys.endswith("+"):
        return [*(name for name in keys[:-1].rstrip("+").split("+") if name), "+"]
    return keys.split("+")


def _scroll(action: Scroll) -> Query:
    where = {} if action.x is None or action.y is None else _at(action.x, action.y)
    return {"action_type": "scroll", "direction": action.direction, **where}


def _turns(action: Scroll) -> int:
    notches = action.amount / (1 if action.unit == "notch" else NOTCH_PX)
    return max(1, round(notches / SCROLL_NOTCHES))
