"""What a request's query asks for, read once and strictly: a wrong value is said, and never taken for none."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from cuarl.store.pages import RESULTS, SORTS, EpisodeWhere
from cuarl.web.refusal import Refusal

_WORDS = (
    "run", "evaluation", "group", "purpose", "task", "suite", "category", "difficulty", "result", "stop", "failure",
    "policy", "device",
)  # fmt: skip
_LONGEST = 400


def whole(query: Mapping[str, str], name: str, default: int | None = None, *, most: int = 10**9) -> int | None:
    """A number of the query that is not negative. Raises Refusal."""
    text = query.get(name, "").strip()
    if not text:
        return default
    if not re.fullmatch("[0-9]{1,40}", text) or int(text) > most:
        raise Refusal(f"{name} must be a whole number up to {most}, not {text[:40]!r}", param=name)
    return int(text)


def real(query: Mapping[str, str], name: str) -> float | None:
    """A finite number of the query. Raises Refusal."""
    text = query.get(name, "").strip()
    if not text:
        return None
    try:
        value = float(text) if len(text) < 40 else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Refusal(f"{name} must be a number, not {text[:40]!r}", param=name)
    return value


def where(query: Mapping[str, str]) -> EpisodeWhere:
    """The conditions of a list of episodes. Raises Refusal."""
    found: EpisodeWhere = {}
    for name in _WORDS:
        if value := query.get(name, "").strip()[:_LONGEST]:
            found[name] = value  # type: ignore[literal-required]
    if found.get("result", RESULTS[0]) not in RESULTS:
        raise Refusal(f"result must be one of {', '.join(RESULTS)}", param="result")
    for name in ("step", "seed"):
        if (number := whole(query, name, most=10**40)) is not None:
            found[name] = number  # type: ignore[literal-required]
    for name in ("min_reward", "max_reward"):
        if (bound := real(query, name)) is not None:
            found[name] = bound  # type: ignore[literal-required]
    return found


def sort(query: Mapping[str, str]) -> str:
    """The order of a list of episodes. Raises Refusal."""
    text = query.get("sort") or "step"
    if text not in SORTS:
        raise Refusal(f"sort must be one of {', '.join(SORTS)}", param="sort")
    return text


def page(query: Mapping[str, str]) -> int:
    """The page of a list, from 0. Raises Refusal."""
    return whole(query, "page", 0, most=100_000) or 0
