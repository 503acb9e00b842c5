"""Pictures that a client names: ``data:`` URIs, and URLs of hosts that whoever started the server has allowed.

A server that fetches any URL would let its clients look into the network it stands in. So nothing is fetched unless the
host is listed, redirects are not followed, and size and time are bounded.
"""

from __future__ import annotations

import base64
import re
import warnings
from collections.abc import Collection
from urllib.parse import urlsplit

import anyio.to_thread
import httpx
from PIL import Image, UnidentifiedImageError

from cuarl.safe_text import loggable
from cuarl.types import Screenshot
from cuarl.web.refusal import Refusal

MAX_BYTES = 20 << 20
"""Largest encoded picture."""
MAX_PIXELS = 50_000_000
"""Largest picture: six screens of 4K."""
_DATA = re.compile(r"data:image/(?:png|jpe?g|webp);base64,", re.IGNORECASE)


class Pictures:
    """Opens pictures. ``hosts`` are ``name`` or ``name:port``; ``transport`` replaces the network in tests."""

    def __init__(
        self, hosts: Collection[str] = (), *, timeout_s: float = 20.0, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._hosts = frozenset(h.lower() for h in hosts)
        self._client = httpx.AsyncClient(timeout=timeout_s, follow_redirects=False, transport=transport)

    async def open(self, url: str) -> Screenshot:
        """The picture behind ``url``. Raises Refusal for anything that is none."""
        data = _decoded(url) if url[:5].lower() == "data:" else await self._fetched(url)
        return await anyio.to_thread.run_sync(_opened, data)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _fetched(self, url: str) -> bytes:
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError as error:
            raise Refusal(f"{url[:40]!r} is no URL: {error}", param="image_url") from None
        allowed = {host, f"{host}:{port}"} & self._hosts if parts.scheme in ("http", "https") else set()
        if not allowed:
            raise Refusal(
                f"pictures from {(host or url)[:80]!r} are not allowed: send a data: URI, or start the server with "
                "--allow-image-host",
                code="image_host_not_allowed",
                param="image_url",
            )
        data = bytearray()
        try:
            async with self._client.stream("GET", url) as reply:
                if reply.status_code != 200:
                    raise Refusal(f"the picture's host answered {reply.status_code}", param="image_url")
                async for chunk in reply.aiter_bytes():
                    data += chunk
                    if len(data) > MAX_BYTES:
                        raise Refusal(f"the picture has more than {MAX_BYTES >> 20} MiB", param="image_url")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Refusal(
                loggable(f"the picture can't be fetched: {type(error).__name__}"), param="image_url"
            ) from error
        return bytes(data)


def _decoded(url: str) -> bytes:
    head = _DATA.match(url)
    if head is None:
        raise Refusal("a data: URI must be a base64 PNG, JPEG or WebP", param="image_url")
    if len(url) > MAX_BYTES * 4 // 3 + 64:
        raise Refusal(f"the picture has more than {MAX_BYTES >> 20} MiB", param="image_url")
    try:
        return base64.b64decode(url[head.end() :], validate=True)
    except ValueError as error:
        raise Refusal(f"the picture is no base64: {error}", param="image_url") from None


def _opened(data: bytes) -> Screenshot:
    try:
        with warnings.catch_warnings():
            # our own bound, which is lower, is checked before anything is decoded
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            import io

            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise Refusal(f"a picture of {image.width}x{image.height} is too large", param="image_url")
                image.load()
                return Screenshot(image)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise Refusal(f"the picture can't be read: {str(error)[:80]}", param="image_url") from None
