"""What an agent program tells at its end: its last line, or what it sent to the served session's end."""

from __future__ import annotations

from pydantic import ConfigDict, Field, ValidationError

from cuarl.errors import EnvError
from cuarl.trajectory import Verdict
from cuarl.types import Record

HINT = """print '{"success": true}' or '{"success": false}' as the program's last line"""


class Told(Record):
    """How the episode went, as the program judges it; what else it says beside is its own affair."""

    model_config = ConfigDict(extra="ignore")

    success: bool
    score: float | None = Field(default=None, ge=0, le=1)
    """From 0 to 1; by ``success`` if unset."""
    reward: float | None = Field(default=None, allow_inf_nan=False)
    """For ``--reward env``: the sum of what the program's own environment gave."""

    def verdict(self) -> Verdict:
        """The verdict of the record."""
        return Verdict(success=self.success, score=float(self.success) if self.score is None else self.score)


def read_told(line: str) -> Told | None:
    """A JSON object with ``success``; None for a line that is no JSON object. Raises EnvError for one that is wrong."""
    if not line.startswith("{"):
        return None
    try:
        return Told.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "its last line"
        raise EnvError(f"the agent program's verdict can't be read: {first['msg']}", where=where, hint=HINT) from None
