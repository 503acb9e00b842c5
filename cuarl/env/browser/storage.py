"""A sign-in that many episodes use: cookies and storage of a browser, in Playwright's format (storage state).

Source of the format: https://playwright.dev/python/docs/auth. Whoever has such a file is signed in, so it is written
for its owner alone.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cuarl.errors import ConfigError

Storage = Mapping[str, Any]


def read_storage(path: Path, origins: Iterable[str]) -> Storage:
    """The file's cookies and storage for pages of ``origins``.

    Raises ConfigError if it can't be read, is for other pages, or all of it has expired.
    """
    again = f"cuarl tasks sign-in {next(iter(sorted(origins)), 'URL')} --out {path}"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        cookies = [{**cookie, "domain": str(cookie["domain"])} for cookie in found["cookies"]]
        stored = [str(origin["origin"]) for origin in found["origins"]]
    except OSError as error:
        raise ConfigError(f"can't read the sign-in: {error.strerror}", where=str(path), hint=again) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError("this is no storage state of Playwright", where=str(path), hint=again) from error
    hosts = {urlsplit(origin).hostname or "" for origin in origins}
    fitting = [cookie for cookie in cookies if any(_reaches(cookie["domain"], host) for host in hosts)]
    if not fitting and not hosts & {urlsplit(origin).hostname for origin in stored}:
        whose = ", ".join(sorted({*(cookie["domain"] for cookie in cookies), *stored})) or "no page at all"
        raise ConfigError(
            f"the sign-in is for {whose}, and no task is there",
            where=str(path),
            hint="--browser-origins, or sign in anew",
        )
    if fitting and not stored and all(0 < cookie.get("expires", -1) < time.time() for cookie in fitting):
        raise ConfigError("the sign-in has run out: all its cookies have expired", where=str(path), hint=again)
    return {"cookies": cookies, "origins": found["origins"]}


def lasting(storage: Storage) -> Storage:
    """The same with cookies that never expire: for pages of the past."""
    return {**storage, "cookies": [{**cookie, "expires": -1} for cookie in storage["cookies"]]}


def write_storage(path: Path, storage: Storage) -> None:
    """Write the file, for its owner alone. Raises ConfigError if it can't be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(storage, file, indent=1)
        part.replace(path)
    except OSError as error:
        raise ConfigError(f"can't write the sign-in: {error.strerror}", where=str(path)) from error


def _reaches(domain: str, host: str) -> bool:
    bare = domain.removeprefix(".")
    return host == bare or (domain.startswith(".") and host.endswith(domain))
