"""The tutorials of docs/start, run by their text: each command in order, shortened where it trains or evaluates."""

from __future__ import annotations

import runpy
import shlex
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from cuarl.config.load import resolve
from tests.integration.browser.conftest import why_not
from tests.integration.rollout_place import Place, Result, bare
from tests.integration.small_model import qwen3_folder, tokenizer
from tests.integration.test_documented_commands import ROOT, Shown, masked, with_output
from tests.integration.test_own_server import INTERPRETER, port

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

    @pytest.mark.slow
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


class TestQwen:
    PAGE = "docs/start/qwen3-vl.md"
    NAME = "Qwen/Qwen3-VL-2B-Instruct"

    def asked(self, words: list[str], place: Place, model: Path) -> list[str]:
        """The command with a miniature of the same architecture, and ``cuarl serve`` in vLLM's place."""
        few = ["--max-tokens", "8", "--profile", "small"]
        if words[1] == "eval" and "--compare" not in words:
            at = words.index(self.NAME)
            return [*words[:at], str(model), *words[at + 1 :], *few, "--episodes", "2", "--max-turns", "2"]
        if words[1:3] == ["model", "export"]:
            return [*words, "--untrained"]  # two steps of it may have taught nothing
        if words[1] != "train" or "--print-config" in words:
            return [*words, "--no-follow"] if words[1:3] == ["monitor", "tail"] else words
        found = [*words, *SHORT, *few, "--model-name", str(model)]
        if "--vllm-python" in words:
            script = place.folder / "python"
            script.write_text(INTERPRETER)
            script.chmod(0o755)
            found[found.index("--vllm-python") + 1] = str(script)
            found += ["--vllm-port", str(port()), "--device", "cpu", "--skip-baseline"]
            found += ["--max-turns", "1"]  # what an untrained model says does not survive as text in a history
        return found

    @pytest.mark.slow
    def test_the_page_is_run_by_its_text_with_a_miniature(self, place: Place, qwen3_folder: Path) -> None:
        pytest.importorskip("uvicorn", reason="the server needs the extra web")
        (place.folder / "runs").mkdir()
        ran = []
        for one in steps(self.PAGE):
            done = place.cuarl(*self.asked(one.words, place, qwen3_folder)[1:])
            # what is wrong with a machine is for doctor to say
            assert done.code == 0 or one.words == ["cuarl", "doctor"], (one.words, done.err[-1500:])
            ran.append(" ".join(one.words[1:3]))
        assert len(ran) == 11
        assert (place.folder / "my-adapter" / "adapter_model.safetensors").is_file()
        assert "--max-lora-rank 32" in (place.folder / "told").read_text()

    def test_the_hours_are_what_the_figures_give(self) -> None:
        page = (ROOT / self.PAGE).read_text(encoding="utf-8")
        measured = {"544×1216": 0.028 + 0.026, "1080×2400": 0.113 + 0.089}
        config = resolve(preset="qwen3-vl-lora").config
        for turns in (5, config.max_turns):
            cells = []
            for seconds in measured.values():
                step = seconds * turns * config.group_size * config.groups_per_batch
                cells.append(f"{step:.0f} s a step, {step * config.max_steps / 3600:.1f} hours")
            assert f"| {' | '.join(cells)} |" in page


class TestWebApp:
    PAGE = "docs/start/your-web-app.md"

    @pytest.fixture
    def applications(self, place: Place) -> Iterator[None]:
        """The examples' servers on free ports, and the examples with those addresses in them."""
        if reason := why_not():
            pytest.skip(reason)
        (place.folder / "examples").unlink()
        with ExitStack() as stack:
            for name, handler, written in (("shop", "Shop", 8765), ("helpdesk", "HelpDesk", 8766)):
                served = runpy.run_path(str(ROOT / f"examples/{name}/{name}.py"))[handler]
                server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), served))
                Thread(target=server.serve_forever, daemon=True).start()
                stack.callback(server.shutdown)
                shutil.copytree(ROOT / "examples" / name, place.folder / "examples" / name)
                for tasks in (place.folder / "examples" / name).glob("*.yaml"):
                    tasks.write_text(
                        tasks.read_text(encoding="utf-8").replace(f":{written}/", f":{server.server_port}/")
                    )
            (place.folder / "examples/reading-base").symlink_to(ROOT / "examples/reading-base")
            shutil.copy(place.folder / "examples/shop/tasks.yaml", place.folder / "my-eval-tasks.yaml")
            yield

    def asked(self, words: list[str], model: Path) -> list[str]:
        """The command as it is run here."""
        match words[1:3]:
            case ["eval", "--compare"]:
                return words
            case ["eval", _]:
                return [*words, "--episodes", "2"]
            case ["rollout", "-c"]:
                return [*words, "--episodes", "7"]
            case ["train", "--preset"]:
                return [*words, *SHORT, "--model-name", str(model), "--max-tokens", "8", "--dtype", "float32"]
            case ["train", _] if any("grpo" in word for word in words):
                return [*words, *SHORT]
            case ["train", _]:
                return [*words, "--max-steps", "2", "--groups-per-batch", "4", "--eval-episodes", "2"]
        return words

    def run(self, place: Place, model: Path, *, desk: bool) -> int:
        """Run the commands about the help desk, or all others, and return how many there were."""
        ran, wrong = 0, []
        for one in steps(self.PAGE):
            if any("desk" in word for word in one.words) != desk:
                continue
            done = place.cuarl(*self.asked(one.words, model)[1:])
            assert done.code == 0, (one.words, done.err[-1500:])
            ran += 1
            # what chance does, and what two steps of imitation come to, are not the page's figures
            told = one.output and not {"train", "random"} & set(one.words) and "show" not in one.words
            wrong += [found] if told and (found := agrees(one, done)) else []
        assert wrong == []
        return ran

    @pytest.mark.slow
    def test_the_page_is_run_by_its_text(self, place: Place, applications: None, qwen3_folder: Path) -> None:
        assert self.run(place, qwen3_folder, desk=False) >= 8

    @pytest.mark.slow
    def test_the_chapter_on_the_help_desk_is_run_by_its_text(
        self, place: Place, applications: None, qwen3_folder: Path
    ) -> None:
        assert self.run(place, qwen3_folder, desk=True) >= 6
        assert (place.folder / "desk-report" / "index.html").is_file()
