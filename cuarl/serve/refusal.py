"""What a client is told when its request is not carried out: the error object of the OpenAI protocol."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A request that can't be served. ``param`` names the field at fault, as the protocol's errors do."""

    def __init__(self, what: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(what)
        self.what, self.param, self.code, self.status = what, param, code, status

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body of the reply."""
        kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 409: "conflict_error"}
        kind = kinds.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": self.what, "type": kind, "param": self.param, "code": self.code}}
