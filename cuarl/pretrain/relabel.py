"""Screens whose texts say something else: the layout and the widgets stay, the words nobody could have learnt."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from cuarl.pretrain import words as t
from cuarl.pretrain.texts import Line
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.scene import Placed, Scene
from cuarl.sim.kit.style import text_width

TEXTS = ("label", "text", "subtitle", "value", "title")
FIXED = (w.Key, w.Day, w.Bar, w.Picture, w.IconButton, w.Fab)
"""Widgets whose texts say what they do, or can't be seen."""
_PX = 12


def other_words(
    rng: random.Random, lines: tuple[Line, ...], scene: Scene, share: float, *, unseen: bool = False
) -> dict[str, str]:
    """What to write in place of which text: about ``share`` of what is drawn on one line, by something no wider."""
    changed: dict[str, str] = {}
    for line in lines:
        drawn = _strings(scene.items[line.item])
        if line.text not in drawn or line.text in changed or len(line.text) < 2 or rng.random() > share:
            continue
        changed[line.text] = _fitting(rng, line.text, unseen)
    return changed


def _kind(widget: Any) -> Hashable:
    return cast("Hashable", type(widget))


def _strings(item: Placed) -> set[str]:
    if isinstance(item.widget, FIXED):
        return set()
    return {getattr(item.widget, name) for name in _names(_kind(item.widget))}


@lru_cache(maxsize=256)
def _names(kind: Hashable) -> tuple[str, ...]:
    blank = kind() if callable(kind) else None
    return tuple(name for name in TEXTS if isinstance(getattr(blank, name, None), str))


def _fitting(rng: random.Random, text: str, unseen: bool) -> str:
    """Something about as long, and no wider."""
    room = text_width(text, _PX)
    best = ""
    for _ in range(6):
        found = t.anything(rng, unseen=unseen)
        while " " in found and text_width(found, _PX) > room:
            found = found.rpartition(" ")[0]
        if text_width(found, _PX) <= room and len(found) > len(best):
            best = found
    if not best:
        best = t.word(rng, unseen=unseen)
        while len(best) > 2 and text_width(best, _PX) > room:
            best = best[:-1]
    return best.strip()


def rewritten(scene: Scene, changed: Mapping[str, str]) -> Scene:
    """The scene with other texts."""
    items = tuple(item._replace(widget=rewritten_widget(item.widget, changed)) for item in scene.items)
    return replace(scene, items=items, parts=())


def rewritten_widget(widget: Any, changed: Mapping[str, str]) -> Any:
    """A widget with other texts; itself if it has none of those."""
    if isinstance(widget, FIXED):
        return widget
    new = {n: changed[v] for n in _names(_kind(widget)) if (v := getattr(widget, n)) in changed}
    return replace(widget, **new) if new else widget
