"""A batch as other trainers post it: one object ``training``, or a list for each kind of row.

Rows refer to others by the numbers that an earlier answer gave them; all of a batch is kept, or nothing of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cuarl.errors import CuarlError
from cuarl.monitor.ingest.pictures import without_pictures
from cuarl.store.blobs import Blobs
from cuarl.store.ingest import Ingest, Sent
from cuarl.suggest import did_you_mean

MOST_ROWS = 2000
_LONGEST_ID = 500
_LARGEST = 2**63 - 1
REFERENCES: Mapping[str, Mapping[str, str]] = {
    "training": {},
    "tasks": {},
    "validators": {"task_id": "tasks"},
    "environments": {},
    "steps": {"training_id": "training"},
    "baselines": {"training_id": "training"},
    "evals": {"training_id": "training"},
    "rollouts": {
        "step_id": "steps", "eval_id": "evals", "baseline_id": "baselines", "env_id": "environments",
        "task_id": "tasks",
    },
    "turns": {"rollout_id": "rollouts"},
    "actions": {"turn_id": "turns"},
    "observations": {"turn_id": "turns"},
    "validations": {"rollout_id": "rollouts", "validator_id": "validators"},
}  # fmt: skip
"""Each kind, and what its rows refer to by number; the first is what a row belongs to."""
SOURCES: Mapping[str, str] = {"step": "step_id", "eval": "eval_id", "baseline": "baseline_id"}
"""What a rollout may be from, and the field that says of which."""


class Unreadable(CuarlError):
    """A batch can't be read."""


@dataclass(slots=True)
class Batch:
    """Rows to keep, and what the answer says of them."""

    rows: list[Sent] = field(default_factory=list)
    named: list[str | None] = field(default_factory=list)
    """The ``client_id`` of each, as it was sent."""

    def answer(self, ids: list[int]) -> dict[str, Any]:
        """The answer, by the numbers of the rows."""
        found: dict[str, Any] = {}
        for row, name, number in zip(self.rows, self.named, ids, strict=True):
            if row.kind == "training":
                found["training_id"] = number
            else:
                found.setdefault(row.kind, []).append({"client_id": name, "id": number})
        return found

    def touched(self, ids: list[int]) -> dict[str, set[int]]:
        """The numbers of the rows by their kind, and of those that they belong to."""
        found: dict[str, set[int]] = {kind: set() for kind in REFERENCES}
        for row, number in zip(self.rows, ids, strict=True):
            found[row.kind].add(number)
            if row.parent is not None:
                found[_parent_kind(row.kind)].add(row.parent)
        return found


def read_batch(body: Mapping[str, Any], project: str, ingest: Ingest, blobs: Blobs) -> Batch:
    """The rows of a batch; pictures in them are put into ``blobs``. Raises Unreadable that says where, StoreError."""
    unknown = [name for name in body if name not in REFERENCES]
    if unknown:
        near = did_you_mean(unknown[0], REFERENCES) or f" (there are {', '.join(REFERENCES)})"
        raise Unreadable(f'there is no kind "{unknown[0][:80]}"{near}')
    found, referred = Batch(), dict[str, dict[int, str]]()
    for kind, where, item in _items(body):
        if len(found.rows) >= MOST_ROWS:
            raise Unreadable(f"a batch has at most {MOST_ROWS} rows")
        name = _client_id(kind, where, item)
        parent = _references(kind, where, item, referred)
        data = without_pictures({key: value for key, value in item.items() if key != "client_id"}, blobs)
        found.rows.append(Sent(kind, name or _by_content(item), data, parent))
        found.named.append(None if kind == "training" else name)
    for other, numbers in referred.items():
        known = ingest.known(project, other, list(numbers))
        for number, place in numbers.items():
            if number not in known:
                raise Unreadable(f"{place}: the project has no row {number} of {other}")
    return found


def _items(body: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for kind in REFERENCES:
        if kind not in body or (body[kind] is None):
            continue
        items = [body[kind]] if kind == "training" else body[kind]
        if not isinstance(items, list):
            raise Unreadable(f"{kind} must be a list")
        for i, item in enumerate(items):
            where = kind if kind == "training" else f"{kind}[{i}]"
            if not isinstance(item, dict):
                raise Unreadable(f"{where} must be an object")
            yield kind, where, item


def _client_id(kind: str, where: str, item: Mapping[str, Any]) -> str | None:
    """By what a row is known when it comes again: a training by its name."""
    key = "run_name" if kind == "training" else "client_id"
    found = item.get(key)
    if found is None and kind != "training":
        return None
    if not isinstance(found, str | int) or not 0 < len(str(found)) <= _LONGEST_ID:
        raise Unreadable(f"{where}.{key} must be a text of at most {_LONGEST_ID} characters")
    return str(found)


def _references(kind: str, where: str, item: Mapping[str, Any], referred: dict[str, dict[int, str]]) -> int | None:
    """Note what a row refers to; gives the number of the row that it belongs to. Raises Unreadable."""
    own: int | None = None
    for key, other in REFERENCES[kind].items():
        value = item.get(key)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
            raise Unreadable(f"{where}.{key} must be the number of a {other} row")
        referred.setdefault(other, {}).setdefault(value, f"{where}.{key}")
        own = value if own is None and key == next(iter(REFERENCES[kind])) else own
    if kind == "rollouts":
        return _source(where, item)
    if REFERENCES[kind] and own is None:
        raise Unreadable(f"{where}.{next(iter(REFERENCES[kind]))} is missing")
    return own


def _source(where: str, item: Mapping[str, Any]) -> int | None:
    """What a rollout is from: exactly one of a step, an evaluation and a baseline, where it is said."""
    source = item.get("source_type")
    if not isinstance(source, str) or source not in SOURCES:
        raise Unreadable(f"{where}.source_type must be baseline, eval or step")
    others = [key for name, key in SOURCES.items() if name != source and item.get(key) is not None]
    if others:
        raise Unreadable(f"{where}.{others[0]} contradicts source_type {source}")
    found: int | None = item.get(SOURCES[source])
    return found


def _parent_kind(kind: str) -> str:
    return next(iter(REFERENCES[kind].values()))


def _by_content(item: Mapping[str, Any]) -> str:
    """By what a row is known that has no id of its own: the same post again is the same row."""
    canonical = json.dumps(item, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"
