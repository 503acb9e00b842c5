"""A report opens from disk with the network off, and one clicks through it like through the monitor."""

from __future__ import annotations

import pytest

from cuarl.env.browser.browser import find_program
from tests.integration.browser.test_monitor import started
from tests.unit.monitor.web.conftest import fill, store
from tests.unit.monitor.web.made import PICTURE
from tests.unit.store.databases import sqlite_tables, sqlite_url

__all__ = ["sqlite_tables", "sqlite_url", "store"]
pytestmark = pytest.mark.integration
EVIL = "<script>window.bad = 1</script>"


@pytest.fixture
def report(store, sqlite_url, tmp_path):
    """The folder of a report that the command has written."""
    fill(store, EVIL)
    where = ("--out", str(tmp_path / "report"), "--db", sqlite_url, "--runs-dir", str(tmp_path))
    written = started(tmp_path, "monitor", "report", "base", *where)
    written.communicate(timeout=120)
    assert written.returncode == 0
    return tmp_path / "report"


@pytest.fixture
def page():
    """A page of a browser without a network, with what it asked for and what went wrong."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_program()), args=["--no-sandbox"])
        made = browser.new_context(offline=True).new_page()
        made.asked, made.troubles = [], []
        made.on("request", lambda request: made.asked.append(request.url))
        made.on("requestfailed", lambda request: made.troubles.append(request.url))
        made.on("pageerror", lambda error: made.troubles.append(str(error)))
        made.on("console", lambda line: made.troubles.append(line.text) if line.type == "error" else None)
        yield made
        browser.close()


def test_one_clicks_through_a_report_on_disk_without_a_network(report, page):
    page.goto((report / "index.html").as_uri())
    assert page.locator("figure.chart polyline.curve").count() > 3, "curves are drawn"
    page.get_by_role("link", name="step 2").click()
    page.locator("#groups a.chip").first.click()
    assert page.locator("#stage .large img").evaluate("image => image.naturalWidth") == PICTURE.width, (
        "the screenshot is there"
    )
    first = page.url
    page.get_by_role("link", name="after →").click()
    page.locator("#strip a[aria-current]", has_text="2. ").wait_for()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(lambda url: url != first and url.endswith(".html"))
    page.locator("#strip a[aria-current]", has_text="1. ").wait_for()
    assert "<script>" in page.locator("p.goal").inner_text() and page.evaluate("window.bad") is None
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("link", name="as a moving picture").click()
    assert page.locator("img").evaluate("image => image.naturalWidth") >= PICTURE.width
    page.go_back()
    page.locator(".crumbs a[href*=index]").click()
    page.locator("#timeline a[href*=evaluations]").first.click()
    page.get_by_role("heading", name="By task, the worst first").wait_for()
    assert page.troubles == []
    assert {url.partition(":")[0] for url in page.asked} == {"file"}, "nothing is asked for elsewhere"
    assert len(page.asked) > 20
