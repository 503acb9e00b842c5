"""Every command that the README and the docs show is understood, and those that need nothing special run."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
import typer

from cuarl.cli.app import app
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
GENERATED = {"docs/reference/cli.md"}
REFUSED = {
    "cuarl train --algorithm rejection --clip-high 0.3": 2,
    "cuarl rollout --tasks settings --limit 1 --max-prompt-tokens 50": 2,
}


def shown(text: str) -> Iterator[list[str]]:
    """The words of each ``$ cuarl …`` in blocks of console lines: without comments, pipes and variables."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in re.findall(r"^\$ (.*)$", re.sub(r"\\\n\s*", "", block), re.MULTILINE):
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]
            end = next((i for i, word in enumerate(words) if word in ("|", "&", ">")), len(words))
            if words and words[0] in ("cuarl", ".venv/bin/cuarl"):
                yield ["cuarl", *words[1:end]]


COMMANDS = sorted(
    {
        (str(page.relative_to(ROOT)), *words)
        for page in PAGES
        if str(page.relative_to(ROOT)) not in GENERATED
        for words in shown(page.read_text(encoding="utf-8"))
    }
)


def parse(words: list[str]) -> None:
    """Have the real parser take the words, without doing what they say. Raises its usage errors."""
    command, parent = typer.main.get_command(app), None
    while True:
        context = command.make_context(words[0], list(words[1:]), parent=parent)
        if not hasattr(command, "resolve_command"):
            return
        rest = [*context._protected_args, *context.args]
        if not rest:
            assert command.invoke_without_command, "a group without a command"
            return
        name, command, rest = command.resolve_command(context, rest)
        words, parent = [name, *rest], context


def test_comments_pipes_and_variables_are_no_words() -> None:
    page = (
        "```console\n$ A=1 cuarl a 'b c' | tail # d\nout\n$ cuarl e \\\n    f  # g\n$ ls\n"
        "```\n```text\n$ cuarl h\n```\n"
    )
    assert list(shown(page)) == [["cuarl", "a", "b c"], ["cuarl", "e", "f"]]


def test_no_command_hides_in_a_block_of_another_kind() -> None:
    """Indented blocks, and fenced ones without a language, are not read by the tests below."""
    hidden = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in PAGES
        if str(page.relative_to(ROOT)) not in GENERATED
        for line in re.findall(
            r"^(?: {4}|```(?:sh|bash)?\n)(cuarl .*)$", page.read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    assert hidden == []


def test_every_shown_command_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare(monkeypatch, tmp_path)
    assert len(COMMANDS) > 120
    failed = []
    for page, *words in COMMANDS:
        try:
            parse(words)
        except Exception as error:  # noqa: BLE001 (whatever a parser raises is listed)
            failed.append(f"{page}: {shlex.join(words)}: {error}")
    assert failed == []


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return Place(tmp_path, capsys)


def commands(page: str) -> list[list[str]]:
    return list(shown((ROOT / page).read_text(encoding="utf-8")))


SHORT = ("--max-steps", "1", "--groups-per-batch", "2", "--group-size", "2", "--eval-episodes", "2", "--max-turns", "2")


def shortened(words: list[str]) -> list[str]:
    """The command, training and evaluating as little as possible."""
    # so short a run may not have learnt anything
    few = {"train": SHORT, "eval": ("--episodes", "2"), "model": ("--untrained",)}.get(words[1], ())
    return words if "--compare" in words or "--resume" in words else [*words, *few]


def test_five_minutes_run_as_the_page_says(place: Place) -> None:
    for words in commands("docs/start/five-minutes.md"):
        follow = ("--no-follow",) if words[1:3] == ["monitor", "tail"] else ()
        done = place.cuarl(*shortened(words)[1:], *follow)
        assert done.code == 0, (words, done.err)


@pytest.mark.parametrize(
    "page", ["docs/guides/tasks.md", "docs/guides/suites.md", "docs/guides/desktop.md", "docs/guides/sessions.md"]
)
def test_a_guides_listings_run(place: Place, page: str) -> None:
    """Those that take seconds: proofs of all tasks, and whole suites played, are left out."""
    shutil.copy(ROOT / "examples" / "my-tasks.yaml", place.folder / "mine.yaml")
    ran = 0
    for words in commands(page):
        quick = words[1] in ("tasks", "sessions") and not {"--seeds"} & set(words)
        if quick:
            done = place.cuarl(*("turn_back_up_data" if word == "ID" else word for word in words[1:]))
            assert done.code == 0, (words, done.err)
            ran += 1
    assert ran


def test_the_stores_commands_run(place: Place) -> None:
    assert (
        place.cuarl("rollout", "--tasks", "settings", "--limit", "1", "--agent", "oracle", "--name", "settings-a").code
        == 0
    )
    for words in commands("docs/guides/store.md"):
        done = place.cuarl(*words[1:], *(("--yes",) if words[2] == "delete" else ()))  # a terminal is asked
        assert done.code == 0, (words, done.err)


def test_refused_commands_are_refused_as_shown(place: Place) -> None:
    every = {shlex.join(words) for _, *words in COMMANDS}
    for command, code in REFUSED.items():
        assert command in every, "the page no longer shows it"
        done = place.cuarl(*shlex.split(command)[1:])
        assert done.code == code and done.err.startswith("error: "), done.err


def test_the_shop_of_the_start_page_is_what_its_tasks_say() -> None:
    page = (ROOT / "docs/start/your-web-app.md").read_text(encoding="utf-8")
    tasks = (ROOT / "examples/shop/tasks.yaml").read_text(encoding="utf-8")
    assert tasks.partition("tasks:\n")[2] in page
    server = ThreadingHTTPServer(("127.0.0.1", 0), runpy.run_path(str(ROOT / "examples/shop/shop.py"))["Shop"])
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}", trust_env=False) as client:
            assert "Add a lamp" in client.get("/?session=a&add=Lamp").text
            carts = [client.get(f"/state?session={name}").json() for name in "ab"]
            client.post("/reset?session=a")
            carts.append(client.get("/state?session=a").json())
    finally:
        server.shutdown()
        server.server_close()
    assert carts == [{"cart": ["Lamp"]}, {"cart": []}, {"cart": []}]
