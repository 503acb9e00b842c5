"""A local adb server whose device is the simulated phone: for tests, and to try ``--env adb`` without a phone.

``python -m cuarl.env.adb.fake`` listens on 127.0.0.1:5038; point clients at it by ANDROID_ADB_SERVER_PORT=5038. It speaks
the host protocol (four hexadecimal digits of length, then the request) as far as tracking, screenshots and shells go.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shlex
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from cuarl.env.adb.commands import BUTTONS, KEYS, UNICODE_IME
from cuarl.env.sim.base import SimulatedEnv
from cuarl.env.sim.make import make_sim
from cuarl.errors import CuarlError
from cuarl.tasks.paths import lookup
from cuarl.tasks.task import TaskInstance
from cuarl.types import ACTION, Screenshot

EMPTY = TaskInstance(task_id="device", goal="an unused phone", checks=())
VERSION = 41
SETTINGS: Mapping[tuple[str, str], str] = {
    ("global", "wifi_on"): "network.wifi.enabled",
    ("global", "airplane_mode_on"): "network.airplane_mode",
}
"""Settings that the simulated phone answers for, by the path in its state."""
_BUTTON_OF = {code: name for name, code in BUTTONS.items() if name != "enter"}
_KEY_OF = {code: key for key, code in reversed(list(KEYS.items()))} | {66: "Return", 67: "BackSpace", 112: "Delete"}
DATA_ERROR, UNKNOWN_COMMAND = 65, 127
SILENT = frozenset({"wm", "ime", "true"})


class FakePhone:
    """One device: a simulated phone that understands the shell commands that ``AdbEnv`` sends, and few others."""

    def __init__(self, serial: str, profile: str = "small") -> None:
        self.serial, self.profile, self.gone = serial, profile, False
        self.kept: dict[tuple[str, str], str] = {}
        self._sim: SimulatedEnv[Any] | None = None
        self._shot: Screenshot | None = None
        self._path: list[tuple[int, int]] = []

    async def set_up(self, task: TaskInstance, seed: int) -> SimulatedEnv[Any]:
        """Start anew with a task."""
        sim = make_sim("phone", self.profile, clutter=0.0)
        self._shot = (await sim.reset(task, seed)).screenshot
        self._sim = sim
        return sim

    async def run(self, line: str) -> bytes:
        """What a shell prints for ``line``: commands joined by ``;`` or ``&&``, of which ``echo`` knows ``$?``."""
        printed, status = b"", 0
        for words, skip_on_failure in _split(line):
            if skip_on_failure and status:
                continue
            if words[:1] == ["echo"]:
                printed += " ".join(words[1:]).replace("$?", str(status)).encode() + b"\n"
                continue
            status, output = await self._command(words)
            printed += output
        return printed

    async def _command(self, words: list[str]) -> tuple[int, bytes]:
        sim = self._sim or await self.set_up(EMPTY, 0)
        assigned = dict(word.split("=", 1) for word in words if word.startswith("CUARL_"))
        words = words[len(assigned) :]
        match words:
            case ["screencap", "-p"]:
                assert self._shot is not None
                return 0, self._shot.png()
            case ["input", *rest]:
                return await self._input(rest)
            case ["am", "broadcast", "-a", "ADB_INPUT_B64", "--es", "msg", encoded]:
                return await self._act({"kind": "type", "text": base64.b64decode(encoded).decode()})
            case ["cuarl-device", verb]:
                return await self._program(sim, verb, assigned)
            case ["settings", "get", space, key]:
                return 0, (await self._setting(sim, space, key)).encode() + b"\n"
            case ["settings", "put", space, key, value]:
                if (space, key) in SETTINGS:
                    return 1, b"the simulated phone sets this by its screen alone\n"
                self.kept[space, key] = value
                return 0, b""
            case ["ime", "list", *_]:
                return 0, UNICODE_IME.encode() + b"\n"
            case ["pm", "list", "packages"]:
                return 0, b"package:android\n"
            case ["dumpsys", "power"]:
                return 0, b"mWakefulness=Awake\n"
            case [name, *_] if name in SILENT:
                return 0, b""
            case _:
                return UNKNOWN_COMMAND, f"{' '.join(words)[:100]}: not found\n".encode()

    async def _program(self, sim: SimulatedEnv[Any], verb: str, assigned: Mapping[str, str]) -> tuple[int, bytes]:
        if verb == "state":
            return 0, json.dumps(await sim.state()).encode()
        if verb == "oracle":
            return 0, sim.oracle_action().model_dump_json().encode()
        try:
            task = TaskInstance.model_validate_json(assigned["CUARL_TASK"])
            sim = await self.set_up(task, int(assigned["CUARL_SEED"]))
        except (CuarlError, KeyError, ValueError) as error:
            return DATA_ERROR, str(error).encode()
        return 0, json.dumps({"volatile": list(sim.volatile)}).encode()

    async def _setting(self, sim: SimulatedEnv[Any], space: str, key: str) -> str:
        path = SETTINGS.get((space, key))
        if path is None:
            return self.kept.get((space, key), "null")
        return str(int(lookup(await sim.state(), path)))

    async def _input(self, words: list[str]) -> tuple[int, bytes]:
        match words:
            case ["tap", x, y]:
                return await self._act({"kind": "click", "x": int(x), "y": int(y)})
            case ["swipe", x, y, x2, y2, ms] if (x, y) == (x2, y2):
                return await self._act({"kind": "long_press", "x": int(x), "y": int(y), "duration_ms": int(ms)})
            case ["swipe", x, y, x2, y2, ms]:
                ends = {"x": int(x), "y": int(y), "x2": int(x2), "y2": int(y2)}
                return await self._act({"kind": "swipe", **ends, "duration_ms": int(ms)})
            case ["draganddrop", x, y, x2, y2, ms]:
                path = [(int(x), int(y)), (int(x2), int(y2))]
                return await self._act({"kind": "drag", "path": path, "duration_ms": int(ms)})
            case ["motionevent", phase, x, y]:
                self._path = [*([] if phase == "DOWN" else self._path), (int(x), int(y))]
                return await self._act({"kind": "drag", "path": self._path[:-1]}) if phase == "UP" else (0, b"")
            case ["text", text]:
                return await self._act({"kind": "type", "text": text.replace("%s", " ")})
            case ["keyevent", "224"]:
                return 0, b""
            case ["keyevent", code] if int(code) in _BUTTON_OF:
                return await self._act({"kind": "button", "name": _BUTTON_OF[int(code)]})
            case ["keyevent" | "keycombination", *codes]:
                return await self._act({"kind": "key", "keys": [_KEY_OF[int(code)] for code in codes]})
            case _:
                return UNKNOWN_COMMAND, b"input: unknown\n"

    async def _act(self, action: Mapping[str, Any]) -> tuple[int, bytes]:
        assert self._sim is not None
        result = await self._sim.step(ACTION.validate_python(action))
        self._shot = result.observation.screenshot
        return 0, b""  # as on a phone: what has no effect is no error


def _split(line: str) -> list[tuple[list[str], bool]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&")
    lexer.whitespace_split, lexer.commenters = True, ""
    found: list[tuple[list[str], bool]] = [([], False)]
    for word in lexer:
        if word in (";", "&&"):
            found.append(([], word == "&&"))
        else:
            found[-1][0].append(word)
    return [(words, linked) for words, linked in found if words]


@asynccontextmanager
async def serve(*phones: FakePhone, port: int = 0) -> AsyncIterator[int]:
    """Serve ``phones`` on loopback; yields the port."""
    by_serial = {phone.serial: phone for phone in phones}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await _talk(reader, writer, by_serial)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, phones: Mapping[str, FakePhone]) -> None:
    phone: FakePhone | None = None
    while True:
        request = (await reader.readexactly(int(await reader.readexactly(4), 16))).decode()
        if request == "host:version":
            writer.write(b"OKAY" + _block(f"{VERSION:04x}"))
        elif request in ("host:devices", "host:devices-l"):
            here = [phone.serial for phone in phones.values() if not phone.gone]
            writer.write(b"OKAY" + _block("".join(f"{serial}\tdevice\n" for serial in here)))
        elif request.startswith(("host:tport:serial:", "host:transport:")):
            phone = phones.get(request.rpartition(":")[2])
            if phone is None or phone.gone:
                writer.write(b"FAIL" + _block("device not found"))
                return await writer.drain()
            writer.write(b"OKAY" + (bytes(8) if "tport" in request else b""))
            await writer.drain()
            continue
        elif request.startswith("shell:") and phone is not None:
            writer.write(b"OKAY" + await phone.run(request.removeprefix("shell:")))
        else:
            writer.write(b"FAIL" + _block(f"unknown request {request[:60]}"))
        return await writer.drain()


def _block(text: str) -> bytes:
    return f"{len(text):04x}{text}".encode()


async def main(port: int = 5038) -> None:
    """Serve one phone until interrupted."""
    async with serve(FakePhone("cuarl-sim-1"), port=port) as bound:
        sys.stderr.write(f"a simulated phone behind adb: export ANDROID_ADB_SERVER_PORT={bound}\n")
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
