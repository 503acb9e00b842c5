"""The apps of the simulated desktop: one module each, with an ``APP``.

An app's ``pane`` is a pure function from a ``Context`` to what its window shows; widgets are values, and what they do
is an effect, as on the phone. What only the window remembers is in its ``form``. ``Open("APP/PAGE")`` shows a page.
"""

from __future__ import annotations

from cuarl.sim.desktop.apps import browser, calculator, editor, files, settings, terminal
from cuarl.sim.desktop.registry import APPS

for _app in (files.APP, terminal.APP, editor.APP, browser.APP, calculator.APP, settings.APP):
    APPS[_app.key] = _app
