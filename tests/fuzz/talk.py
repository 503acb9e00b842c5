"""Servers that speak no HTTP, or not only: messages of a WebSocket, and bytes to adb."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.requests import bodies

ANSWER_S = 30.0
LINES = st.sampled_from([
    "input tap 5 5", "input tap 5", "input tap x y", "input tap 99999999999999999999 1",
    "input swipe 1 1 2 2 99999999999", "input text 'a", "input text",
    "input keyevent 4", "input keyevent x", "input keyevent 99999", "input keycombination", "input motionevent UP 1 1",
    "input draganddrop 1 1 2 2 x",
    "settings put system screen_brightness x", "settings put system screen_brightness 99999999999999999999",
    "settings get a b", "settings",
    "am start -n x/y", "am broadcast -a ADB_INPUT_B64 --es msg ====",
    "am broadcast -a ADB_INPUT_B64 --es msg /////w==", "cat", "cat a b", "ls", "rm", "getprop", "sleep",
    "sleep nan", "sleep -1", "sleep 1e999", "dumpsys power", "cuarl-device", "cuarl-device oracle",
    "CUARL_TASK=x cuarl-device reset", "CUARL_ cuarl-device",
    "CUARL_TASK={} CUARL_SEED=1_0 cuarl-device reset", "cuarl-device answer", "echo $?", ";;&&", "&&", "screencap -p",
    "uiautomator dump /x",
    "wm size", "\x00", "ä" * 500, "pm clear x",
])  # fmt: skip
"""Commands of a shell, right and wrong."""


def messages_answered(url: str, token: str, shapes: Sequence[Mapping[str, Any]], count: int) -> list[str]:
    """Send ``count`` messages, nearly right, in one session after the other; gives what was wrong with the answers."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    faults: list[str] = []
    open_ = ExitStack()
    line: Any = None

    def fresh() -> Any:
        open_.close()
        headers = {"Authorization": f"Bearer {token}"}
        return open_.enter_context(connect(url, additional_headers=headers, proxy=None, max_size=None))

    @seed(0)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(list(shapes)).flatmap(bodies), st.booleans())
    def say(data: bytes, as_text: bool) -> None:
        nonlocal line
        line = line or fresh()
        try:
            line.send(data.decode("utf-8", "replace") if as_text else data)
            reply = json.loads(line.recv(timeout=ANSWER_S))
            if reply.get("type") not in ("observation", "state", "error"):
                faults.append(f"{data[:300]!r} is answered {reply!r:.200}")
        except ConnectionClosed as error:
            line = None
            if error.rcvd is None or error.rcvd.code not in (1000, 1009):
                faults.append(f"{data[:300]!r} ends the session: {error}")
        except (TimeoutError, ValueError) as error:
            line = None
            faults.append(f"{data[:300]!r}: {error!r}")

    with open_:
        say()
    return faults


@st.composite
def spoken(draw: st.DrawFn) -> bytes:
    """What an adb server is told: right requests, wrong ones, and other protocols."""
    kind = draw(st.sampled_from(["shell", "shell", "shell", "host", "bytes"]))
    if kind == "bytes":
        return draw(
            st.binary(max_size=100)
            | st.sampled_from(
                [b"GET / HTTP/1.1\r\n\r\n", b"-001x", b"ffff", b"0x10host", b"00 1", b"0004\xff\xfe\xfd\xfc"]
            )
        )
    if kind == "host":
        return block(
            draw(
                st.sampled_from(
                    ["host:version", "host:devices", "host:transport:two", "host:kill", "", "host:", "shell:echo"]
                )
            )
        )
    line = ";".join(draw(st.lists(LINES | st.text(max_size=20), min_size=1, max_size=3)))
    return block("host:transport:one") + block(f"{draw(st.sampled_from(['shell', 'exec']))}:{line}")


def block(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")[:0xFFFF]
    return b"%04x%b" % (len(data), data)


def told(url: str, data: bytes) -> tuple[str, str]:
    """What became of bytes that an adb server was told, and what is wrong with that."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=ANSWER_S) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(_all_of(connection))
        except ConnectionError:
            return "closed", ""
        except TimeoutError:
            return "closed", f"no end within {ANSWER_S:g} s"
    return ("2xx" if answer.startswith(b"OKAY") else "4xx" if answer.startswith(b"FAIL") else "closed"), ""


def _all_of(connection: socket.socket) -> Iterator[bytes]:
    while data := connection.recv(1 << 16):
        yield data
