"""The apps of the simulated phone: one module each, found by its name.

How to add an app
----------------- Write ``apps/KEY.py`` with an ``APP``; nothing else needs to know of it. ``KEY`` is the key that
``defaults.APPS`` gives it (its name, package and launcher icon are there and in ``kit/icons.py``). ::

    APP = AppModule("notes", home="notes/list")

    @APP.page("list")
    def notes_list(ctx: Context) -> Screen:
        rows = tuple(
            w.Row(note.title, Open(f"notes/edit:{i}"), subtitle=note.text) for i, note in enumerate(ctx.state.notes)
        )
        return Screen("Notes", rows, fab=w.Fab("New note", NEW))

    NEW = Seq((Do("notes.new", writes=("notes",)), Open("notes/edit:0")))

    @APP.action("new")
    def new_note(world: World) -> World:
        return world.put("notes", (Note(""), *world.state.notes))

- A page is a pure function from a ``Context`` to a ``Screen``; it is built anew whenever it is shown, so it never goes
  stale. What follows the colon of a page id is ``ctx.arg``.
- Widgets are values (``kit/widgets.py``); what they do is an ``Effect`` (``kit/effects.py``), a value too. Bind to
  paths
  of the typed state tree (``state.py``, ``records.py``). What only the page remembers (a search text, a tab) lives at
  ``ui.form.NAME`` and needs no declaration. ``parts.py`` has the usual rows: switch, link, choice, slider, text field.
- Prefer Put, Toggle, Append, Remove, Open, Show over ``Do``: the planner reads them. Where ``Do`` is needed, declare
  the
  paths it ``writes`` and the page it ``opens``.
- A ``Field`` typed into writes its path at each key; save buttons copy from ``ui.form`` into the state.
- Use ``ctx.shuffled(rows)`` for order that may differ between devices, and ``ctx.world.look`` for nothing that a task's
  meaning depends on. No clocks, no randomness, no iteration over sets.
- Labels are what the user reads and what ``elements()`` reports: short (a row holds about 20 letters at the small
  size),
  unique on their page, plain ASCII (the font has little more).
- Look at the result: ``python -m cuarl.sim.phone.shots OUT --page notes/list``.
"""

from __future__ import annotations

import importlib
import pkgutil

from cuarl.sim.kit import widgets as w
from cuarl.sim.phone.reading import remember_reads
from cuarl.sim.phone.registry import Action, AppModule, Builder, Context, Screen
from cuarl.sim.phone.world import World

MODULES: dict[str, AppModule] = {}
"""App modules by key."""
PAGES: dict[str, Builder] = {}
"""Builders by page id without argument."""
ACTIONS: dict[str, Action] = {}
"""Actions by name."""


def register(module: AppModule) -> None:
    """Make an app's pages and actions known."""
    MODULES[module.key] = module
    PAGES.update(module.pages)
    ACTIONS.update(module.actions)


def home_of(app: str) -> str:
    """Id of the page that an app starts with."""
    return MODULES[app].home if app in MODULES else f"{app}/main"


@remember_reads(1024)
def build(world: World, page: str) -> Screen:
    """The content of a page."""
    name, _, arg = page.partition(":")
    return PAGES.get(name, _bare)(Context(world, name, arg))


def _bare(ctx: Context) -> Screen:
    """Apps that have no pages of their own only greet."""
    app = ctx.world.app(ctx.page.partition("/")[0])
    name = app.name if app else ctx.page
    return Screen(name, (w.Space(24), w.Paragraph("Sign in to continue.", align="centre")))


for _module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
    register(importlib.import_module(f"{__name__}.{_module}").APP)
