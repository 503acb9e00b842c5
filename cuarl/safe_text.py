"""Text that may be shown or stored: secrets masked, pictures summarised, control characters escaped, lines bounded.

Halves of surrogate pairs count as control characters: models and pages produce them, and no file or terminal takes
them.

Secrets are known by their values, never guessed from the text around them, so a setting that merely has ``token`` in
its name is left alone. The values come from the environment (``remember_environment``) and from the settings
(``remember``); passwords inside URLs are masked wherever they stand.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any
from urllib.parse import quote, unquote

MAX_LINE_BYTES = 4096
"""Longest line of a log."""
SHORTEST_SECRET = 6
"""Values shorter than this are not masked: ``true`` and ``5432`` would take half of any text with them."""
NO_SECRETS = frozenset({"postgres", "password"})
"""Values that guard nothing, and that masked would take ordinary words out of every text."""

_SECRET_NAME = re.compile(r"(^|_)(API_KEY|ACCESS_KEY|SECRET|SECRET_KEY|TOKEN|PASSWORD|PASSWD|CREDENTIALS)$")
_SETTING_NAME = re.compile(r"^(USE|NUM|MAX|MIN|N)_")
_URL_PASSWORD = re.compile(r"(?<=://)([^\s/@:]*):([^\s/]+)(?=@)")
_URL_USER = re.compile(r"\w://[^\s/]+@")
_CREDENTIAL = r"(?:[\w-]*[_-])?(?:(?:api|access)?[_-]?key|token|secret|passw(?:or)?d|pwd|sig|signature|auth)"
_URL_QUERY = re.compile(rf"(?<=[?&#])({_CREDENTIAL})=([^\s&#\"']+)", re.IGNORECASE)
_DATA_URI = re.compile(r"data:(?P<type>[\w.+/-]+);base64,(?P<data>[A-Za-z0-9+/=_-]+)")
_LONG_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{512,}={0,2}")
_INVISIBLE = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff"
_CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f{_INVISIBLE}]")
_UNSAFE_IN_JSON = re.compile(f"[{_INVISIBLE}]")  # the others are escaped by JSON itself

# One process has one set of secrets, and log handlers, sinks and error messages must all know it.
_secrets: set[str] = set()


def remember(values: Iterable[str]) -> None:
    """Mask these values from now on, in every spelling that a URL may give them."""
    for value in values:
        if len(value) >= SHORTEST_SECRET and value not in NO_SECRETS:
            _secrets.update({value, quote(value, safe="", errors="surrogatepass")})


def forget(values: Iterable[str]) -> None:
    """Mask these no more: what they guarded is gone. Who makes a secret for each episode must forget them, too."""
    for value in values:
        _secrets.difference_update({value, quote(value, safe="", errors="surrogatepass")})


def remember_environment(environment: Mapping[str, str] | None = None) -> None:
    """Mask the values of environment variables that are named like credentials, and passwords in their URLs."""
    for name, value in (os.environ if environment is None else environment).items():
        if _SECRET_NAME.search(name.upper()) and not _SETTING_NAME.match(name.upper()):
            remember([value])
        remember(url_passwords(value))


def url_passwords(text: str) -> list[str]:
    """Passwords in the user part and the query of URLs, as written and decoded."""
    found = [match[2] for pattern in (_URL_PASSWORD, _URL_QUERY) for match in pattern.finditer(text)]
    return [*found, *(unquote(password) for password in found)]


def has_credentials(value: Any) -> bool:
    """Whether plain data holds a URL with a user, a password or a key in it."""
    if isinstance(value, str):
        return bool(_URL_USER.search(value) or ("://" in value and _URL_QUERY.search(value)))
    if isinstance(value, Mapping):
        return any(has_credentials(part) for item in value.items() for part in item)
    return isinstance(value, list | tuple | set | frozenset) and any(map(has_credentials, value))


def masked(text: str) -> str:
    """Replace every known secret and URL password by ``***`` and at most its last two characters."""
    text = _URL_PASSWORD.sub(lambda match: f"{match[1]}:{_stars(match[2])}", text)
    text = _URL_QUERY.sub(lambda match: f"{match[1]}={_stars(match[2])}", text)
    # longest first, so that a secret that contains another leaves no rest
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, _stars(secret))
    return text


def masked_data(data: Any) -> Any:
    """The same for plain data: every string at any depth, keys included."""
    if isinstance(data, str):
        return masked(data)
    if isinstance(data, Mapping):
        return {masked_data(key): masked_data(value) for key, value in data.items()}
    return [masked_data(item) for item in data] if isinstance(data, list | tuple) else data


def loggable(text: str) -> str:
    """Text for a log or a message: masked, escaped, pictures as size and digest, no line over ``MAX_LINE_BYTES``."""
    text = _DATA_URI.sub(lambda match: _summary(match["type"], match["data"]), masked(text))
    text = _LONG_BASE64.sub(lambda match: _summary("base64", match[0]), text)
    return "\n".join(_bounded(line) for line in escaped(text).split("\n"))


def escaped(text: str) -> str:
    """Text of any number of lines that can't steer a terminal and that any file takes; only tabs and lines stay."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def printable(text: str) -> str:
    """Text on one line that can't steer a terminal: control and direction characters appear as escapes."""
    flat = " ".join(text.split("\n")) if "\n" in text else text
    return escaped(flat.replace("\t", " "))


def safe_json(value: Any, *, indent: int | None = None) -> str:
    r"""Strict JSON of models, dataclasses, paths and dates, secrets masked; a number that is not finite is null.

    Any text passes: what a terminal or a file can't take stands as ``\uXXXX``, so that a reader gets it back as it was.
    """
    separators = None if indent else (",", ":")
    text = json.dumps(_plain(value), indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class SafeFormatter(logging.Formatter):
    """A log formatter whose output, tracebacks included, is safe to keep."""

    def format(self, record: logging.LogRecord) -> str:
        """Format, mask and bound."""
        return loggable(super().format(record))


def _plain(value: Any) -> Any:
    """Plain data of anything. pydantic's own way to JSON refuses halves of surrogate pairs."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, str):
        return masked(value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {masked(str(_plain(key))): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump())
    if isinstance(value, os.PathLike):
        return masked(os.fspath(value))
    from pydantic_core import to_jsonable_python

    return masked(to_jsonable_python(value))


def _stars(secret: str) -> str:
    return "***" + (secret[-2:] if len(secret) >= 12 else "")


def _summary(kind: str, data: str) -> str:
    digest = hashlib.sha256(data.encode()).hexdigest()[:12]
    return f"<{kind}, {len(data) * 3 // 4} bytes, sha256 {digest}>"


def _bounded(line: str) -> str:
    data = line.encode()
    if len(data) <= MAX_LINE_BYTES:
        return line
    kept = data[: MAX_LINE_BYTES - 48].decode(errors="ignore")
    return f"{kept}… ({len(data) - len(kept.encode())} bytes more)"
