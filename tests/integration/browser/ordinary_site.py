"""A web site of twenty pages that do what ordinary sites do: they link, send forms, redirect, ask, open, frame and
reload.

Every page has eight elements in a grid, so that an agent without eyes hits them, and most pages have a habit of their
own. The site has two names (127.0.0.1 and localhost): links from one to the other change the browser's process.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cuarl.types import Action, Click, Key, Scroll, TypeText, Wait

PAGES = 20
SIDE = 400
"""CSS pixels of the viewport, each way."""
COLUMNS, ROWS = 2, 4
WIDTH, HEIGHT = SIDE // COLUMNS, SIDE // ROWS
SLOW_S = 0.3

ELEMENTS = {
    "link": "<a href='/p{n}'>next</a>",
    "link to a long page": "<a href='/long{n}'>long</a>",
    "link to a slow page": "<a href='/slow{n}'>slow</a>",
    "link to the other name": "<a href='{other}/p{n}'>elsewhere</a>",
    "link outside": "<a href='http://127.0.0.1:9/'>outside</a>",
    "link in a new tab": "<a href='/p{n}' target=_blank>tab</a>",
    "link in a new tab without opener": "<a href='{other}/p{n}' target=_blank rel=noopener>tab</a>",
    "redirects": "<a href='/redirect3/p{n}'>redirects</a>",
    "redirect outside": "<a href='/away'>away</a>",
    "page that refreshes": "<a href='/refresh{n}'>refresh</a>",
    "nothing comes": "<a href='/empty'>204</a>",
    "link is cut": "<a href='/cut'>cut</a>",
    "page is missing": "<a href='/missing'>404</a>",
    "download": "<a href='/file'>file</a>",
    "form by GET": "<form action='/p{n}'><input name=q><button>go</button></form>",
    "form by POST": "<form action='/post/p{n}' method=post><input name=q><button>send</button></form>",
    "location.href": "<button onclick='location.href=`/p{n}`'>href</button>",
    "location.replace, soon": "<button onclick='setTimeout(()=>location.replace(`/p{n}`),30)'>replace</button>",
    "location.reload": "<button onclick='location.reload()'>reload</button>",
    "alert": "<button onclick='alert(1)'>alert</button>",
    "confirm, then leave": "<button onclick='if(confirm(`sure?`))location=`/p{n}`'>confirm</button>",
    "prompt": "<button onclick='document.title=prompt(`name?`,`x`)'>prompt</button>",
    "window.open": "<button onclick='window.open(`/p{n}`)'>open</button>",
    "window that closes": "<button onclick='window.open(`/closing`)'>closing</button>",
    "window opened and closed": "<button onclick='w=window.open(`/p{n}`);setTimeout(()=>w.close(),60)'>brief</button>",
    "window.close": "<button onclick='window.close()'>close</button>",
    "pushState": "<button onclick='history.pushState(1,``,`#${{Math.random()}}`)'>push</button>",
    "history.back": "<button onclick='history.back()'>back</button>",
    "frame": "<iframe src='/inner{n}'></iframe>",
    "frame of the other name": "<iframe src='{other}/inner{n}'></iframe>",
    "frame removed": "<iframe src='/slow{n}'></iframe><script>setTimeout(()=>"
    "document.currentScript?.previousSibling.remove(),50)</script>",
    "document.write": "<button onclick='document.open();document.write(`<a href=/p{n}>again</a>`);"
    "document.close()'>w</button>",
    "print": "<button onclick='print()'>print</button>",
    "file field": "<input type=file>",
    "list": "<select><option>a<option>b</select>",
    "work": "<button onclick='for(const t=Date.now();Date.now()-t<200;);'>work</button>",
}  # fmt: skip
HABITS = {
    2: "<script>alert('welcome')</script>",
    4: "<script>onbeforeunload=(e)=>{{e.preventDefault();return 'stay'}}</script>",
    6: "<script>if(!sessionStorage.seen){{sessionStorage.seen=1;location.reload()}}</script>",
    8: "<script>onload=()=>confirm('cookies?')</script><script>onbeforeunload=()=>'stay'</script>",
    10: "<img src='/slow.png' width=1 height=1>",
    12: "<script>setInterval(()=>document.title=Date.now(),10)</script>",
    14: "<script>onpagehide=()=>navigator.sendBeacon('/p1')</script>",
    16: "<style>body{{transition:background 1s}}body:hover{{background:#eef}}</style>",
    18: "<script>if(Math.random()<.5)location.replace('/p{n}')</script>",
}
LONG = "".join(f"<tr><td>{row}<td>{'text ' * 8}" for row in range(1500))
STYLE = f"""<style>body{{margin:0;font:14px sans-serif}} .cell{{position:absolute;width:{WIDTH}px;height:{HEIGHT}px}}
.cell>*{{display:block;box-sizing:border-box;width:100%;height:100%;border:1px solid #888}}
form *{{width:100%;height:50%;box-sizing:border-box}} table{{padding-top:{SIDE}px}}</style>"""


def page(number: int, other: str, *, long: bool = False) -> str:
    """The page of that number."""
    kinds = list(ELEMENTS)
    # by steps that share no factor with their number, so that all elements are on some page, in new company
    chosen = [kinds[(number * 5 + i * 7) % len(kinds)] for i in range(COLUMNS * ROWS)]
    cells = [
        f"<div class=cell style='left:{i % COLUMNS * WIDTH}px;top:{i // COLUMNS * HEIGHT}px'>"
        + ELEMENTS[kind].format(n=(number * 3 + i + 1) % PAGES, other=other)
        + "</div>"
        for i, kind in enumerate(chosen)
    ]
    habit = HABITS.get(number, "").format(n=(number + 1) % PAGES)
    table = f"<table>{LONG}</table>" if long else ""
    return f"<!doctype html><title>p{number}</title>{STYLE}{habit}<body><p>{number}</p>{''.join(cells)}{table}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].strip("/")
        word, number = path.rstrip("0123456789"), int("0" + path[len(path.rstrip("0123456789")) :]) % PAGES
        if word.startswith("slow"):
            time.sleep(SLOW_S)
        match word:
            case "p" | "slow" | "long":
                self._answer(page(number, self.server.other, long=word == "long"))
            case "inner":
                # inside of a frame: one link stays in it, one leaves it
                self._answer(f"{STYLE}<a href='/inner{number + 1}'>in</a><br><a href='/p{number}' target=_top>out</a>")
            case "refresh":
                self._answer(f"<meta http-equiv=refresh content='0;url=/p{number}'>wait")
            case "closing":
                self._answer("<script>close()</script>")
            case "away":
                self._redirect("http://127.0.0.1:9/")
            case "empty":
                self._answer("", status=204)
            case "cut":
                self.close_connection = True
            case "file":
                self._answer("x", kind="application/octet-stream")
            case _ if word.startswith("redirect"):
                left, _, target = path.removeprefix("redirect").partition("/")
                self._redirect(f"/redirect{int(left) - 1}/{target}" if int(left) > 1 else f"/{target}")
            case _:
                self._answer("not found", status=404)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._redirect(f"/{self.path.removeprefix('/post/')}", status=303)

    def _answer(self, text: str, *, status: int = 200, kind: str = "text/html; charset=utf-8") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _redirect(self, to: str, status: int = 302) -> None:
        self.send_response(status)
        self.send_header("Location", to)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    other = ""

    def handle_error(self, *args: object) -> None:
        pass  # a browser hangs up as it likes


@contextmanager
def serving() -> Iterator[tuple[str, str]]:
    """Both addresses of the site while it is there."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.other = f"http://localhost:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.other
    finally:
        server.shutdown()
        server.server_close()


def visitor(rng: random.Random, count: int) -> list[Action]:
    """What somebody does there: mostly clicks on the elements, and the keys of a browser."""
    actions: list[Action] = []
    for _ in range(count):
        x, y = rng.randrange(COLUMNS) * WIDTH + WIDTH // 2, rng.randrange(ROWS) * HEIGHT + rng.choice((25, 75))
        others = (
            Key(keys=("alt", "Left")), Key(keys=("alt", "Right")), Key(keys=("F5",)), Key(keys=("ctrl", "w")),
            Key(keys=("Tab",)), Key(keys=("Return",)), TypeText(text="word", submit=True),
            Scroll(direction="down", amount=3), Wait(seconds=0.1),
        )  # fmt: skip
        actions.append(Click(x=x, y=y) if rng.random() < 0.7 else rng.choice(others))
    return actions
