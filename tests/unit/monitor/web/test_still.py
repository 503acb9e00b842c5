"""A run's pages as files: whole, linked among themselves, and without anything of other runs or of a server."""

import re
from html import unescape
from pathlib import Path

import pytest

from cuarl.monitor.web.views import runs
from cuarl.store import Store
from cuarl.store.pages import Pages
from cuarl.workflow.monitoring import write_report
from tests.unit.monitor.web.conftest import fill
from tests.unit.monitor.web.made import PICTURE
from tests.unit.monitor.web.test_pages import EVIL

TRACKER = "https://wandb.example/files/settings-a"
"""Elsewhere, with a path like one of the monitor's own."""


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A store, the folder of a run's report, and how many pages it is said to have; tests only read them."""
    place = tmp_path_factory.mktemp("reported")
    with Store.open(f"sqlite:///{place}/cuarl.db", f"{place}/blobs", runs_dir=place) as store:
        fill(store, EVIL)
        store.log_event("base", "tracker", {"name": "wandb", "id": "x", "url": TRACKER})
        store.drain()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runs, "MANY", 3)  # a file can't ask for the ledger of a large run later
            count = write_report(store, "base", place / "report")
        yield store, place / "report", count


def test_every_link_of_every_page_leads_to_a_file_of_the_report(reported):
    store, folder, count = reported
    pages = sorted(folder.rglob("*.html"))
    assert len(pages) == count > 50
    for page in pages:
        for link in re.findall(r'(?:href|src|action|data-load|data-events)="([^"]*)"', page.read_text("utf-8")):
            target = unescape(link).partition("#")[0]
            assert target in ("", TRACKER) or (page.parent / target).is_file(), f"{page.name}: {link}"
    assert f'<a href="{TRACKER}"' in (folder / "index.html").read_text("utf-8")
    used = {p.name for p in folder.rglob("*") if p.is_file() and p.suffix != ".html"}
    films = {name for name in used if name.endswith(".gif")}
    assert used - films == {"monitor.css", "monitor.js", "icon.svg", f"{PICTURE.digest}.png"}
    assert len(films) == len(Pages(store.engine).episode_lines({"run": "base"}, limit=500))
    assert all((folder / "films" / name).read_bytes()[:6] == b"GIF89a" for name in films)


def test_it_holds_all_of_its_run_and_nothing_of_others(reported):
    store, folder, _ = reported
    texts = [page.read_text("utf-8") for page in folder.rglob("*.html")]
    named = [re.findall(r"<p>Episode ([\w.]+)", text) for text in texts]
    found = {name for names in named for name in names}
    assert found == {e.id for e in Pages(store.engine).episode_lines({"run": "base"}, limit=500)}
    assert (folder / "index.html").read_text("utf-8").count("<td>gbox</td>") == 2
    assert all("<form" not in text and "data-load" not in text and "EventSource" not in text for text in texts)
    assert all(
        re.findall("<script[^>]*>", text) == [f'<script src="{up}files/monitor.js" defer>']
        for text, up in _ups(folder, texts)
    )


def _ups(folder: Path, texts):
    return [
        (text, "../" * (len(page.relative_to(folder).parts) - 1))
        for page, text in zip(folder.rglob("*.html"), texts, strict=True)
    ]
