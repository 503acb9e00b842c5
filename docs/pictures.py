"""Takes the pictures of the monitor for its page: ``python -m docs.pictures``, which needs the extras web and browser.

Trains the shipped model a little, measures it, begins another training, and opens every page in a headless Chromium:
1280 and 390 pixels wide, light and dark. Says what is wrong with a page (something wider than the screen, an error in
its console) and ends with 1 then. ``--person`` takes those of the page on which a person acts instead.
"""

from __future__ import annotations

import argparse
import io
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from PIL import Image

from cuarl.env.browser.browser import find_program

IMAGES = Path(__file__).parent / "images" / "monitor"
SIZES = ((1280, 860), (390, 844))
GOING = "settings-going-on"
TRAIN = (
    "train", "--tasks", "settings", "--difficulty", "easy",
    "--groups-per-batch", "3", "--group-size", "6", "--eval-episodes", "12",
)  # fmt: skip


def main() -> int:
    """Take them all; gives how many pages are not right."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--runs-dir", type=Path, help="folder of runs that are there already, of which the newest is shown"
    )
    arguments.add_argument("--person", action="store_true", help="the page of cuarl rollout --agent human")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as made:
        if given.person:
            with acting(Path(made)) as url:
                return taken_acting(url)
        runs = given.runs_dir or demo(Path(made))
        with going_on(runs), serving(runs) as url:
            return taken(url, addresses(url))


def demo(folder: Path) -> Path:
    """A training with its evaluations, and another to compare it with."""
    for words in (
        (*TRAIN, "--max-steps", "8", "--eval-every", "4", "--name", "settings-grpo"),
        ("eval", "settings-grpo", "--episodes", "12"),
        ("rollout", "--tasks", "settings", "--episodes", "6", "--agent", "oracle", "--name", "shown-by-the-oracle"),
    ):
        cuarl(*words, "--runs-dir", str(folder))
    return folder


@contextmanager
def going_on(folder: Path) -> Iterator[None]:
    """Inside, a training goes on."""
    words = (*TRAIN, "--max-steps", "40", "--skip-baseline", "--name", GOING, "--runs-dir", str(folder))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-m", "cuarl", *words], **quiet) as training:
        try:
            yield
        finally:
            training.send_signal(signal.SIGINT)
    cuarl("runs", "rm", GOING, "--yes", "--runs-dir", str(folder))


def cuarl(*words: str) -> None:
    """Run a command of cuarl's."""
    subprocess.run([sys.executable, "-m", "cuarl", *words], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def serving(runs: Path) -> Iterator[str]:
    """The address of a monitor of these runs."""
    words = [sys.executable, "-m", "cuarl", "monitor", "serve", "--port", "0", "--json", "--runs-dir", str(runs)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"].rstrip("/")
        finally:
            server.terminate()


@contextmanager
def acting(folder: Path) -> Iterator[str]:
    """The address of a page on which a person acts."""
    words = ["rollout", "--agent", "human", "--tasks", "settings", "--difficulty", "easy", "--limit", "2", "--no-open"]
    command = [sys.executable, "-m", "cuarl", *words, "--json", "--runs-dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        try:
            yield next(said["url"] for said in map(json.loads, run.stdout) if said["event"] == "listening")
        finally:
            run.terminate()


def taken_acting(url: str) -> int:
    """Pictures of a person's page after two turns."""
    from playwright.sync_api import sync_playwright

    folder, wrong = IMAGES.parent / "human", 0
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_program()), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(url)
        for place in ({"x": 60, "y": 90}, {"x": 120, "y": 250}):
            page.wait_for_selector("#stage:not(.busy) #shot:not([hidden])")
            page.click("#stage", position=place)
            page.wait_for_timeout(1500)
        for (width, height), scheme in zip(SIZES, ("light", "dark"), strict=True):
            size: Any = {"width": width, "height": height}
            context = browser.new_context(viewport=size, color_scheme=scheme)
            wrong += not look(context.new_page(), url, folder / f"{width}-{scheme}.webp")
            context.close()
        browser.close()
    return wrong


def addresses(url: str) -> dict[str, str]:
    """A page of each kind."""
    while not (running := httpx.get(f"{url}/", params={"q": GOING}).text.count("<progress")):
        time.sleep(1)
    assert running == 1
    runs = httpx.get(f"{url}/api/trainings").json()["trainings"]
    run = next(one for one in runs if one["command"] == "train" and one["status"] == "completed")["id"]
    going = next(one for one in runs if one["name"] == GOING)["id"]
    entries = httpx.get(f"{url}/api/trainings/{run}/timeline").json()["timeline"]
    evaluations = [one for one in entries if one["kind"] != "step"]
    step = max(one["step"] for one in entries)
    found = httpx.get(f"{url}/api/timeline/step/{run}:{step}").json()["rollouts"]
    best = max(found, key=lambda one: (one["reward"] or 0, one["num_turns"]))["id"]
    sides = [f"evaluation:{one['id']}" for one in (evaluations[0], evaluations[-1])]
    return {
        "runs": "/",
        "running": f"/runs/{going}",
        "run": f"/runs/{run}",
        "costs": f"/runs/{run}/costs",
        "step": f"/runs/{run}/steps/{step}",
        "episodes": f"/episodes?run={run}&sort=reward",
        "episode": f"/episodes/{best}?turn=2",
        "prompt": f"/episodes/{best}/turns/2/prompt",
        "evaluations": "/evaluations",
        "evaluation": f"/evaluations/{evaluations[-1]['id']}",
        "compare": f"/compare?a={sides[0]}&b={sides[1]}",
    }


def taken(url: str, pages: dict[str, str]) -> int:
    """A picture of each page in each width and scheme; gives how many are not right."""
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_program()), args=["--no-sandbox"])
        for width, height in SIZES:
            for scheme in ("light", "dark"):
                size: Any = {"width": width, "height": height}
                context = browser.new_context(viewport=size, color_scheme=scheme)
                for name, path in pages.items():
                    wrong += not look(context.new_page(), url + path, IMAGES / f"{name}-{width}-{scheme}.webp")
                context.close()
        browser.close()
    return wrong


def look(page: Any, address: str, file: Path) -> bool:
    """Take the picture of a page; gives whether it is right."""
    troubles: list[str] = []
    page.on("console", lambda line: troubles.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(address)
    page.wait_for_load_state("load")
    page.wait_for_timeout(300)
    beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    troubles += [f"it is {beyond} pixels wider than the screen"] if beyond > 0 else []
    Image.open(io.BytesIO(page.screenshot())).save(file, quality=72, method=6)
    page.close()
    print(f"{file.name}: {'; '.join(troubles) or 'as it should be'}")
    return not troubles


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
