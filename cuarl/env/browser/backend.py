"""From tasks and options to environments: what is checked before anything starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cuarl.config.rules import refuse_idle
from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend, nothing
from cuarl.env.base import Env
from cuarl.env.browser.browser import UNPACED_PER_CORE, Browser
from cuarl.env.browser.env import BrowserEnv
from cuarl.env.browser.har import read_folder
from cuarl.env.browser.miniwob import MiniWoBEnv, pages_folder
from cuarl.env.browser.options import BrowserOptions, Fence, Options, TrafficOptions, origin_of
from cuarl.env.browser.plan import phone_problem, read_plan
from cuarl.env.browser.preset import check_preset, readable
from cuarl.env.browser.replay import Recordings
from cuarl.env.browser.storage import read_storage
from cuarl.env.browser.web import WebEnv
from cuarl.env.leases import Ledger
from cuarl.env.task_checks import only
from cuarl.errors import ConfigError, TaskError
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance

DEFAULT_VIEWPORT = Options.model_fields["viewport"].default


def check_tasks(tasks: Iterable[Task]) -> None:
    """Raise TaskError for a task that no page can be made of.

    Raises MissingExtra if the pages of MiniWoB++ are needed and missing.
    """
    for task in tasks:
        instance = task.instantiate(0)
        # a mistake in the task is told first: installing a package would not fix it
        check_preset(instance)
        if "page" in instance.preset:
            pages_folder()


def check_touches(tasks: Iterable[Task]) -> None:
    """Raise TaskError for a plan that a phone's actions can't say."""
    for task in tasks:
        if problem := phone_problem(read_plan(task.instantiate(0).plan)):
            raise TaskError(problem, where=f"task {task.id}", hint="--browser-actions desktop")


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
            raise ConfigError(f'"{origin}" is not an origin', where="env.origins", hint="http://HOST:PORT")
        allowed.add(origin_of(origin))
    return Fence(tuple(sorted(folders)), frozenset(allowed))


def check_options(options: Options, tasks: Sequence[Task]) -> None:
    """Raise ConfigError for an option that none of ``tasks``, which are all of a run's, can honour."""
    pages = [task for task in tasks if "page" not in task.preset]
    if not pages and options.viewport != DEFAULT_VIEWPORT:
        raise ConfigError("env.viewport has no effect on MiniWoB++, whose pages have one size", hint="leave it out")
    if not pages and options.origins:
        raise ConfigError("env.origins has no effect on MiniWoB++, whose pages are files", hint="leave it out")
    if all(urlsplit(str(task.preset.get("url", ""))).scheme in ("", "file") for task in tasks) and not options.origins:
        why = "the tasks' pages are files, which no server answers for"
        refuse_idle(options, ["storage", "har", "har_record"], why)
    if not pages and options.settle == "auto":
        refuse_idle(
            options, ["settle_ms"], "screenshots of pages of MiniWoB++ are taken at once, unless env.settle says else"
        )
    if len(pages) == len(tasks) and options.instruction == "mask":
        raise ConfigError("env.instruction is for pages of MiniWoB++ alone", hint="leave it out")
    if len(pages) < len(tasks) and options.dialogs == "ask":
        raise ConfigError(
            "env.dialogs ask is for pages by address: those of MiniWoB++ are read at every step", hint="leave it out"
        )
    if pages and options.reset == "script":
        raise ConfigError("env.reset script is for pages of MiniWoB++ alone", hint="leave it out")


def page_options(options: Options, tasks: Sequence[Task]) -> BrowserOptions:
    """The options of pages by address."""
    width, height = map(int, options.viewport.split("x"))
    fence = fence_of(tasks, options.origins)
    return BrowserOptions(
        viewport=(width, height),
        scale=options.scale,
        settle=None if options.settle == "auto" else options.settle,
        settle_ms=options.settle_ms,
        kind=options.actions,
        reset=options.reset,
        dialogs=options.dialogs,
        fence=fence,
        traffic=_traffic(options, fence),
    )


def _traffic(options: Options, fence: Fence) -> TrafficOptions:
    """Raises ConfigError for a file that can't be read."""
    return TrafficOptions(
        storage=read_storage(Path(options.storage), fence.origins) if options.storage else None,
        recordings=Recordings(read_folder(Path(options.har)), options.har_after) if options.har else None,
        unrecorded=options.har_missing,
        record_to=Path(options.har_record) if options.har_record else None,
    )


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
        return WebEnv(browser, options, plan=task.plan)

    return make


def _may_solve(task: Task) -> bool:
    return bool(task.plan) or "page" in task.preset


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Checks the tasks and the machine, and raises before anything starts."""
    only("browser", tasks)
    check_tasks(tasks)
    if options.actions == "phone":
        check_touches(tasks)
    at_once = min(options.contexts, config.max_concurrent_rollouts)
    url = settings.browser_url.get_secret_value() if settings.browser_url else ""
    browser = Browser(Ledger(settings.sessions_folder), settings.browser, url=url, paced=paced(tasks, at_once))
    make_env = factory(browser, page_options(options, tasks), mask=options.instruction == "mask")

    async def make(task: TaskInstance) -> Env:
        return make_env(task)

    return Backend(
        make,
        start=browser.reach if url else nothing,
        close=browser.close,
        at_most=options.contexts,
        may_solve=_may_solve,
    )
