"""Settings that applications keep in ini files below ``~/.config``, read and written as nested mappings.

``settings.<file>.<group>.<key>``: the file is its path without the ending, as in
``settings.glib-2_0/settings/keyfile.org/xfce/mousepad/preferences/view.word-wrap`` (a dot in a name becomes ``_``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cuarl.errors import TaskError

ENDINGS = (".conf", ".ini")
KEYFILE = "glib-2.0/settings/keyfile"
"""What GSettings keeps."""
MAX_BYTES = 1_000_000


def read_settings(config: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """By file and group: keys with their values (truth values, numbers, and texts without their quotes)."""
    found = {}
    for path in _files(config):
        try:
            if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_BYTES:
                continue
            found[_name(path, config)] = parse(path.read_text(encoding="utf-8", errors="replace"))
        except OSError:  # replaced by its application just now
            continue
    return found


def write_setting(config: Path, path: str, value: Any) -> None:
    """Set one key before the applications start. Raises TaskError if ``path`` is not ``file.group.key``."""
    parts = path.split(".")
    if len(parts) != 3 or not all(parts) or ".." in path:
        raise TaskError(
            f'"{path}" is no setting', where="preset", hint="settings.FILE.GROUP.KEY, see docs/guides/linux.md"
        )
    name, group, key = parts
    file = config / (KEYFILE if name == KEYFILE.replace(".", "_") else f"{name}.conf")
    groups = parse(file.read_text(encoding="utf-8"), raw=True) if file.exists() else {}
    groups.setdefault(group, {})[key] = _shown(value, quoted=file == config / KEYFILE)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "\n".join(f"[{g}]\n" + "".join(f"{k}={v}\n" for k, v in keys.items()) for g, keys in groups.items()),
        encoding="utf-8",
    )


def parse(text: str, *, raw: bool = False) -> dict[str, dict[str, Any]]:
    """The groups of an ini file; lines that are none of its are left out. ``raw`` leaves values as they stand."""
    groups: dict[str, dict[str, Any]] = {}
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1]
            groups.setdefault(group, {})
        elif "=" in line and not line.startswith(("#", ";")):
            key, _, value = line.partition("=")
            groups.setdefault(group, {})[key.strip()] = value.strip() if raw else _value(value.strip())
    return groups


def with_named(settings: Mapping[str, Any], paths: Iterator[str]) -> dict[str, Any]:
    """``settings`` with None for those that ``paths`` name and that are not there.

    Their application's default holds.
    """
    completed = {name: {group: dict(keys) for group, keys in groups.items()} for name, groups in settings.items()}
    for path in paths:
        name, group, key = path.split(".")
        completed.setdefault(name, {}).setdefault(group, {}).setdefault(key, None)
    return completed


def _files(config: Path) -> Iterator[Path]:
    yield config / KEYFILE
    yield from sorted(path for path in config.rglob("*") if path.suffix in ENDINGS)


def _name(path: Path, config: Path) -> str:
    relative = path.relative_to(config)
    return str(relative.with_suffix("") if path.suffix in ENDINGS else relative).replace(".", "_")


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _shown(value: Any, *, quoted: bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if quoted and isinstance(value, str) else str(value)
