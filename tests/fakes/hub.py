"""A model hub as far as huggingface_hub asks one for making a data set and committing files to it."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub:
    """What it holds, and what it was asked; ``url`` is its address while it is served."""

    def __init__(self, token: str = "hf_ok") -> None:
        self.token, self.url = token, ""
        self.made: dict[str, dict] = {}
        self.files: dict[str, dict[str, bytes]] = {}
        self.cards: list[str] = []
        self.refuse_commits = False

    def answer(self, method: str, path: str, body: bytes, token: str) -> tuple[int, object]:
        path = path.partition("?")[0]
        if token != f"Bearer {self.token}":
            return 401, {"error": "Invalid credentials"}
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization') or 'ann'}/{asked['name']}"
            known = name in self.made
            self.made.setdefault(name, asked)
            self.files.setdefault(name, {})
            return (409 if known else 200), {"url": f"{self.url}/datasets/{name}", "name": name}
        if path == "/api/validate-yaml":
            self.cards.append(json.loads(body)["content"])
            return 200, {"errors": [], "warnings": []}
        _, _, _, user, name, *rest = path.split("/")
        files = self.files[f"{user}/{name}"]
        if rest[:1] == ["preupload"]:
            paths = [one["path"] for one in json.loads(body)["files"]]
            return 200, {"files": [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in paths]}
        if rest[:1] == ["tree"]:
            return 200, [{"type": "file", "path": p, "size": len(d), "oid": "0" * 40} for p, d in files.items()]
        if rest[:1] == ["commit"]:
            if self.refuse_commits:
                return 507, {"error": "no room"}
            self._commit(files, [json.loads(line) for line in body.splitlines()])
            return 200, {"commitUrl": f"{self.url}/datasets/{user}/{name}/commit/1", "commitOid": "1" * 40}
        return 200, {"id": f"{user}/{name}", "sha": "0" * 40, "private": True, "siblings": [], "tags": []}

    def _commit(self, files: dict[str, bytes], operations: list[dict]) -> None:
        for one in operations:
            value = one["value"]
            if one["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif one["key"] == "deletedFile":
                files.pop(value["path"])


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    class Handler(BaseHTTPRequestHandler):
        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, answer = hub.answer(self.command, self.path, body, self.headers.get("authorization", ""))
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do

        def log_message(self, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
