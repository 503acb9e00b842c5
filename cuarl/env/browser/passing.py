"""What a page refuses for a moment only, since it is being replaced or was closed: no fault of the browser."""

from __future__ import annotations

from typing import Any

REPLACED = (
    "Not attached to an active page",
    "Execution context was destroyed",
    "because of a navigation",
    "interrupted by another navigation",
    "Cannot find context with specified id",
    "frame was detached",
    "Frame has been detached",
)
NO_FRAME_YET = ("Unable to capture", "Internal error")
UNREACHED = ("net::ERR_", "Navigation failed because page was closed", "No history entry")
"""A navigation led nowhere: the site, or the fence, has something against it."""


def is_passing(error: BaseException, page: Any, *more: str) -> bool:
    """Whether the same may be asked again: of ``page``, or of the one that is shown now that it is closed."""
    return page.is_closed() or any(words in str(error) for words in (*REPLACED, *more))


def first_line(error: BaseException) -> str:
    """What an error says, without the call log that Playwright adds."""
    lines = str(error).splitlines()
    return lines[0] if lines else ""
