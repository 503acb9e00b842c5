"""What a client is told when its request is not carried out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from cuarl.errors import CuarlError


class Refusal(Exception):
    """A request that can't be served.

    ``param`` names the field at fault and ``code`` the kind of fault, where a protocol has words for them.
    """

    def __init__(
        self,
        what: str,
        *,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what)
        self.what, self.param, self.code, self.status, self.headers = what, param, code, status, headers


Say = Callable[[Refusal], Mapping[str, Any]]
"""The body of a refusal's answer, in the words of a protocol."""


def detail(refusal: Refusal) -> Mapping[str, Any]:
    """In FastAPI's words, which many servers speak."""
    return {"detail": refusal.what}


def message(refusal: Refusal) -> Mapping[str, Any]:
    """In the words of GBox, and others."""
    return {"message": refusal.what}


def openai_error(refusal: Refusal) -> Mapping[str, Any]:
    """The error object of the OpenAI protocol."""
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 409: "conflict_error"}
    kind = kinds.get(refusal.status, "server_error" if refusal.status >= 500 else "invalid_request_error")
    return {"error": {"message": refusal.what, "type": kind, "param": refusal.param, "code": refusal.code}}


def whole(name: str, digits: str, longest: int = 9) -> int:
    """A number of a query.

    Plain digits alone: Python's own ``int`` reads ``1_0`` and those of other scripts. Raises ValueError.
    """
    if not re.fullmatch(f"-?[0-9]{{1,{longest}}}", digits):
        raise ValueError(f"{name} is a whole number, not {digits[:40]!r}")
    return int(digits)


@contextmanager
def understood(status: int = 400) -> Iterator[None]:
    """Turn what goes wrong while a request is *read* into a Refusal. Nothing else belongs inside."""
    try:
        yield
    except ValidationError as error:
        said = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
        raise Refusal("; ".join(said), status=status) from error
    except KeyError as error:
        raise Refusal(f"{error.args[0]} is missing", status=status) from error
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError, OSError) as error:
        raise Refusal(str(error)[:300], status=status) from error
    except CuarlError as error:
        raise Refusal(error.what, status=status) from error
