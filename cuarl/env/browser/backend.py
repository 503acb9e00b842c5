"""From tasks and options to environments: what is checked before anything starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cuarl.config.rules import refuse_idle
from cuarl.config.schema import EnvFields, ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.browser.browser import UNPACED_PER_CORE, Browser
from cuarl.env.browser.env import BrowserEnv
from cuarl.env.browser.miniwob import MiniWoBEnv, pages_folder
from cuarl.env.browser.options import BrowserOptions, Fence, origin_of
from cuarl.env.browser.preset import check_preset, readable
from cuarl.env.browser.web import WebEnv
from cuarl.env.leases import Ledger
from cuarl.env.task_checks import only
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance

DEFAULT_VIEWPORT = EnvFields.model_fields["browser_viewport"].default


def check_tasks(tasks: Iterable[Task]) -> None:
    """Raise TaskError for a task that no page can be made of, MissingExtra if the pages of MiniWoB++ are needed and missing."""
    for task in tasks:
        instance = task.instantiate(0)
        # a mistake in the task is told first: installing a package would not fix it
        check_preset(instance)
        if "page" in instance.preset:
            pages_folder()


def fence_of(tasks: Iterable[Task], origins: Sequence[str]) -> Fence:
    """What may be loaded: the folders and origins of the tasks' own addresses, and ``origins``. Raises ConfigError."""
    folders: set[Path] = set()
    allowed: set[str] = set()
    for task in tasks:
        url = str(task.instantiate(0).preset.get("url", ""))
        parts = urlsplit(url)
        if parts.scheme == "file":
            path = Path(unquote(parts.path)).resolve()
            folders.add(path if path.is_dir() else path.parent)
        elif parts.scheme:
            allowed.add(origin_of(url))
    for origin in origins:
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or not readable(parts):
            raise ConfigError(f'"{origin}" is not an origin', where="browser_origins", hint="http://HOST:PORT")
        allowed.add(origin_of(origin))
    return Fence(tuple(sorted(folders)), frozenset(allowed))


def check_options(config: EnvFields, tasks: Sequence[Task]) -> None:
    """Raise ConfigError for an option that none of ``tasks``, which are all of a run's, can honour."""
    pages = [task for task in tasks if "page" not in task.preset]
    if not pages and config.browser_viewport != DEFAULT_VIEWPORT:
        raise ConfigError("browser_viewport has no effect on MiniWoB++, whose pages have one size", hint="leave it out")
    if not pages and config.browser_origins:
        raise ConfigError("browser_origins has no effect on MiniWoB++, whose pages are files", hint="leave it out")
    if not pages and config.browser_settle == "auto":
        refuse_idle(
            config,
            ["browser_settle_ms"],
            "screenshots of pages of MiniWoB++ are taken at once, unless browser_settle says else",
        )
    if len(pages) == len(tasks) and config.browser_instruction == "mask":
        raise ConfigError("browser_instruction is for pages of MiniWoB++ alone", hint="leave it out")
    if pages and config.browser_reset == "script":
        raise ConfigError("browser_reset script is for pages of MiniWoB++ alone", hint="leave it out")


def page_options(config: EnvFields, tasks: Sequence[Task]) -> BrowserOptions:
    """The options of pages by address."""
    width, height = map(int, config.browser_viewport.split("x"))
    return BrowserOptions(
        viewport=(width, height), scale=config.browser_scale,
        settle=None if config.browser_settle == "auto" else config.browser_settle, settle_ms=config.browser_settle_ms,
        kind=config.browser_actions,
        reset=config.browser_reset, accept_dialogs=config.browser_dialogs == "accept", fence=fence_of(tasks, config.browser_origins),
    )  # fmt: skip


def paced(tasks: Iterable[Task], at_once: int) -> bool:
    """Whether pages are drawn at the pace of a display, with ``at_once`` of them.

    Of those that move by themselves, which only MiniWoB++ tells, each would burn a core.
    """
    crowded = at_once > UNPACED_PER_CORE * (os.cpu_count() or 1)
    return crowded or any("page" not in task.preset or "realtime" in task.tags for task in tasks)


def factory(browser: Browser, options: BrowserOptions, *, mask: bool = False) -> Callable[[TaskInstance], BrowserEnv]:
    """Makes the environment of a task; ``mask`` hides the instruction on pages of MiniWoB++."""

    def make(task: TaskInstance) -> BrowserEnv:
        if "page" in task.preset:
            return MiniWoBEnv(browser, options, instruction=not mask)
        return WebEnv(browser, options)

    return make


def backend(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Checks the tasks and the machine, and raises before anything starts."""
    only("browser", config, tasks)
    check_tasks(tasks)
    at_once = min(config.browser_contexts, config.max_concurrent_rollouts)
    browser = Browser(Ledger(settings.sessions_folder), settings.browser, paced=paced(tasks, at_once))
    make_env = factory(browser, page_options(config, tasks), mask=config.browser_instruction == "mask")

    async def make(task: TaskInstance) -> Env:
        return make_env(task)

    return Backend(make, close=browser.close, at_most=config.browser_contexts)
