"""How services write pictures: what stand-ins send, and read, with nothing of the clients that they stand in for."""

from __future__ import annotations

import base64
import binascii
import io

from cuarl.types import Screenshot

PNG = "data:image/png;base64,"


def png_uri(shot: Screenshot) -> str:
    """A screenshot as a data URI (RFC 2397)."""
    made = io.BytesIO()
    shot.image.save(made, "PNG")
    return PNG + base64.b64encode(made.getvalue()).decode("ascii")


def picture_in(uri: str) -> Screenshot:
    """The screenshot of a data URI in base64. Raises ValueError."""
    scheme, _, data = uri.partition(";base64,")
    if not scheme.startswith("data:image/"):
        raise ValueError("not a picture's data URI")
    try:
        return Screenshot.decode(base64.b64decode(data, validate=True))
    except (OSError, binascii.Error) as error:
        raise ValueError(str(error)) from error
