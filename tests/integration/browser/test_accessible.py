"""axe finds nothing serious on the monitor's pages, light and dark, wide and narrow.

axe-core is a package of npm: ``make browser`` installs it where there is npm; or ``CUARL_AXE=/path/to/axe.min.js``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.integration.browser.test_monitor import page, started, stop
from tests.unit.monitor.web.conftest import fill, store
from tests.unit.store.databases import sqlite_tables, sqlite_url

__all__ = ["page", "sqlite_tables", "sqlite_url", "store"]

AXE = Path(os.environ.get("CUARL_AXE", ".venv/axe/node_modules/axe-core/axe.min.js"))
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not AXE.is_file(), reason=f"no axe-core at {AXE}: make browser, or CUARL_AXE=FILE"),
]
PAGES = (
    "",
    "runs/better",
    "runs/base/steps/2",
    "episodes?run=base&sort=reward",
    "episodes/base.1.0.0",
    "episodes/better.3.0.0",
    "evaluations",
    "evaluations/better.eval.2",
    "compare?a=evaluation:base.eval.2&b=evaluation:better.eval.2",
)
BAD = """async () => (await axe.run()).violations
    .filter(one => one.impact === "serious" || one.impact === "critical")
    .map(one => `${one.id}: ${one.nodes[0].html.slice(0, 160)}`)"""


@pytest.fixture
def address(store, sqlite_url, tmp_path):
    fill(store)
    server = started(tmp_path, "monitor", "serve", "--port", "0", "--json", "--db", sqlite_url)
    try:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["url"]
    finally:
        stop(server)


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param([(1280, "light"), (390, "dark")], id="wide-light-narrow-dark"),
        pytest.param([(1280, "dark"), (390, "light")], id="wide-dark-narrow-light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_serious_on_any_page(address, page, looks):
    found = []
    for width, scheme in looks:
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for path in PAGES:
            answer = page.goto(address + path)
            assert answer.status == 200, path
            page.evaluate(AXE.read_text("utf-8"))
            found += [f"/{path} {width} {scheme}: {words}" for words in page.evaluate(BAD)]
    assert found == []
