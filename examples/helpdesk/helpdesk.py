"""A small help desk to try an application of one's own with: sign-in, a list, search, a form, a dialog.

``python examples/helpdesk/helpdesk.py``, then http://127.0.0.1:8766/.

Each session (``?session=NAME``) has tickets of its own. ``POST /reset?session=NAME`` with ``{"seed": 3}`` draws four of
the ten, in an order of their own; ``POST /set?session=NAME`` with ``{"signed_in": "Ann", "show": "Printer", "hide":
"Screen"}`` signs in and sees that one ticket is among them and another is not. ``GET /state?session=NAME`` is what
checks read. Standard library alone.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import asdict, dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

TITLES = ("Printer", "Screen", "Mouse", "Phone", "Network", "Camera", "Battery", "Password", "Mail", "Keyboard")
PEOPLE = ("Ann", "Bob", "Cem")
SHOWN = 4
STYLE = """body { font: 20px sans-serif; margin: 12px } h1 { font-size: 22px; margin: 0 0 10px }
a, button { display: block; box-sizing: border-box; width: 100%; margin: 6px 0; padding: 7px; font: inherit;
  text-align: left; text-decoration: none; color: #124; background: #dde; border: 0 }
input { box-sizing: border-box; width: 100%; margin: 4px 0; padding: 6px; font: inherit; border: 2px solid #88a }
input[type=radio] { width: auto } .two { display: flex; gap: 8px } p { margin: 6px 0 }"""


@dataclass
class Ticket:
    """One thing that somebody wants mended."""

    status: str = "open"
    owner: str | None = None
    priority: str = "low"


@dataclass
class Session:
    """What one visitor has before them."""

    signed_in: str | None = None
    tickets: dict[str, Ticket] = field(default_factory=dict)
    found: str = ""


SESSIONS: dict[str, Session] = {}


def started(seed: int) -> Session:
    """Four tickets drawn by ``seed``."""
    drawn = random.Random(seed).sample(TITLES, SHOWN)
    return Session(tickets={title: Ticket() for title in drawn})


def arrange(session: Session, asked: dict[str, str]) -> None:
    """Sign in, and have one ticket in the list in the place of another, and one out of it."""
    session.signed_in = asked.get("signed_in")
    titles = list(session.tickets)
    spare = [title for title in TITLES if title not in titles and title not in asked.values()]
    if asked.get("hide") in titles:
        titles[titles.index(asked["hide"])] = spare.pop()
    if "show" in asked and asked["show"] not in titles:
        titles[random.Random(str(titles)).randrange(SHOWN)] = asked["show"]
    session.tickets = {title: Ticket(status=asked.get("status", "open")) for title in titles}


class Pages:
    """The pages of one session, as HTML; each action is an address."""

    def __init__(self, name: str, session: Session) -> None:
        self._name, self._session = name, session

    def page(self, path: str, asked: dict[str, str]) -> tuple[str, str]:
        """Title and body at ``path`` after doing what is ``asked``."""
        if path == "/enter" and asked.get("name") in PEOPLE and asked.get("password") == "sesame":
            self._session.signed_in = asked["name"]
        if self._session.signed_in is None:
            return "Sign in", self._sign_in()
        title = asked.get("ticket", "")
        if path == "/save" and title:
            self._session.tickets.setdefault(title, Ticket(priority=asked.get("priority", "low")))
        if path == "/new":
            return "New ticket", self._form()
        if title in self._session.tickets and path in ("/ticket", "/give", "/delete"):
            return self._about(path, title, asked)
        self._session.found = asked.get("search", "")
        return "Tickets", self._list()

    def _about(self, path: str, title: str, asked: dict[str, str]) -> tuple[str, str]:
        ticket = self._session.tickets[title]
        if path == "/delete" and asked.get("sure"):
            del self._session.tickets[title]
            return "Tickets", self._list()
        if path == "/delete":
            sure = self._link("Delete it", "/delete", ticket=title, sure="yes")
            return f"Delete {title}?", sure + self._link("Keep it", "/ticket", ticket=title)
        if path == "/give" and asked.get("to") not in PEOPLE:
            return f"Give {title} to", "".join(self._link(who, "/give", ticket=title, to=who) for who in PEOPLE)
        if path == "/give":
            ticket.owner = asked["to"]
        ticket.status = asked.get("status", ticket.status)
        return title, self._ticket(title, ticket)

    def _ticket(self, title: str, ticket: Ticket) -> str:
        turned = "Close" if ticket.status == "open" else "Reopen"
        status = "closed" if turned == "Close" else "open"
        return (
            f"<p>{ticket.status}, {ticket.owner or 'nobody'}, {ticket.priority}</p>"
            + self._link(turned, "/ticket", ticket=title, status=status)
            + self._link("Give to", "/give", ticket=title)
            + self._link("Delete", "/delete", ticket=title)
            + self._link("Back", "/")
        )

    def _list(self) -> str:
        shown = [title for title in self._session.tickets if self._session.found.lower() in title.lower()]
        return (
            self._field("/", '<input name="search" placeholder="Search">')
            + "".join(self._link(title, "/ticket", ticket=title) for title in shown)
            + self._link("New ticket", "/new")
        )

    def _form(self) -> str:
        radio = '<label><input type="radio" name="priority" value="{0}"> {0}</label>'
        return self._field(
            "/save",
            '<input name="ticket" placeholder="Title"><p class="two">'
            + "".join(radio.format(priority) for priority in ("low", "high"))
            + "</p><button>Save</button>",
        )

    def _sign_in(self) -> str:
        return self._field(
            "/enter",
            '<input name="name" placeholder="Name"><input name="password" placeholder="Password">'
            "<button>Sign in</button>",
        )

    def _link(self, text: str, path: str, **asked: str) -> str:
        query = urlencode({"session": self._name, **asked})
        return f'<a href="{path}?{escape(query)}">{escape(text)}</a>'

    def _field(self, path: str, fields: str) -> str:
        hidden = f'<input type="hidden" name="session" value="{escape(self._name)}">'
        return f'<form action="{path}" autocomplete="off">{hidden}{fields}</form>'


class HelpDesk(BaseHTTPRequestHandler):
    """The pages, and what starts a session, arranges it and tells its state."""

    def do_GET(self) -> None:
        """A page, or the state."""
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        name = asked.pop("session", "")
        session = SESSIONS.setdefault(name, started(0))
        if url.path == "/state":
            tickets = [{"title": title, **asdict(ticket)} for title, ticket in session.tickets.items()]
            told = {"signed_in": session.signed_in, "tickets": tickets}
            return self._send(json.dumps(told), "application/json")
        title, body = Pages(name, session).page(url.path, asked)
        head = f"<!doctype html><title>{escape(title)}</title><style>{STYLE}</style><h1>{escape(title)}</h1>"
        return self._send(head + body, "text/html")

    def do_POST(self) -> None:
        """Start a session anew, or arrange it."""
        url = urlsplit(self.path)
        name = parse_qs(url.query).get("session", [""])[0]
        given = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        if url.path == "/reset":
            SESSIONS[name] = started(int(given.get("seed", 0)))
        elif url.path == "/set":
            arrange(SESSIONS.setdefault(name, started(0)), given)
        self._send("{}", "application/json")

    def _send(self, text: str, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8766
    ThreadingHTTPServer(("127.0.0.1", port), HelpDesk).serve_forever()
