"""How a browser shows the server's token: once, in a form, and from then on as a cookie that scripts can't read.

Programs send it as a bearer token. The cookie holds a digest of it, so that a token that is replaced ends all of them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from cuarl.web.rules import Token

COOKIE = "cuarl_monitor"


@dataclass(slots=True)
class BrowserToken(Token):
    """A token that a cookie stands for, too."""

    def borne_by(self, headers: Mapping[str, str]) -> bool:
        """Whether these headers have the token, or the cookie of somebody who had it."""
        given = _cookie(headers.get("cookie", ""))
        known = hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.cookie.encode())
        return Token.borne_by(self, headers) or known

    @property
    def cookie(self) -> str:
        """What the cookie holds."""
        return hashlib.sha256(b"cuarl monitor\n" + self.value.encode()).hexdigest()

    def is_(self, given: str) -> bool:
        """Whether somebody knows the token; takes the same time whatever is given."""
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.value.encode())


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""
