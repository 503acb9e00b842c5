"""Every command that the README and the docs show is understood, and those that need nothing special run."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import httpx
import pytest
import typer

from cuarl.cli.app import app
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
GENERATED = {"docs/reference/cli.md"}
STAND_INS = {"ID": "turn_back_up_data", "20000": "400"}
"""What a guide's commands are run with instead, to mean something here and to take seconds."""
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


# so short a run may not have learnt anything; of its first version there is no checkpoint, as of most in a long run
SHORT = ("--max-steps", "2", "--groups-per-batch", "2", "--group-size", "2", "--eval-episodes", "2", "--max-turns", "2")


def shortened(words: list[str]) -> list[str]:
    """The command, training and evaluating as little as possible."""
    few = {"train": SHORT, "eval": ("--episodes", "2"), "model": ("--untrained",)}.get(words[1], ())
    if "oracle" in words:  # one after the other, so that it is the same one that ends last
        few = ("--max-concurrent-rollouts", "1")
    return words if "--compare" in words or "--resume" in words else [*words, *few]


class Shown(NamedTuple):
    """A command of a page, and what the page shows beneath it."""

    page: str
    words: list[str]
    tail: int | None
    """How many lines of standard output ``| tail -N`` lets through."""
    output: list[str]


def with_output(page: str, *, special: bool = False) -> Iterator[Shown]:
    """The commands of a page that need nothing special, or all of them."""
    for block in re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL):
        for part in re.split(r"^\$ ", re.sub(r"\\\n\s*", "", block), flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            piped = re.search(r" \| tail -(\d+)", line)
            needy = {"--env", "--preset", "--prove", "doctor", "model"} & set(line.split()) and "export" not in line
            for words in shown(f"```console\n$ {line}\n```"):
                if special or not needy:
                    yield Shown(page, words, int(piped[1]) if piped else None, output.splitlines())


NUMBER = r"[+-]?\d+(?:\.\d+)?(?:e-?\d+)?"
MASKS = (
    (r"\b[0-9a-f]{16}\.[\d.]+", "ID"),
    (rf"\b{NUMBER} (?:ms|s|min|h|d)\b(?: {NUMBER} (?:min|h)\b)?", "TIME"),
    (rf"(?<![\w.]){NUMBER}", "N"),
    (r"\bN(?:–N)?(?:–N)?", "N"),
    (r"neither better nor worse for sure|better|worse", "SO"),
    (r" +", " "),
)  # fmt: skip
PROGRESS = re.compile(r"[\w ]+: \d+/\d+ episodes, ")
SKIPPED = "…"


def masked(lines: Iterable[str]) -> list[str]:
    """Without numbers, times and ids; what differs in nothing else is one line."""
    found: list[str] = []
    for line in lines:
        for pattern, stand_in in MASKS:
            line = re.sub(pattern, stand_in, line)
        if line.strip() and (not found or found[-1] != line.rstrip()):
            found.append(line.rstrip())
    return found


def is_printed(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines are those that are printed, word for word; ``…`` stands for any lines."""
    if not shown:
        return not printed
    if shown[0] == SKIPPED:
        return any(is_printed(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and is_printed(shown[1:], printed[1:])


def test_what_is_shown_is_compared_word_for_word() -> None:
    printed = masked(["a  1", "b 2.5 s", "c 0123456789abcdef.0001.0", "c 3–4 %", "c 5.0–6.25 %", "d"])
    assert printed == ["a N", "b TIME", "c ID", "c N %", "d"]
    assert is_printed(["a N", SKIPPED, "d"], printed) and is_printed(printed, printed)
    assert not is_printed(["a N", "d"], printed) and not is_printed(printed[:-1], printed)
    assert not is_printed([*printed, "e"], printed) and not is_printed(["a N", SKIPPED, "e"], printed)


def test_the_first_pages_show_what_is_printed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """README and five minutes, each command once, and what other Start pages show of tasks."""
    pages = ("README.md", "docs/start/five-minutes.md", "docs/start/your-web-app.md")
    done: dict[str, tuple[list[str], list[str]]] = {}
    wrong = []
    for one in (one for page in pages for one in with_output(page)):
        if one.page == pages[-1] and one.words[1] != "tasks":  # test_tutorials has an application to run them with
            continue
        line = shlex.join(one.words) + (" | tail" if one.tail else "")
        if line not in done:
            follow = ("--no-follow",) if one.words[1:3] == ["monitor", "tail"] else ()
            with monkeypatch.context() as patched:
                if one.tail is None:  # both streams in the order in which they are written
                    patched.setattr(sys, "stderr", sys.stdout)
                ran = place.cuarl(*shortened(one.words)[1:], *follow)
            assert ran.code == 0, (one.words, ran.out, ran.err)
            done[line] = (ran.out.splitlines(), ran.err.splitlines())
        out, err = done[line]
        printed = masked(text for text in [*err, *out[-(one.tail or len(out)) :]] if not PROGRESS.match(text))
        if one.output and not is_printed(masked(one.output), printed):
            wrong.append("\n".join([f"{one.page}: {line}", *masked(one.output), "is printed as", *printed]))
    assert len(done) > 12
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize(
    "page", ["docs/guides/tasks.md", "docs/guides/suites.md", "docs/guides/desktop.md", "docs/guides/sessions.md"]
)
def test_a_guides_listings_run(place: Place, page: str) -> None:
    """Those that take seconds: proofs of all tasks, and whole suites played, are left out."""
    shutil.copy(ROOT / "examples" / "my-tasks.yaml", place.folder / "mine.yaml")
    ran = 0
    for words in commands(page):
        quick = words[1] in ("tasks", "sessions") and not {"--seeds", "--prove"} & set(words)
        if quick:
            done = place.cuarl(*(STAND_INS.get(word, word) for word in words[1:]))
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
