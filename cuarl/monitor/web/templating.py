"""Templates, and what keeps the texts in them from doing anything.

Autoescaping turns text into text wherever it stands. ``finalize`` makes control characters visible that a browser would
drop, obey or reorder by; and the policy that is sent with every page (``POLICY``) lets no script run but our own file.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cuarl.monitor.lines import number, span
from cuarl.monitor.web.curves import Line

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of every answer."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


@cache
def environment() -> Environment:
    """The templates."""
    found = Environment(
        loader=PackageLoader("cuarl.monitor.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        cache_size=200,
    )
    found.filters |= {
        "number": plain_number,
        "percent": percent,
        "when": when,
        "ago": ago,
        "span": span,
        "json": as_json,
        "part": part,
        "circles": circles,
    }
    return found


def prepare() -> None:
    """Compile all templates, so that nobody who asks first waits for it."""
    made = environment()
    for name in made.list_templates():
        made.get_template(name)


def circles(line: Line) -> Markup:
    """The dots of a chart's line: some hundreds a page, so they are put together here."""
    before = f'<circle class="point k{line.number % 8}" cx="'
    dots = (f'{before}{d.x}" cy="{d.y}" r="2.5"><title>{escape(visible(d.words))}</title></circle>' for d in line.dots)
    return Markup("".join(dots))


def page(name: str, prefix: str, values: Mapping[str, Any]) -> str:
    """A page of a template."""
    return environment().get_template(name).render(url=partial(address, prefix), **values)


def visible(value: Any) -> Any:
    """Text with its control characters as pictures (U+2400 …) or as U+FFFD; all else as it is."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return _CONTROL.sub(_picture, value)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def part(text: str) -> str:
    """One part of a path, whatever it holds: an id may come from anywhere."""
    return quote(text, safe="", errors="surrogatepass")


def address(prefix: str, *parts: object, **query: object) -> str:
    """The address of a page: ``address(prefix, "runs", id, page=2)``."""
    path = "/".join([prefix, *(part(str(one)) for one in parts)]) or "/"
    given = {name: value for name, value in query.items() if value not in (None, "")}
    asked = urlencode(given, errors="surrogatepass") if given else ""
    return (path if parts else f"{prefix}/") + (f"?{asked}" if asked else "")


# --- numbers and times in words ------------------------------------------------------------------------------------


def plain_number(value: Any, nothing: str = "–") -> str:
    """Four significant digits; a dash for nothing."""
    return nothing if value is None or (isinstance(value, float) and math.isnan(value)) else number(value)


def percent(value: Any, nothing: str = "–") -> str:
    """A share in per cent."""
    return nothing if value is None or math.isnan(value) else f"{100 * value:.3g} %"


def when(at: float | None) -> str:
    """A Unix time, UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S") if at and 0 < at < 2e11 else "–"


def ago(at: float | None) -> str:
    """How long ago."""
    return f"{span(max(0.0, time.time() - at))} ago" if at else "–"


def as_json(value: Any) -> str:
    """Data as people read it."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
