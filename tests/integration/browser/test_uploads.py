"""A file that a page asks for is chosen by its name, out of the folder that the task allows."""

from __future__ import annotations

import pytest

from cuarl.env.browser.options import BrowserOptions, Fence
from cuarl.env.browser.web import WebEnv
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, TypeText, Wait

pytestmark = pytest.mark.integration

PAGE = """<!doctype html><body style="margin:0"><input type=file style="width:200px;height:40px">
<input id=name style="position:absolute;left:0;top:100px;width:150px;height:40px"><script>
document.querySelector('input').onchange = async (e) => document.title = await e.target.files[0].text();</script>"""
ASK, FIELD = Click(x=30, y=20), Click(x=30, y=120)


async def asked(env):
    """Has the page ask for a file, and waits until that is known: a busy browser says so late."""
    shown = await env.step(ASK)
    while "note" not in shown.observation.text:
        shown = await env.step(Wait(seconds=0.1))
    return shown


@pytest.fixture
def opened(with_browser, tmp_path):
    """Runs a coroutine function with the page, of a task that allows a folder or none."""
    (tmp_path / "page.html").write_text(PAGE)
    files = tmp_path / "files"
    files.mkdir()
    (files / "bill.txt").write_text("320 Euro")
    (tmp_path / "secret.txt").write_text("secret")
    (files / "link.txt").symlink_to(tmp_path / "secret.txt")

    def run(work, **preset):
        async def inside(browser):
            env = WebEnv(browser, BrowserOptions(viewport=(300, 200), fence=Fence((tmp_path.resolve(),))))
            try:
                url = (tmp_path / "page.html").as_uri()
                await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url, **preset}), 0)
                await work(env)
            finally:
                await env.close()

        with_browser(inside)

    return run, files


def test_the_name_of_a_file_chooses_it_and_no_other_can_be_named(opened):
    run, files = opened

    async def work(env):
        shown = await asked(env)
        assert shown.observation.text["note"] == (
            "The page asks for a file; type the name of one to choose it: bill.txt."
        )
        for name in ("../secret.txt", "link.txt", "none.txt"):
            refused = await env.step(TypeText(text=name))
            assert refused.info["rejected"] == f'there is no file "{name}" to choose: bill.txt'
        await env.step(Wait(seconds=0))
        await env.step(TypeText(text="bill.txt", submit=True))
        assert (await env.state())["title"] == "320 Euro"

    run(work, uploads=str(files))


def test_who_does_something_else_types_as_usual(opened):
    run, files = opened

    async def work(env):
        await asked(env)
        await env.step(FIELD)
        await env.step(TypeText(text="bill.txt"))
        state = await env.state()
        assert (state["title"], state["read"]["name"]) == ("", "bill.txt")

    run(work, uploads=str(files), read={"name": "document.querySelector('#name').value"})


def test_without_a_folder_none_can_be_chosen(opened):
    run, _ = opened

    async def work(env):
        shown = await asked(env)
        assert shown.observation.text["note"] == "The page asked for a file, which can't be chosen here."

    run(work)
