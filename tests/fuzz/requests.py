"""Requests as hypothesis draws them: most of them nearly right, since what is refused at the door tests the door
alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "FLY")


@dataclass(frozen=True)
class Raw:
    """JSON text that stands as it is, whether it is JSON or not."""

    text: str


@dataclass(frozen=True)
class Shape:
    """One route: how it is asked rightly. ``{name}`` in the path stands for one of the server's things of that name."""

    method: str
    path: str
    body: Any = None
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What is sent, byte by byte; ``leaves`` says that the client goes before its answer."""

    data: bytes
    leaves: bool
    head: bool


NUMBERS = ("0", "-1", "1.5", "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999", "18446744073709551616",
    "-9223372036854775809",
           "1" * 4400, "9" * 400 + ".5", "0x10", "1_0", "٣", "-0", "1e308")  # fmt: skip
TEXTS = ('""', '"x"', r'"\ud800"', r'"\u0000"', '"\x00"', '"<|im_end|>"', json.dumps("ä" * 3000), '"../../etc/passwd"',
    r'"\ud83d\ude00"',
         '"NaN"', '"1e999"', '"http://["', '"data:image/png;base64,AAAA"', '"' + "1" * 5000 + '"', '"a" "b"',
         "'x'")  # fmt: skip
OTHERS = ("null", "true", "false", "[]", "{}", "[[]]", '{"":{}}', "[" * 300 + "]" * 300, "[" * 5000, '{"a":' * 5000,
    "nul", "", ",",
          '{"a":1,"a":2}', "[" + "1," * 3000 + "1]", '[{"type":["x"]}]', '{"$ref":"#"}')  # fmt: skip
NASTY = st.sampled_from([Raw(text) for text in (*NUMBERS, *TEXTS, *OTHERS)])
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.text(max_size=20) | NASTY,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=8), inside, max_size=4),
    max_leaves=8,
)
SEGMENTS = st.sampled_from(
    [
        "",
        "x",
        "..",
        "%2e%2e",
        "%00",
        "%ff",
        "%C3%A4",
        "a" * 3000,
        "0",
        "-1",
        "1" * 4400,
        "%2F",
        "a%2Fb",
        "%F0%9F%92%A5",
        "*",
        ";",
        "~",
    ]
)
QUERIES = st.sampled_from(
    [
        "",
        "0",
        "-1",
        "1.5",
        "nan",
        "inf",
        "1e999",
        "1" * 5000,
        "%ff",
        "%00",
        "x" * 3000,
        "1_0",
        "%D9%A3",
        "[]",
        "{}",
        "[" * 2000,
        "NaN",
    ]
)
TYPES = st.sampled_from(["application/json", "text/plain", "", "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
                         "application/json; charset=utf-16", "APPLICATION/JSON;a=b", "json",
                         "application/json\x80"])  # fmt: skip
HEADERS = st.sampled_from([
    "Origin: http://evil.com", "Origin: null", "Host: evil.com", "Host: ", "Host: [::", "Sec-Fetch-Site: cross-site",
    "Expect: 100-continue",
    "Upgrade: websocket\r\nConnection: Upgrade", "Upgrade: h2c\r\nConnection: Upgrade", "Content-Encoding: gzip",
    "Range: bytes=0-1",
    "Idempotency-Key: k", "Idempotency-Key: " + "k" * 3000, "X-Cuarl-Session: s", "X-Cuarl-Session: ../x",
    "X-Forwarded-For: 1.2.3.4",
    "Authorization: Bearer", "Authorization: \xff\xfe", "X-Session-Token: wrong", "Cookie: a=b", "A: " + "b" * 9000,
    "Content-Length: 5",
    "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Content-Length: -1",
    "Content-Length: 99999999999999999999", ": x", "a b: c",
    "Accept: text/event-stream", "Connection: keep-alive, close",
])  # fmt: skip


def written(value: Any) -> str:
    """JSON of a tree that may hold ``Raw``."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(str(k))}:{written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything in a tree, itself included."""
    inside = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inside for place in places(item, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The tree with ``new`` at ``path``."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, Mapping) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


@st.composite
def _damaged(draw: st.DrawFn, body: bytes) -> bytes:
    """A body of no text that is cut, or has other bytes in one to three places."""
    data = bytearray(body[: draw(st.integers(0, len(body)))] if draw(st.booleans()) else body)
    for _ in range(draw(st.integers(1, 3)) if data else 0):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=8))
    return bytes(data)


@st.composite
def bodies(draw: st.DrawFn, body: Any) -> bytes:
    """A body: the right one, one that is wrong in one to three places, any JSON, or no JSON at all; of bytes alone, if
    it is bytes."""
    kind = draw(
        st.sampled_from(["right", "right", "right", "wrong", "wrong", "wrong", "wrong", "other", "bytes", "none"])
    )
    if kind == "none":
        return b""
    if kind == "bytes":
        return draw(
            st.binary(max_size=200)
            | st.sampled_from(
                [b"\xff\xfe{\x00", b"\x1f\x8b\x08", b"{" * 50_000, b'"' + b"x" * 70_000, b"%PDF", b"a=b&c=d"]
            )
        )
    if isinstance(body, bytes):
        return draw(_damaged(body)) if kind in ("wrong", "other") else body
    tree = {} if body is None else body
    if kind == "other":
        tree = draw(PLAIN)
    for _ in range(draw(st.integers(1, 3)) if kind == "wrong" else 0):
        at = draw(st.sampled_from(places(tree)))
        tree = put(tree, at, draw(NASTY | PLAIN))
    return written(tree).encode("utf-8", "surrogatepass")


@st.composite
def paths(draw: st.DrawFn, shape: Shape) -> str:
    """The path of a route, its parts mostly those of things that are there, with a query.

    What is there when it is asked is not known when it is drawn: ``{3:box}`` is one of them, the third if there are so
    many.
    """
    path = shape.path
    for name in re.findall(r"{(\w+)}", path):
        part = f"{{{draw(st.integers(0, 7))}:{name}}}" if draw(st.integers(0, 4)) else draw(SEGMENTS)
        path = path.replace(f"{{{name}}}", part)
    if draw(st.integers(0, 19)) == 0:
        path = draw(
            st.sampled_from(
                [
                    "/",
                    "*",
                    "/%00",
                    "//evil.com/x",
                    "http://evil.com/x",
                    "/../" + "a" * 4000,
                    f"{path}/",
                    f"{path}/x",
                    "/%ff",
                ]
            )
        )
    asked = [
        f"{name}={draw(st.sampled_from([quote(v) for v in values]) if draw(st.integers(0, 3)) else QUERIES)}"
        for name, values in shape.query.items()
        if draw(st.integers(0, 5))
    ]
    return path + ("?" + "&".join(asked) if asked else "")


def resolved(data: bytes, names: Mapping[str, Sequence[str]]) -> bytes:
    """The bytes of a request for what is there now."""

    def one(found: re.Match[bytes]) -> bytes:
        there = names.get(found[2].decode()) or ["none"]
        return there[int(found[1]) % len(there)].encode()

    line, end, rest = data.partition(b"\r\n")
    return re.sub(rb"{(\d):(\w+)}", one, line) + end + rest


@st.composite
def requests(draw: st.DrawFn, shapes: Sequence[Shape], headers: Mapping[str, str]) -> Request:
    """A request to one of ``shapes``, with ``headers`` that let it in, mostly."""
    shape = draw(st.sampled_from(list(shapes)))
    method = shape.method if draw(st.integers(0, 9)) else draw(st.sampled_from(METHODS))
    lines = [
        f"{method} {draw(paths(shape))} HTTP/1.{draw(st.sampled_from('1111110'))}",
        "Host: 127.0.0.1",
        "Connection: close",
    ]
    if draw(st.integers(0, 19)):
        lines += [f"{name}: {value}" for name, value in headers.items()]
    sent = draw(bodies(shape.body)) if shape.body is not None or method not in ("GET", "HEAD") else b""
    lines.append(f"Content-Type: {'application/json' if draw(st.integers(0, 9)) else draw(TYPES)}")
    if sent and draw(st.integers(0, 3)) == 0:
        lines.append("Transfer-Encoding: chunked")
        cut = draw(st.integers(0, len(sent)))
        parts = [part for part in (sent[:cut], sent[cut:]) if part]
        sent = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + draw(
            st.sampled_from([b"0\r\n\r\n"] * 4 + [b"zz\r\n"])
        )
    else:
        lines.append(
            f"Content-Length: {len(sent) if draw(st.integers(0, 19)) else draw(st.integers(0, 2 * len(sent)))}"
        )
    lines += [draw(HEADERS) for _ in range(draw(st.sampled_from([0, 0, 0, 0, 1, 2])))]
    data = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + sent
    leaves = draw(st.integers(0, 19)) == 0
    if leaves:
        data = data[: draw(st.integers(0, len(data)))]
    return Request(data, leaves, method == "HEAD")
