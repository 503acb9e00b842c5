"""MiniWoB++: the pages of the ``miniwob`` package, its own reward, and an oracle for most of them.

Source of the protocol: the pages' ``core.js``. The raw reward counts, not the one that falls with wall-clock time, and
the time limit is raised out of the way. Each episode loads its page afresh, since a restart by JavaScript alone leaves
focus and widgets as they were. A page tells its goal only once it is loaded, so the goal is a text field of the first
observation (``goal``), by which the episode goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio

from cuarl.env.base import Capabilities
from cuarl.env.browser.browser import Browser
from cuarl.env.browser.env import BrowserEnv
from cuarl.env.browser.options import BrowserOptions, Fence
from cuarl.env.browser.page_pool import PooledPage
from cuarl.env.browser.tabs import Tabs
from cuarl.errors import EnvError, MissingExtra
from cuarl.tasks.task import TaskInstance
from cuarl.types import ACTION, Action, Drag, Finish, Key, Move, Scroll, StepResult, Swipe

SIZE = (160, 210)
"""CSS pixels of a page; its upper 50 rows are the instruction."""
READY_S = 10.0
MOST_EPISODES = 100
"""A kept page is closed after so many, and with it whatever its scripts have piled up."""

START = """([seed, again]) => {
  if (again) {
    if (typeof core === 'undefined' || !core.startedHere) return null;
    document.activeElement?.blur();
    getSelection().removeAllRanges();
    scrollTo(0, 0);
  }
  if (core.EP_TIMER !== null) core.endEpisode(0);
  Math.seedrandom(seed);
  core.EPISODE_MAX_TIME = 1e8;
  core.startEpisodeReal();
  core.startedHere = true;
  return WOB_TASK_READY ? [core.getUtterance()] : [];
}"""
"""Start an episode: null if that takes a load, else the goal, if the page tells it yet. A page that starts again is
first rid of what its own script would leave of the last episode."""
GOAL = "WOB_TASK_READY ? [core.getUtterance()] : []"
STATUS = """typeof core === 'undefined' || !core.startedHere ? [true, -1, 'the page was left']
  : [WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL, WOB_REWARD_REASON]"""
"""A form that is sent, or a step back, loads another page: that is the policy's doing, and ends the episode."""
HIDE = "#sync-task-cover, #reward-display {display: none !important} #click-canvas {%s}"
"""What lies over or beside the page, and which a dialog that takes the focus would scroll to."""
CANVAS = "display: none !important"
UNPACED_CANVAS = (
    "position: fixed !important; left: 0 !important; top: 0 !important; width: 1px !important; height: 1px !important;"
    " pointer-events: none !important; opacity: 0.001 !important"
)
"""The page draws clicks on a canvas beside it. Where frames are not paced, a picture is taken with the next one: this
canvas, which can't be seen, brings it about at once after a click, and without it Chromium gives up waiting for one
after 10 ms."""
MASK = "#query {color: transparent !important} #query * {visibility: hidden !important}"
STILL = "document.addEventListener('dragstart', (event) => event.preventDefault(), true);"
"""Pages are dragged about in by mouse events alone; a system's drag of selected text would only get in the way."""
STYLE = """
{ const sheet = new CSSStyleSheet(); sheet.replaceSync(%s);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]; }
"""


def pages_folder() -> Path:
    """Where the pages lie. Raises MissingExtra if the package is not installed (it is found without being imported)."""
    found = find_spec("miniwob")
    if found is None or not found.submodule_search_locations:
        raise MissingExtra("the pages of MiniWoB++ are not installed", hint="pip install 'cuarl[browser]'")
    return Path(found.submodule_search_locations[0]) / "html"


def miniwob_options(options: BrowserOptions) -> BrowserOptions:
    """The options with what MiniWoB++ pages demand: their size, and their own folder alone."""
    return replace(options, viewport=SIZE, settle=options.settle or "frame", fence=Fence((pages_folder().resolve(),)))


class MiniWoBEnv(BrowserEnv):
    """One page of MiniWoB++. The task's preset names it: ``page``."""

    fenced = False  # the context is offline, and the pages lead nowhere

    def __init__(self, browser: Browser, options: BrowserOptions, *, instruction: bool = True) -> None:
        super().__init__(browser, miniwob_options(options))
        hide = HIDE % (CANVAS if browser.paced else UNPACED_CANVAS)
        self.scripts = STILL, STYLE % json.dumps(hide if instruction else hide + MASK)
        self._page, self._status, self._resumed = "", (False, 0.0, ""), False
        self._episodes = 1
        self._oracle_ready = False

    @property
    def capabilities(self) -> Capabilities:
        """What a page offers, and that most have an oracle."""
        return replace(super().capabilities, oracle=True)

    @property
    def volatile(self) -> tuple[str, ...]:
        """Everything: the page's reward is the verdict."""
        return ("miniwob",)

    async def _load(self, tabs: Tabs, task: TaskInstance, seed: int) -> Mapping[str, str]:
        self._page = str(task.preset.get("page", ""))
        path = pages_folder() / "miniwob" / f"{self._page}.html"
        if not self._page.replace("-", "").isalnum() or not path.is_file():
            raise EnvError(f'MiniWoB++ has no page "{self._page}"', hint="cuarl tasks list --tasks miniwob")
        told = await self._start(tabs, seed, again=True) if self._resumed else None
        if told is None:
            await tabs.go(path.as_uri())
            told = await self._start(tabs, seed, again=False)
        with anyio.move_on_after(READY_S):
            while not told:
                await anyio.sleep(0.01)
                told = await tabs.reading(lambda page: page.evaluate(GOAL), what="reading the goal")
            return {"goal": goal_text(told[0])}
        raise EnvError(f"the page {self._page} is not ready after {READY_S:g} s")

    async def _open(self, task: TaskInstance, seed: int) -> Mapping[str, str]:
        page = str(task.preset.get("page", ""))
        kept = self._browser.kept.take(self._kind, page) if self.options.reset == "script" else None
        if kept is None:
            return await super()._open(task, seed)
        self._context, self._tabs, self._resumed = kept.context, kept.tabs, kept.address == page
        self._episodes = kept.episodes + 1
        try:
            await self._tabs.renew()
            return await self._load(self._tabs, task, seed)
        except EnvError:  # it died or hung while it waited, which is no fault of this episode
            await self._close_context()
            self._resumed, self._episodes = False, 1
            return await super()._open(task, seed)

    def _keeps(self, context: Any, tabs: Tabs) -> bool:
        fresh = self.options.reset == "script" and self._episodes < MOST_EPISODES
        keeps = fresh and tabs.reusable and context.browser.is_connected()
        if keeps:
            self._browser.kept.keep(PooledPage(self._kind, self._page, context, tabs, self._episodes))
        return bool(keeps)

    @property
    def _kind(self) -> object:
        return self.options, self.scripts

    async def _start(self, tabs: Tabs, seed: int, *, again: bool) -> Any:
        return await tabs.run(START, [str(seed), again], what="starting the page")

    async def _state(self, tabs: Tabs) -> Mapping[str, Any]:
        done, reward, reason = self._status
        return {"miniwob": {"page": self._page, "done": done, "reward": reward, "reason": reason}}

    async def _judged(self, tabs: Tabs, result: StepResult) -> StepResult:
        done, reward, reason = await tabs.reading(lambda page: page.evaluate(STATUS), what="reading the reward")
        self._status = bool(done), float(reward), str(reason or "")
        return replace(result, reward=float(reward), terminated=True) if done else result

    async def ask_oracle(self) -> Action:
        """The next action of a solution; ``Finish(success=False)`` where this page's is not known."""
        tabs = self._ready()
        if self._status[0]:
            return Finish(success=self._status[1] >= 1)
        if not self._oracle_ready:
            await tabs.run(oracle_source(), what="loading the oracle")
            self._oracle_ready = True
        told = await tabs.run("(page) => cuarlOracle(page)", self._page, what="asking the oracle")
        if told is None:
            return Finish(success=False, message="no oracle knows what to do here")
        return self._scaled(told)

    def _scaled(self, told: Mapping[str, Any]) -> Action:
        """The action in pixels of the screenshot, from one in CSS pixels."""
        scale, size = self.options.scale, self.options.pixels

        def pixel(value: float, most: int) -> int:
            return min(max(round(value * scale), 0), most - 1)

        action = dict(told)
        if "x" in action:
            action |= {"x": pixel(action["x"], size[0]), "y": pixel(action["y"], size[1])}
        if "path" in action:
            action["path"] = [(pixel(x, size[0]), pixel(y, size[1])) for x, y in action["path"]]
        if action.get("kind") == "scroll":
            action["amount"] = max(1, round(action["amount"] * scale))
        made: Action = ACTION.validate_python(action)
        return touch(made) if self.options.kind == "phone" else made


def touch(action: Action) -> Action:
    """The same by a phone's means; ``Finish(success=False)`` where it has none."""
    match action:
        case Drag():
            (x, y), (x2, y2) = action.path[0], action.path[-1]
            return Swipe(x=x, y=y, x2=x2, y2=y2)
        case Move() | Scroll() | Key():
            return Finish(success=False, message=f"a phone has no {action.kind}")
        case _:
            return action


def goal_text(told: Any) -> str:
    """The goal in words, from what a page says: a text, or a mapping with ``utterance`` or fields."""
    if isinstance(told, Mapping):
        if "utterance" in told:
            return goal_text(told["utterance"])
        return "; ".join(f"{name}: {value}" for name, value in told.items())
    return " ".join(str(told).split())


@lru_cache(maxsize=1)
def oracle_source() -> str:
    """The JavaScript of the oracles."""
    return files("cuarl.env.browser").joinpath("oracles.js").read_text(encoding="utf-8")
