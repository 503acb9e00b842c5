"""Any web page as a task: one's own application, judged by rules over what the page and its server say.

The task's preset says what to load and what to read::

    preset:
      url: "http://127.0.0.1:8000/?session=$SESSION"    # $SESSION is unique to the episode
      reset: "http://127.0.0.1:8000/reset"              # POST before the page is loaded
      set_url: "http://127.0.0.1:8000/set"              # POST of ``set`` as JSON, after reset
      set: {cart: []}
      state_url: "http://127.0.0.1:8000/state"          # GET, JSON: the state as ``app``
      read: {total: "document.querySelector('#total').innerText"}   # JavaScript: the values as ``read.total``

Checks read ``url``, ``title``, ``text`` (what is visible), ``read.NAME``, ``app.…``, ``downloads``, ``dialogs``,
``tabs``. Of these only ``app`` counts for side effects: what changes there without being asked for spoils the task.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from cuarl import strict_json
from cuarl.env.base import Capabilities
from cuarl.env.browser.browser import Browser
from cuarl.env.browser.env import BrowserEnv
from cuarl.env.browser.following import Box, PageEyes, follower
from cuarl.env.browser.har import SESSION
from cuarl.env.browser.naming import name_at
from cuarl.env.browser.options import BrowserOptions, origin_of
from cuarl.env.browser.plan import read_plan
from cuarl.env.browser.reading import read_page, read_values
from cuarl.env.browser.replay import Replay
from cuarl.env.browser.storage import Storage
from cuarl.env.browser.tabs import Tabs
from cuarl.env.browser.traffic import Traffic
from cuarl.env.browser.uploads import Uploads
from cuarl.env.plans.seeing import Named
from cuarl.env.plans.steps import Line
from cuarl.errors import EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Observation, StepResult


class WebEnv(BrowserEnv):
    """The page at a task's ``url``."""

    def __init__(self, browser: Browser, options: BrowserOptions, *, plan: Sequence[Line] = ()) -> None:
        super().__init__(browser, options)
        self._planned, self._follower = bool(plan), follower(read_plan(plan), self.options)
        self._session = secrets.token_hex(6)
        self._scripts: Mapping[str, str] = {}
        self._state_url = ""

    @property
    def capabilities(self) -> Capabilities:
        """What a page offers, and an oracle where the task has a plan."""
        return replace(super().capabilities, oracle=self._planned)

    async def name_at(self, x: int, y: int) -> Named | None:
        """What a plan calls the thing at a pixel of the screenshot; None where no name leads back to it."""
        scale = self.options.scale
        return await name_at(self._ready(), (x + 0.5) / scale, (y + 0.5) / scale)

    def shown(self) -> Observation:
        """What is shown now."""
        return self._observation(self._ready())

    async def ask_oracle(self) -> Action:
        """The next action of the task's plan. Raises AgentError for a step that can't be done on the shown page."""
        return await self._follower.next(PageEyes(self._ready(), self.options, self._as_shown))

    async def _as_shown(self, box: Box) -> bool:
        """Whether this part of the page, in pixels of the screenshot, is as in the last one."""
        assert self._shown is not None
        now = await self._ready().shoot()
        return now.image.crop(box).tobytes() == self._shown.image.crop(box).tobytes()

    async def storage(self) -> Storage:
        """Cookies and storage as they are now, for other episodes to begin with. Raises EnvError."""
        tabs = self._ready()
        async with tabs.bounded("reading cookies and storage"):
            found: Storage = await self._context.storage_state(indexed_db=True)
            return found

    async def step(self, action: Action) -> StepResult:
        """As in every browser; where the episode is recorded, so is what the application says of its state then."""
        result = await super().step(action)
        if self._state_url and self._traffic is not None and self._traffic.recorder is not None:
            await self._app_state()
        return result

    async def _open(self, task: TaskInstance, seed: int) -> Mapping[str, str]:
        self._traffic = Traffic(self.options.traffic, task, seed, self._session)
        return await super()._open(task, seed)

    async def _load(self, tabs: Tabs, task: TaskInstance, seed: int) -> Mapping[str, str]:
        preset = task.preset
        tabs.uploads = Uploads(Path(str(preset["uploads"])) if preset.get("uploads") else None)
        self._scripts = {str(name): str(script) for name, script in dict(preset.get("read") or {}).items()}
        self._state_url = self._filled(preset.get("state_url"))
        if self._replay is None:  # else the recording begins with what came of it
            if preset.get("reset"):
                await self._ask("POST", self._filled(preset["reset"]), json={"seed": seed})
            if preset.get("set_url"):
                await self._ask("POST", self._filled(preset["set_url"]), json=preset.get("set") or {})
        await tabs.go(self._filled(preset.get("url")))
        return {}

    async def _state(self, tabs: Tabs) -> Mapping[str, Any]:
        told = await tabs.reading(self._told, what="reading the page's state")
        state = {
            "tabs": tabs.count,
            "downloads": list(tabs.downloads),
            "dialogs": list(tabs.dialogs),
            "blocked": list(tabs.blocked),
            **told,
        }
        if self._state_url:
            state["app"] = await self._app_state()
        return state

    @property
    def _replay(self) -> Replay | None:
        return self._traffic.replay if self._traffic else None

    async def _app_state(self) -> Any:
        """What the application says of its state, or said where its recording stands."""
        if self._replay is not None:
            return strict_json.reply(self._replay.state())
        said = await self._ask("GET", self._state_url)
        if self._traffic is not None and self._traffic.recorder is not None:
            self._traffic.recorder.note_state(json.dumps(said).encode())
        return said

    async def _told(self, page: Any) -> dict[str, Any]:
        return {**await read_page(page), "read": await read_values(page, self._scripts)}

    def _filled(self, url: Any) -> str:
        return str(url or "").replace(SESSION, self._session)

    async def _ask(self, method: str, url: str, json: Any = None) -> Any:
        """Ask the application's server. Raises EnvError unless it answers in 2xx, with JSON if anything."""
        try:
            async with httpx.AsyncClient(timeout=self.options.answer_s, trust_env=False) as client:
                answer = await client.request(method, url, json=json)
            answer.raise_for_status()
            return strict_json.reply(answer.content) if method == "GET" else None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise EnvError(
                f"{method} {url} failed: {str(error) or type(error).__name__}", where=origin_of(url)
            ) from error
