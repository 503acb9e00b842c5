"""The monitor in a real browser, while a training goes on: from the list of runs to a turn that was just made."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from cuarl.env.browser.browser import find_program

pytest.importorskip("uvicorn", reason="the extra web is not installed")
pytestmark = [pytest.mark.integration, pytest.mark.slow]

SLOW = """
import asyncio
from PIL import Image
import cuarl

class SlowLamp(cuarl.SimpleEnv):
    count = 0
    def screen(self):
        return Image.new("RGB", (192, 384), (40 * self.count % 256, 90, 200))
    def act(self, action):
        self.count += 1
    def facts(self):
        return {"lamp": self.count}
    async def step(self, action):
        await asyncio.sleep(0.8)
        return await super().step(action)
"""
TASK = """
tasks:
  - id: slow_lamp
    description: "Turn <b>the lamp</b> on <script>document.title = 'bad'</script>"
    max_steps: 30
    checks: [{path: lamp, value: 1000}]
"""


def started(folder, *words):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.Popen(
        [sys.executable, "-m", "cuarl", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def stop(process):
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)


@pytest.fixture
def monitor(tmp_path):
    """The address of a monitor of a store in which a training has begun."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "slow.yaml").write_text(TASK)
    training = started(
        tmp_path,
        "train",
        "--tasks",
        "slow.yaml",
        "--env",
        "slow:SlowLamp",
        "--max-steps",
        "2",
        "--groups-per-batch",
        "1",
        "--group-size",
        "2",
        "--skip-baseline",
        "--max-turns",
        "30",
        "--name",
        "going",
        "--json",
        "--eval-tasks",
        "slow.yaml",
    )
    server = started(tmp_path, "monitor", "serve", "--port", "0", "--json")
    try:
        assert training.stdout is not None and training.stdout.readline(), "it has not begun"
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["url"]
    finally:
        stop(training)
        stop(server)


@pytest.fixture
def page():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_program()), args=["--no-sandbox"])
        made = browser.new_page()
        made.troubles = []
        made.on("pageerror", lambda error: made.troubles.append(str(error)))
        made.on("console", lambda line: made.troubles.append(line.text) if line.type == "error" else None)
        yield made
        browser.close()


def test_one_clicks_from_the_runs_to_a_turn_and_sees_the_next_appear(monitor, page):
    page.goto(monitor)
    page.get_by_role("link", name="going").click(timeout=60_000)
    page.locator("#running a.card").first.click(timeout=60_000)
    page.locator("#strip a[data-turn='1']").wait_for(timeout=60_000)
    page.evaluate("window.unbroken = true")
    seen = page.locator("#strip a[data-turn]").count()
    page.locator(f"#strip a[data-turn='{seen + 1}']").wait_for(timeout=60_000)
    assert page.evaluate("window.unbroken"), "it came by itself, into the page that was open"
    page.locator("#strip a[data-turn='0']").click()
    page.locator("#stage h3", has_text="Raw answer").wait_for()
    assert "turn=0" in page.url
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**turn=1")
    assert page.locator("#stage .large img").evaluate("image => image.naturalWidth") == 192
    assert "<script>" in page.locator("p.goal").inner_text() and page.title() != "bad"
    page.get_by_role("link", name="going").click()
    page.get_by_role("heading", name="going").wait_for()
    assert page.troubles == []
