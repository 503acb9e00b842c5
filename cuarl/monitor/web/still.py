"""A run's pages as files that open from disk and can be sent: the monitor's own, with links between the files.

The pages are asked for one after another, beginning with the run, and followed as far as they are about it. What needs
a server is left out (forms, news, other runs).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from html import escape, unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
from starlette.types import ASGIApp

from cuarl.errors import StoreError
from cuarl.monitor.web.templating import address
from cuarl.store.pages import Pages

_LINK = re.compile(r'(href|src)="([^"]*)"')
_START = "index.html"


@dataclass(slots=True)
class Still:
    """One report being written."""

    app: ASGIApp
    pages: Pages
    run_id: str
    folder: Path
    files: dict[str, str] = field(default_factory=dict)
    """The file of each address that is taken along, relative to the folder."""
    todo: list[str] = field(default_factory=list)
    episodes: dict[str, bool] = field(default_factory=dict)
    """Whether an episode is this run's."""

    async def write(self) -> int:
        """Write all; gives the number of pages."""
        start = address("", "runs", self.run_id)
        self.files[start], self.todo = _START, [start]
        written = 0
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            while self.todo:
                path = self.todo.pop()
                answer = await client.get(path)
                if answer.status_code != 200:
                    raise StoreError(f"a page of the report can't be made ({answer.status_code})", where=path)
                written += "text/html" in answer.headers["content-type"]
                self._keep(path, answer)
        return written

    def _keep(self, path: str, answer: httpx.Response) -> None:
        file = self.folder / self.files[path]
        file.parent.mkdir(parents=True, exist_ok=True)
        if "text/html" not in answer.headers["content-type"]:
            file.write_bytes(answer.content)
            return
        up = "../" * self.files[path].count("/")
        file.write_text(_LINK.sub(lambda link: self._linked(link, up), answer.text), encoding="utf-8")

    def _linked(self, link: re.Match[str], up: str) -> str:
        """The link to the file of what is taken along; no link to anything else."""
        target, _, place = unescape(link[2]).partition("#")
        if not target or urlsplit(target).netloc:  # nothing, or a tracker's page elsewhere
            return link[0]
        if target not in self.files:
            if not self._belongs(target):
                return 'aria-disabled="true"'
            self.files[target] = _file(target)
            self.todo.append(target)
        return f'{link[1]}="{escape(up + self.files[target])}{"#" + escape(place) if place else ""}"'

    def _belongs(self, target: str) -> bool:
        """Whether a page is about this run."""
        parts = urlsplit(target)
        names, query = [httpx.URL(f"http://x/{p}").path[1:] for p in parts.path.split("/")[1:]], parse_qs(parts.query)
        match names:
            case ["files" | "screens", _]:
                return True
            case ["runs", run, *_]:
                return run == self.run_id
            case ["episodes"]:
                return query.get("run") == [self.run_id]
            case ["episodes", episode] | ["episodes", episode, "film.gif"]:
                return self._is_mine(episode)
            case ["evaluations", evaluation]:
                found = self.pages.evaluation_by_id(evaluation)
                return found is not None and found.run_id == self.run_id
        return False

    def _is_mine(self, episode_id: str) -> bool:
        if episode_id not in self.episodes:
            line = self.pages.episode_line(episode_id)
            self.episodes[episode_id] = line is not None and line.run_id == self.run_id
        return self.episodes[episode_id]


def _file(target: str) -> str:
    """A name for an address, whatever is in it; equal ones have equal names."""
    path = urlsplit(target).path
    if path.startswith(("/files/", "/screens/")):
        return path[1:]
    digest = hashlib.sha256(target.encode()).hexdigest()[:10]
    if path.endswith("/film.gif"):
        return f"films/{digest}.gif"
    return f"pages/{re.sub(r'[^A-Za-z0-9.-]+', '-', path).strip('-.')[:60]}-{digest}.html"
