"""Text that may be shown or stored: secrets masked, pictures summarised, control characters escaped, lines bounded.

Secrets are known by their values, never guessed from the text around them, so a setting that merely has ``token`` in
its name is left alone. The values come from the environment (``remember_environment``) and from the settings
(``remember``); passwords inside URLs are masked wherever they stand.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Iterable, Mapping
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
_URL_PASSWORD = re.compile(r"(?<=://)([^\s/@:]*):([^\s/@]+)(?=@)")
_URL_QUERY = re.compile(r"(?<=[?&])(password|token|api_key|secret)=([^\s&#\"']+)")
_DATA_URI = re.compile(r"data:(?P<type>[\w.+/-]+);base64,(?P<data>[A-Za-z0-9+/=_-]+)")
_LONG_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{512,}={0,2}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

# One process has one set of secrets, and log handlers, sinks and error messages must all know it.
_secrets: set[str] = set()


def remember(values: Iterable[str]) -> None:
    """Mask these values from now on, in every spelling that a URL may give them."""
    for value in values:
        if len(value) >= SHORTEST_SECRET and value not in NO_SECRETS:
            _secrets.update({value, quote(value, safe="")})


def forget(values: Iterable[str]) -> None:
    """Mask these no more: what they guarded is gone. Who makes a secret for each episode must forget them, too."""
    for value in values:
        _secrets.difference_update({value, quote(value, safe="")})


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
    """Text for a log or a message: masked, pictures as size and digest, and no line longer than ``MAX_LINE_BYTES``."""
    text = _DATA_URI.sub(lambda match: _summary(match["type"], match["data"]), masked(text))
    text = _LONG_BASE64.sub(lambda match: _summary("base64", match[0]), text)
    return "\n".join(_bounded(line) for line in text.split("\n"))


def printable(text: str) -> str:
    """Text on one line that can't steer a terminal: control and direction characters appear as escapes."""
    flat = " ".join(text.split("\n")) if "\n" in text else text
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), flat.replace("\t", " "))


class SafeFormatter(logging.Formatter):
    """A log formatter whose output, tracebacks included, is safe to keep."""

    def format(self, record: logging.LogRecord) -> str:
        """Format, mask and bound."""
        return loggable(super().format(record))


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
