"""Screenshots as files named by what they show: ``<root>/ab/cdef….png``, written once, under any fsspec URL."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from fsspec.core import url_to_fs
from PIL import UnidentifiedImageError

from cuarl.errors import ConfigError, StoreError
from cuarl.regular_file import read_regular
from cuarl.types import Screenshot

Pictures = Mapping[str, Screenshot] | Iterable[Screenshot]
"""Screenshots, or screenshots by anything."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_PNG = b"\x89PNG\r\n\x1a\n"
_REMEMBERED = 500_000
_ENCODERS = 2
_limiters: RunVar[anyio.CapacityLimiter] = RunVar("encoders")  # one per event loop


class Blobs:
    """A content-addressed folder of screenshots. Thread-safe; several processes may share one."""

    def __init__(self, url: str) -> None:
        """Open the folder at ``url``, a path or e.g. ``s3://bucket/prefix``; made when first written to."""
        try:
            self._fs, root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"the screenshot folder can't be used: {error}", where="--blobs") from None
        self._root = str(root).rstrip("/")
        self._local = "file" in _protocols(self._fs)
        # 32 bytes each; known to be stored, so that a screen that comes again costs a look-up
        self._known: set[bytes] = set()

    @property
    def root(self) -> str:
        """Where the files are, without the protocol."""
        return self._root

    @property
    def is_local(self) -> bool:
        """Whether they are in a folder of this machine."""
        return self._local

    def put(self, pictures: Pictures) -> None:
        """Store screenshots that are not stored yet. Raises StoreError if one can't be written."""
        for picture in pictures.values() if isinstance(pictures, Mapping) else pictures:
            key = bytes.fromhex(picture.digest)
            if key in self._known:
                continue
            path = self._path(picture.digest)
            try:
                if not self._is_there(path):
                    self._write(path, picture.png())
            except OSError as error:
                raise StoreError(
                    f"a screenshot can't be stored: {error.strerror or error}", where=path, hint=f"df -h {self._root}"
                ) from error
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known.add(key)

    def put_file(self, data: bytes, digest: str = "") -> str:
        """Store an encoded screenshot as it is, unless it is stored already; gives its digest.

        Raises StoreError if it is no picture, or another than ``digest`` names.
        """
        try:
            screenshot = Screenshot.decode(data)
        except OSError as error:
            raise StoreError(f"a picture can't be read: {error}") from error
        found = screenshot.digest
        if _DIGEST.fullmatch(digest) and found != digest:
            raise StoreError(f"the picture that is named {digest[:12]} shows something else ({found[:12]})")
        path = self._path(found)
        try:
            if not self._is_there(path):
                self._write(path, data if data.startswith(_PNG) else screenshot.png())
        except OSError as error:
            raise StoreError(f"a screenshot can't be stored: {error.strerror or error}", where=path) from error
        return found

    async def put_async(self, pictures: Pictures) -> None:
        """``put`` off the event loop, on at most two threads; Pillow encodes without holding the interpreter.

        What is there already needs no thread: a worker stores what it has encoded.
        """
        all_of_them = pictures.values() if isinstance(pictures, Mapping) else pictures
        missing = [picture for picture in all_of_them if not self._is_stored(picture)]
        if missing:
            await anyio.to_thread.run_sync(self.put, missing, limiter=_limiter())

    def _is_stored(self, picture: Screenshot) -> bool:
        if not picture.digested:
            return False
        key = bytes.fromhex(picture.digest)
        if key in self._known:
            return True
        # the others take a thread anyway
        there = picture.is_encoded and self._local and self._is_there(self._path(picture.digest))
        if there:
            self._known.add(key)
        return there

    def get(self, digest: str) -> Screenshot:
        """Read a screenshot back. Raises StoreError if it is missing or not a picture."""
        return self._decode(digest, self.png(digest))

    def png(self, digest: str) -> bytes:
        """The encoded file. Raises StoreError if it is missing."""
        path = self._path(digest)
        if not self._is_there(path):
            raise StoreError(f"screenshot {digest[:12]} is missing", where=path, hint="cuarl db check")
        try:
            return read_regular(Path(path), follow=False) if self._local else bytes(self._fs.cat_file(path))
        except OSError as error:
            raise StoreError(f"a screenshot can't be read: {error.strerror or error}", where=path) from error

    def exists(self, digest: str) -> bool:
        """Whether a screenshot is stored."""
        return bytes.fromhex(digest) in self._known or self._is_there(self._path(digest))

    def check(self, digest: str) -> None:
        """Decode a stored screenshot and compare.

        Raises StoreError if it is missing, broken or shows something else.
        """
        found = self.get(digest).digest
        if found != digest:
            raise StoreError(f"screenshot {digest[:12]} shows something else ({found[:12]})", where=self._path(digest))

    def digests(self) -> Iterator[str]:
        """All that is stored."""
        try:
            folders = self._fs.ls(self._root, detail=False)
        except FileNotFoundError:
            return
        for folder in sorted(folders):
            head = folder.rstrip("/").rsplit("/", 1)[-1]
            names = self._fs.ls(folder, detail=False) if len(head) == 2 else []
            for name in sorted(names):
                digest = head + name.rsplit("/", 1)[-1].removesuffix(".png")
                if _DIGEST.fullmatch(digest) and (not self._local or self._is_there(name)):
                    yield digest

    def remove(self, digests: Iterable[str]) -> int:
        """Delete screenshots; gives how many were there."""
        count = 0
        for digest in sorted(digests):
            self._known.discard(bytes.fromhex(digest))
            try:
                self._fs.rm_file(self._path(digest))
            except FileNotFoundError:
                continue
            count += 1
        return count

    def copy_all(self, other: Blobs, digests: Iterable[str]) -> int:
        """Copy encoded files as they are to where they are missing; gives how many of ``digests`` are there now.

        Those that are missing here are left out: ``check`` reports them.
        """
        count = 0
        for digest in sorted(digests):
            path = other._path(digest)
            if not other._is_there(path):
                if not self._is_there(self._path(digest)):
                    continue
                other._write(path, self.png(digest))
            count += 1
        return count

    def _is_there(self, path: str) -> bool:
        """Whether there is a file; a link is none, since it may lead anywhere, and neither is what lies behind one."""
        if not self._local:
            return bool(self._fs.exists(path))
        try:
            behind_link = Path(path).parent.is_symlink()
            return not behind_link and stat.S_ISREG(os.lstat(path).st_mode)
        except OSError:
            return False

    def _path(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise StoreError(f"not a screenshot's digest: {digest[:80]!r}")
        return f"{self._root}/{digest[:2]}/{digest[2:]}.png"

    def _decode(self, digest: str, data: bytes) -> Screenshot:
        try:
            return Screenshot.decode(data)
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
            raise StoreError(
                f"screenshot {digest[:12]} is broken: {error}", where=self._path(digest), hint="cuarl db check"
            ) from error

    def _write(self, path: str, data: bytes) -> None:
        if not self._local:  # object stores show a file only once it is whole
            self._fs.pipe_file(path, data)
            return
        target = Path(path)
        if target.parent.is_symlink():
            raise StoreError("a screenshot can't be stored behind a link", where=str(target.parent), hint="rm the link")
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            try:
                temporary.write_bytes(data)
            except FileNotFoundError:
                target.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_bytes(data)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def _limiter() -> anyio.CapacityLimiter:
    try:
        return _limiters.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_ENCODERS)
        _limiters.set(limiter)
        return limiter


def _protocols(filesystem: Any) -> tuple[str, ...]:
    protocol = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
