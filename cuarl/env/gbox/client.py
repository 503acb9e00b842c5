"""The calls of GBox's HTTP interface that an episode needs."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping
from typing import Any, Literal

import anyio

from cuarl import strict_json
from cuarl.env.http import Service
from cuarl.env.picture import whole
from cuarl.errors import EnvError
from cuarl.types import Screenshot

BoxType = Literal["android", "linux"]
LABEL = "cuarl-lease"
"""Label of a box that names its lease: by it a box is found whose id never reached us."""
PAGE = 100
TIMEOUT_S = 60.0
"""How long an answer may take."""
POINTING_MODEL = "gbox-handy-1"
"""The model that finds what is described."""
HINTS: Mapping[int, str] = {
    401: "export GBOX_API_KEY=KEY", 402: "the account's quota is used up: see it at gbox.ai",
    403: "the account may not do that, or its quota is used up: see it at gbox.ai",
    404: "the box may have expired: --gbox-expires-in 2h", 409: "the box may have expired: --gbox-expires-in 2h",
    429: "the account's quota does not suffice: fewer boxes at once (--gbox-boxes 8), or a larger quota",
}  # fmt: skip
"""What to do about a refusal, by its status."""
INVALID = (400, 422)
"""Statuses by which an action is refused as such; nothing was done then."""


class GBox:
    """An account of GBox, or of a server that speaks its protocol. All methods raise EnvError."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self.account = hashlib.sha256(api_key.encode()).hexdigest()[:12]
        """Tells it from others on the ledger."""
        self.service = Service(
            "GBox", base_url, {"Authorization": f"Bearer {api_key}"}, timeout_s=TIMEOUT_S, hints=HINTS
        )

    async def create(self, box_type: BoxType, label: str, expires_in: str) -> str:
        """Ask for a box that carries ``label``; its id."""
        config = {"expiresIn": expires_in, "labels": {LABEL: label}}
        box = await self.service.json("POST", f"boxes/{box_type}", json={"wait": False, "config": config})
        return _text(box, "id")

    async def wait(self, box: str) -> None:
        """Wait until it runs; bound it in time."""
        pause = 0.1
        while True:
            found = await self.service.json("GET", f"boxes/{box}", repeatable=True)
            status = _text(found, "status")
            if status == "running":
                return
            if status in ("error", "terminated"):
                raise EnvError(f"box {box} is {status}: {found.get('reason') or 'no reason given'}")
            await anyio.sleep(pause)
            pause = min(2 * pause, 2.0)

    async def display(self, box: str) -> tuple[int, int]:
        """Width and height in the units that actions are sent in."""
        reply = await self.service.json("GET", f"boxes/{box}/display", repeatable=True)
        resolution = reply.get("resolution")
        if not isinstance(resolution, Mapping):
            raise EnvError(f"box {box} does not tell its resolution")
        try:
            size = int(resolution["width"]), int(resolution["height"])
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(f"box {box} has an unreadable resolution: {dict(resolution)!r}") from error
        if min(size) <= 0:
            raise EnvError(f"box {box} has no area: {size[0]}x{size[1]}")
        return size

    async def screenshot(self, box: str) -> Screenshot:
        """The screen as it is; asked for again where half of the picture is missing."""

        async def ask() -> bytes:
            reply = await self.service.json(
                "POST", f"boxes/{box}/actions/screenshot", json={"outputFormat": "base64"}, repeatable=True
            )
            return encoded_in(_text(reply, "uri"))

        return await whole(ask, f"box {box}")

    async def point(self, screenshot: Screenshot, target: str) -> tuple[int, int] | None:
        """The pixel of ``screenshot`` at which ``target``, described in words, is; None if it is not there."""
        action = {"type": "click", "target": target}
        body = {"model": POINTING_MODEL, "screenshot": data_uri(screenshot), "action": action}
        reply = await self.service.json("POST", "model", json=body, repeatable=True)
        try:
            at = reply["response"]["coordinates"]
            x, y = round(float(at["x"])), round(float(at["y"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise EnvError(f"GBox's model points nowhere: {str(reply.get('response'))[:200]}") from error
        # what it does not find, it says to be at -1, -1
        return (x, y) if 0 <= x < screenshot.width and 0 <= y < screenshot.height else None

    async def layout(self, box: str) -> str:
        """What is on the screen of a box of Android: XML of its views."""
        return _text(await self.service.json("GET", f"boxes/{box}/actions/screen-layout", repeatable=True), "content")

    async def elements(self, box: str) -> list[Mapping[str, Any]]:
        """What GBox detects on the screen."""
        reply = await self.service.json("POST", f"boxes/{box}/actions/elements/detect", json={}, repeatable=True)
        found = reply.get("elements")
        if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
            raise EnvError(f"box {box} does not tell the elements on its screen")
        return found

    async def act(self, box: str, action: str, body: Mapping[str, Any], *, takes_s: float = 0.0) -> str:
        """Carry out an action, once; the reason if it is refused as invalid, else the empty string.

        ``takes_s`` is how long the action takes by itself. Raises LostReply if it may have been carried out.
        """
        reply = await self.service.send(
            "POST", f"boxes/{box}/actions/{action}", json=dict(body), accept=INVALID, timeout_s=TIMEOUT_S + takes_s
        )
        return "" if reply.is_success else _message(reply.text) or f"status {reply.status_code}"

    async def command(
        self, box: str, command: str, envs: Mapping[str, str] | None = None, *, repeatable: bool = False
    ) -> tuple[int, str, str]:
        """Run a shell command: exit status, output, error output."""
        reply = await self.service.json(
            "POST", f"boxes/{box}/commands", json={"command": command, "envs": dict(envs or {})}, repeatable=repeatable
        )
        try:
            return int(reply["exitCode"]), str(reply.get("stdout", "")), str(reply.get("stderr", ""))
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(f"box {box} ran a command and told no exit status") from error

    async def labelled(self, label: str) -> list[str]:
        """Ids of the boxes that carry ``label`` and are not terminated."""
        found: list[str] = []
        page = 1
        while True:
            reply = await self.service.json(
                "GET", "boxes", params={"page": str(page), "pageSize": str(PAGE)}, repeatable=True
            )
            boxes = reply.get("data") or []
            for box in boxes:
                labels = (box.get("config") or {}).get("labels") or {}
                if labels.get(LABEL) == label and box.get("status") != "terminated":
                    found.append(_text(box, "id"))
            if len(boxes) < PAGE:
                return found
            page += 1

    async def terminate(self, box: str) -> None:
        """End a box; one that is gone is as good."""
        await self.service.send("POST", f"boxes/{box}/terminate", json={}, repeatable=True, accept=(404, 409))

    async def end(self, label: str, box: str = "") -> None:
        """End whatever box a lease stands for, whether its id ever became known or not."""
        for one in {box} - {""} or await self.labelled(label):
            await self.terminate(one)

    async def close(self) -> None:
        """Close the connections."""
        await self.service.close()


def data_uri(shot: Screenshot) -> str:
    """A screenshot as GBox sends it."""
    return "data:image/png;base64," + base64.b64encode(io.BytesIO(shot.png()).getvalue()).decode()


def encoded_in(uri: str) -> bytes:
    """The encoded picture in what ``data_uri`` gives. Raises ValueError."""
    head, _, data = uri.partition(",")
    if not head.startswith("data:"):
        raise ValueError("not a data URI")
    return base64.b64decode(data, validate=True)


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise EnvError(f"GBox's answer has no {name}")
    return value


def _message(text: str) -> str:
    try:
        body = strict_json.reply(text)
    except ValueError:
        return text[:200]
    return str(body.get("message", "")) if isinstance(body, dict) else text[:200]
