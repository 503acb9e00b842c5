"""A sign-in that many episodes use, and browsers that somebody else has started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cuarl.env.browser.browser import Browser, find_program
from cuarl.env.browser.options import BrowserOptions, Fence, TrafficOptions
from cuarl.env.browser.storage import read_storage
from cuarl.env.browser.web import WebEnv
from cuarl.errors import EnvError, PrerequisiteError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click

pytestmark = pytest.mark.integration

LOGIN = """<!doctype html><title>Login</title><form method=post action=/login>
<label>Name <input name=name></label><label>Password <input type=password name=password></label>
<button>In</button></form>"""
HOME = """<!doctype html><title>Home</title>
<script>document.write(localStorage.theme || ''); localStorage.theme = 'dark'</script>"""


class Site(BaseHTTPRequestHandler):
    """A page for those with a cookie, which the right password earns."""

    protocol_version = "HTTP/1.0"

    def do_GET(self):
        signed_in = "user=zoe-7f3a" in self.headers.get("Cookie", "")
        self._answer(200, HOME if signed_in else LOGIN)

    def do_POST(self):
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        right = "password=correct+horse" in sent
        self._answer(303, "", {"Location": "/"} | ({"Set-Cookie": "user=zoe-7f3a; HttpOnly"} if right else {}))

    def _answer(self, status, text, headers=None):
        self.send_response(status)
        for name, value in {"Content-Type": "text/html", "Content-Length": str(len(text)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def signed(url, storage=None):
    return BrowserOptions(
        viewport=(300, 200), fence=Fence((), frozenset({url})), traffic=TrafficOptions(storage=storage)
    )


async def titles(browser, options, url):
    env = WebEnv(browser, options)
    try:
        await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url}), 0)
        return await env.state()
    finally:
        await env.close()


def test_a_plan_signs_in_once_and_episodes_begin_signed_in(with_browser, site, tmp_path):
    (tmp_path / "login.yaml").write_text(
        "- {type: zoe, into: Name}\n- {type: $SHOP_PASSWORD, into: Password, submit: true}\n"
    )
    out = tmp_path / "login.json"
    command = [sys.executable, "-m", "cuarl", "tasks", "sign-in", site, "--plan", "login.yaml", "--out", str(out)]
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "CUARL_BROWSER") if name in os.environ}
    environment = {**kept, "PYTHONPATH": str(Path(__file__).parents[3]), "CUARL_SESSIONS_DIR": str(tmp_path / "s")}

    def run(**more):
        return subprocess.run(
            command, env=environment | more, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )

    unset = run()
    assert unset.returncode == 4
    assert "SHOP_PASSWORD is not set" in unset.stderr
    done = run(SHOP_PASSWORD="correct horse")
    assert done.returncode == 0, done.stderr
    assert "1 cookies, storage of 1 origins" in done.stderr
    assert "correct horse" not in done.stderr + done.stdout + out.read_text()
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    storage = read_storage(out, [site])

    async def work(browser):
        assert (await titles(browser, signed(site), site))["title"] == "Login"
        for _ in range(2):
            state = await titles(browser, signed(site, storage), site)
            assert (state["title"], state["text"]) == ("Home", "dark")

    with_browser(work)
    again = run(SHOP_PASSWORD="correct horse")
    assert again.returncode == 2
    assert "--replace" in again.stderr


def end(process):
    """With all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def chromium(folder):
    """A browser that listens, and its address."""
    command = [
        str(find_program()),
        "--headless",
        "--no-sandbox",
        "--remote-debugging-port=0",
        f"--user-data-dir={folder}",
    ]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        file = folder / "DevToolsActivePort"
        for _ in range(600):
            if file.is_file() and file.read_text().strip():
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{file.read_text().split()[0]}", process
    finally:
        end(process)


@contextlib.contextmanager
def playwright_server(folder):
    (folder / "server.json").write_text(json.dumps({"executablePath": str(find_program()), "args": ["--no-sandbox"]}))
    command = [sys.executable, "-m", "playwright", "launch-server", "--browser=chromium", "--config=server.json"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield process.stdout.readline().strip(), process
    finally:
        end(process)
        process.stdout.close()


@pytest.mark.parametrize("started", [chromium, playwright_server])
def test_a_browser_that_runs_already_is_used_and_left(portal, ledger, site, tmp_path, started):
    async def work(url, process):
        browser = Browser(ledger, url=url)
        await browser.reach()
        assert browser.mark == "", "it is not ours to end"
        env = WebEnv(browser, signed(site))
        await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": site}), 0)
        await env.step(Click(x=20, y=20))
        assert (await env.state())["title"] == "Login"
        await env.close()
        await browser.close()
        assert process.poll() is None
        again = Browser(ledger, url=url)
        assert (await titles(again, signed(site), site))["title"] == "Login"
        end(process)
        with pytest.raises(EnvError):
            await titles(again, signed(site), site)
        await again.close()

    with started(tmp_path) as (url, process):
        portal.call(work, url, process)


def test_no_browser_at_an_address_is_told_before_anything_starts(portal, ledger):
    with pytest.raises(PrerequisiteError, match="can't be reached") as told:
        portal.call(Browser(ledger, url="http://127.0.0.1:9/?token=hidden-token").reach)
    assert "hidden-token" not in str(told.value)
