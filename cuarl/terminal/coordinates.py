"""``cuarl doctor coordinates``: the proofs of formats, as tables, JSON and a picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from cuarl.agent import formats
from cuarl.agent.formats import DeviceKind, Size
from cuarl.agent.formats.coordinate_check import Proof, Target, prove
from cuarl.agent.formats.family import Family
from cuarl.errors import ConfigError
from cuarl.terminal.output import note, print_json, print_table

KINDS = ("phone", "desktop")
UNMET = 3


def report(names: Sequence[str], screen: str, device: str, seen: str | None, png: Path | None, *, as_json: bool) -> int:
    """Print the proofs and return the exit code. Raises ``ConfigError``."""
    if device not in KINDS:
        raise ConfigError(f'there is no device "{device}"', where="--device", hint="--device phone")
    if png is not None and len(names) != 1:
        raise ConfigError(
            "a picture shows one format",
            where="--png",
            hint=f"cuarl doctor coordinates {names[0] if names else formats.ANY} --png {png}",
        )
    size, resized = _size(screen, "--screen"), None if seen is None else _size(seen, "--seen")
    found = [_family(name, cast(DeviceKind, device)) for name in names or formats.NAMES]
    if resized is not None:
        relative = [f.family for f in found if not f.absolute]
        if relative and names:
            raise ConfigError(
                f"--seen has no effect with {', '.join(relative)}: its points are relative", hint="leave it out"
            )
        found = [f for f in found if f.absolute]
    proofs = [prove(f, size, resized) for f in found]
    if as_json:
        print_json([_data(p) for p in proofs])
    elif len(proofs) == 1:
        _print_targets(proofs[0])
    else:
        _print_summary(proofs)
    if png is not None:
        proofs[0].picture.save(png, "PNG")
        note(f"wrote {png}")
    return _end(proofs)


def _family(name: str, kind: DeviceKind) -> Family:
    if name in formats.NAMES:
        return cast(Family, formats.get(name, kind))
    try:
        return cast(Family, formats.get(formats.for_model(name), kind))
    except ConfigError as error:
        raise ConfigError(
            f'"{name}" is neither a format nor a model whose format is known',
            where="FAMILY",
            hint=f"cuarl doctor coordinates {' | '.join(formats.NAMES)}",
        ) from error


def _size(text: str, option: str) -> Size:
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text.lower())
    if found is None or "0" in found.groups():
        raise ConfigError(f'"{text}" is no size', where=option, hint=f"{option} 1080x2400")
    return Size(int(found[1]), int(found[2]))


def _end(proofs: Sequence[Proof]) -> int:
    broken = [p.format for p in proofs if not p.holds]
    if broken:
        note(f"not proven: {', '.join(broken)}")
        return UNMET
    note(
        f"proven: {sum(len(p.targets) for p in proofs)} targets met, the worst within "
        f"{max(p.worst for p in proofs):g} pixels"
    )
    return 0


def _print_summary(proofs: Sequence[Proof]) -> None:
    print_table(
        ("format", "screen", "sent", "seen", "grid", "targets", "worst", "result"),
        [
            (
                p.format,
                _wide(p.screen),
                _wide(p.sent),
                _wide(p.seen),
                _wide(p.grid),
                len(p.targets),
                f"{p.worst:g} px",
                "ok" if p.holds else next(t.fault for t in p.targets if t.fault),
            )
            for p in proofs
        ],
        numeric=("targets", "worst"),
    )


def _print_targets(proof: Proof) -> None:
    note(
        f"{proof.format}: screen {_wide(proof.screen)}, sent {_wide(proof.sent)}, seen {_wide(proof.seen)}, grid "
        f"{_wide(proof.grid)}"
    )
    print_table(
        ("target", "said", "drawn at", "read", "off", "result"),
        [
            (_at((t.x, t.y)), _at(t.said), _at(t.drawn), _at(t.read), f"{t.off:g} px", t.fault or "ok")
            for t in proof.targets
        ],
        numeric=("off",),
    )


def _wide(size: Size) -> str:
    return f"{size.width}x{size.height}"


def _at(place: Sequence[float] | None) -> str | None:
    return None if place is None else ", ".join(f"{v:.1f}".removesuffix(".0") for v in place)


def _data(proof: Proof) -> dict[str, Any]:
    return {
        "format": proof.format,
        "screen": proof.screen,
        "sent": proof.sent,
        "seen": proof.seen,
        "grid": proof.grid,
        "holds": proof.holds,
        "worst": proof.worst,
        "targets": [_target(t) for t in proof.targets],
    }


def _target(target: Target) -> dict[str, Any]:
    return {
        "target": (target.x, target.y),
        "said": target.said,
        "drawn": target.drawn,
        "named": target.named,
        "read": target.read,
        "off": target.off,
        "fault": target.fault or None,
    }
