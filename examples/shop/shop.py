"""A small web shop to try an application of one's own with.

``python examples/shop/shop.py``, then http://127.0.0.1:8765/.

Each session (``?session=NAME``) has a cart of its own. ``POST /reset?session=NAME`` empties it, ``GET
/state?session=NAME`` is what checks read. Standard library alone.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

ITEMS = ("Lamp", "Chair", "Table")
CARTS: defaultdict[str, list[str]] = defaultdict(list)
PAGE = """<!doctype html><title>Shop</title>
<style>body {{ font: 20px sans-serif; margin: 16px }}
a {{ display: block; margin: 12px 0; padding: 12px; background: #dde }}</style>
<h1>Shop</h1>{items}<p>In the cart: {cart}</p>"""


class Shop(BaseHTTPRequestHandler):
    """The page, and what resets a session and tells its state."""

    def do_GET(self) -> None:
        """The page, or the state."""
        url = urlsplit(self.path)
        session, item = (parse_qs(url.query).get(name, [""])[0] for name in ("session", "add"))
        if url.path == "/state":
            return self._send(json.dumps({"cart": CARTS[session]}), "application/json")
        if item in ITEMS:
            CARTS[session].append(item)
        items = "".join(f'<a href="/?session={session}&add={name}">Add a {name.lower()}</a>' for name in ITEMS)
        return self._send(PAGE.format(items=items, cart=", ".join(CARTS[session]) or "nothing"), "text/html")

    def do_POST(self) -> None:
        """Empty the cart."""
        CARTS[parse_qs(urlsplit(self.path).query).get("session", [""])[0]] = []
        self._send("{}", "application/json")

    def _send(self, text: str, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8765
    ThreadingHTTPServer(("127.0.0.1", port), Shop).serve_forever()
