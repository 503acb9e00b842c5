"""The tutorials of docs/start, run by their text: each command in order, shortened where it trains or evaluates."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.rollout_place import Place, Result, bare
from tests.integration.small_model import qwen3_folder, tokenizer
from tests.integration.test_documented_commands import ROOT, Shown, masked, with_output

__all__ = ["qwen3_folder", "tokenizer"]
pytestmark = pytest.mark.integration
QUICK = ("--adb-settle-ms", "5")
SHORT = ("--max-steps", "2", "--groups-per-batch", "2", "--group-size", "2", "--eval-episodes", "2", "--max-turns", "2")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "sessions"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return Place(tmp_path, capsys)


def steps(page: str) -> Iterator[Shown]:
    """The page's commands in order, with what it shows beneath them."""
    yield from with_output(page, special=True)


def agrees(one: Shown, ran: Result) -> str:
    """What is shown and not printed; empty if all is."""
    printed = masked([*ran.out.splitlines(), *ran.err.splitlines()])
    lost = [line for line in masked(one.output) if line not in printed]
    return "" if not lost else "\n".join([shlex.join(one.words), *lost, "is not among", *printed])


class TestPhone:
    PAGE = "docs/start/phone.md"

    @pytest.fixture
    def phones(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")
        from cuarl.local.adb_stock import StockPhone
        from tests.fakes.adb_server import served

        with served(*(StockPhone(f"cuarl-sim-{number}") for number in (1, 2))) as port:
            monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(port))
            yield

    def asked(self, words: list[str], model: Path) -> list[str] | None:
        """The command as it is run here; None for what another test runs."""
        match words[1:3]:
            case ["local", _] | ["tasks", "record"]:  # the fixture; test_record_phone
                return None
            case ["tasks", "validate"] if "--prove" in words:
                return [*words, "--set", "env.settle_ms=5"]
            case ["eval", _]:
                return [*words, *QUICK, "--episodes", "2"]
            case ["rollout", "--env"]:
                return [*words, *QUICK]
            case ["train", "--preset"]:
                return [*words, *SHORT, *QUICK, "--model-name", str(model), "--max-tokens", "8", "--dtype", "float32"]
            case ["train", _]:
                return [*words, *QUICK, "--max-steps", "2", "--eval-episodes", "2"]
        return words

    def test_the_page_is_run_by_its_text(self, place: Place, phones: None, qwen3_folder: Path) -> None:
        for name in ("mine.yaml", "my-eval-tasks.yaml"):  # what the reader makes of it
            shutil.copy(ROOT / "examples/phone/tasks.yaml", place.folder / name)
        ran, wrong = 0, []
        for one in steps(self.PAGE):
            words = self.asked(one.words, qwen3_folder)
            if words is None:
                continue
            done = place.cuarl(*words[1:])
            assert done.code == 0, (words, done.err)
            ran += 1
            # what imitation comes to depends on how long it is
            wrong += [found] if "train" not in words and (found := agrees(one, done)) else []
        assert ran >= 9 and wrong == []

    def test_the_task_that_the_page_shows_is_the_examples(self) -> None:
        page = (ROOT / self.PAGE).read_text(encoding="utf-8")
        tasks = (ROOT / "examples/phone/tasks.yaml").read_text(encoding="utf-8")
        assert tasks[tasks.index("- id: phone_dark") :] in page
