"""Pairs of a picture and an instruction, with the box of what is meant, in the formats of ScreenSpot.

ScreenSpot and ScreenSpot-v2 (arXiv:2401.10935, arXiv:2410.23218): a list of ``img_filename``, ``instruction``, ``bbox``
as left, top, width, height in pixels, ``data_type`` (text or icon) and ``data_source``. ScreenSpot-Pro
(arXiv:2504.07981): ``bbox`` is left, top, right, bottom; ``ui_type``, ``platform``, ``group``, ``application`` and
``img_size`` say the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image

from cuarl.env.grounding.options import Boxes
from cuarl.errors import TaskError

FOLDERS = ("", "screenspot_imgs", "screenspotv2_image", "images", "../images")
"""Where ScreenSpot, its second version and ScreenSpot-Pro have their pictures, seen from their files."""
SIZES = (("small (< 0.1 %)", 0.001), ("medium (< 1 %)", 0.01), ("large (from 1 %)", float("inf")))
"""What a target is by its share of the picture's area."""
_PHONES = frozenset({"ios", "android", "mobile", "phone"})
_PRO = frozenset({"ui_type", "img_size"})


@dataclass(frozen=True, slots=True)
class Pair:
    """One thing to point at."""

    id: str
    picture: Path
    instruction: str
    box: tuple[float, float, float, float]
    """Left, top, right, bottom, pixels of the picture; its edges belong to it."""
    about: Mapping[str, str]
    """By which reports go: ``kind``, ``source``, ``size``, and ``group`` in ScreenSpot-Pro."""

    @property
    def on_phone(self) -> bool:
        """Whether the picture is a phone's."""
        return self.about.get("source", "").lower() in _PHONES


def read_pairs(path: Path, images: Path | None, boxes: Boxes) -> list[Pair]:
    """The pairs of a file, or of all ``*.json`` in a folder. Raises TaskError for what is no such file or box."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    found = [pair for file in files for pair in _read(file, images, boxes)]
    if not found:
        raise TaskError("there are no pairs of a picture and an instruction", where=str(path))
    return found


def _read(file: Path, images: Path | None, boxes: Boxes) -> Iterator[Pair]:
    try:
        raw = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise TaskError(
            f"the pairs can't be read: {error}", where=str(file), hint="docs/guides/grounding.md"
        ) from error
    if not isinstance(raw, list):
        raise TaskError("this is no list of pairs", where=str(file), hint="docs/guides/grounding.md")
    for number, one in enumerate(raw):
        where = f"{file}, pair {number}"
        if not isinstance(one, Mapping):
            raise TaskError("a pair is a mapping", where=where, hint="docs/guides/grounding.md")
        yield _pair(one, f"{file.stem}.{number:04d}", where, [images] if images else _folders(file), boxes)


def _folders(file: Path) -> list[Path]:
    return [file.parent / name for name in FOLDERS]


def _pair(raw: Mapping[str, Any], name: str, where: str, folders: list[Path], boxes: Boxes) -> Pair:
    instruction, filename = raw.get("instruction"), raw.get("img_filename")
    if not (isinstance(instruction, str) and instruction.strip() and isinstance(filename, str)):
        raise TaskError("a pair has img_filename and instruction", where=where, hint="docs/guides/grounding.md")
    picture = next((path for folder in folders if (path := folder / filename).is_file()), None)
    if picture is None:
        raise TaskError(f"there is no picture {filename}", where=where, hint="--grounding-images FOLDER")
    size = _size(picture, where)
    corners = boxes == "xyxy" or (boxes == "auto" and bool(_PRO & set(raw)))
    box = _box(raw.get("bbox"), corners, size, where)
    area = (box[2] - box[0]) * (box[3] - box[1]) / (size[0] * size[1])
    told = {
        "kind": raw.get("data_type") or raw.get("ui_type"),
        "source": raw.get("data_source") or raw.get("platform"),
        "group": raw.get("group"),
    }
    about = {key: str(value) for key, value in told.items() if value}
    about["size"] = next(label for label, limit in SIZES if area < limit)
    return Pair(name, picture, instruction, box, about)


@lru_cache(maxsize=4096)
def _size(picture: Path, where: str) -> tuple[int, int]:
    try:
        with Image.open(picture) as image:
            return image.size
    except OSError as error:
        raise TaskError(f"the picture can't be read: {error}", where=where) from error


def _box(raw: Any, corners: bool, size: tuple[int, int], where: str) -> tuple[float, float, float, float]:
    numbers = isinstance(raw, list) and len(raw) == 4 and all(type(value) in (int, float) for value in raw)
    if not numbers:
        raise TaskError(f"bbox is {raw!r} and not four numbers", where=where)
    x, y, *rest = map(float, raw)
    right, bottom = rest if corners else (x + rest[0], y + rest[1])
    if max(right, bottom) <= 1:
        raise TaskError(f"bbox {raw} is in shares of the picture, and pixels are wanted", where=where)
    # annotations may reach over the edge by a pixel or two
    if not (-2 <= x < right <= size[0] + 2 and -2 <= y < bottom <= size[1] + 2):
        meant = "left, top, right, bottom" if corners else "left, top, width, height"
        other = "xywh" if corners else "xyxy"
        raise TaskError(
            f"bbox {raw} as {meant} is no box in a picture of {size[0]}x{size[1]}",
            where=where,
            hint=f"--grounding-boxes {other}",
        )
    return x, y, right, bottom
