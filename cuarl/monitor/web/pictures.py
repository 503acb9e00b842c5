"""Screenshots, episodes as moving pictures, and the headers that go with everything the monitor sends."""

from __future__ import annotations

import re

from starlette.responses import Response

from cuarl.errors import StoreError
from cuarl.monitor.film import gif
from cuarl.monitor.frames import draw
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


def film(desk: Desk, episode_id: str) -> Response:
    """An episode that is over as a GIF, made when somebody asks for it. Raises Refusal."""
    found = desk.pages.load([episode_id]).get(episode_id)
    if found is None or not (found.turns or found.final_screenshot):
        raise Refusal("there is no such episode that is over and has screens", status=404)
    try:
        data = gif(draw(found, desk.store.blobs.get))
    except StoreError as error:
        raise Refusal(error.what, status=404) from error
    return Response(data, headers={**SECURITY, "cache-control": "no-store"}, media_type="image/gif")
