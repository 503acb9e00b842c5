"""Screenshots, and the headers that go with everything the monitor sends."""

from __future__ import annotations

import re

from starlette.responses import Response

from cuarl.errors import StoreError
from cuarl.monitor.web.desk import Desk
from cuarl.monitor.web.templating import POLICY
from cuarl.web.refusal import Refusal

SECURITY = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
}  # fmt: skip
_FOREVER = "private, max-age=31536000, immutable"
_DIGEST = re.compile("[0-9a-f]{64}")


def screen(desk: Desk, digest: str) -> Response:
    """A screenshot by its digest, which names what it shows: it never changes. Raises Refusal."""
    if not _DIGEST.fullmatch(digest):
        raise Refusal("a screenshot is named by 64 hexadecimal digits", status=404)
    try:
        data = desk.store.blobs.png(digest)
    except StoreError as error:
        raise Refusal(error.what, status=404) from error
    return Response(data, headers={**SECURITY, "cache-control": _FOREVER}, media_type="image/png")
