"""A real desktop: the contract, Unicode, the shipped tasks, and what happens when something dies."""

import json
import os
import signal
import subprocess
import sys
from functools import partial

import anyio
import pytest

from cuarl.env.conformance import CHECKS
from cuarl.env.leases import Ledger
from cuarl.env.linux.env import LinuxEnv
from cuarl.env.linux.programs import APPS, missing
from cuarl.env.processes import marked
from cuarl.errors import EnvError
from cuarl.tasks.suites import load_suite, shipped_folder
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Click, Key, KeyDown, KeyUp, MouseDown, MouseUp, Move, TypeText, Wait
from cuarl.workflow.task_proofs import prove_task
from tests.integration.faults import Acting, roll_out, went_well

ABSENT = missing(APPS) + [name for name in ("Xlib", "mss") if __import__("importlib.util").util.find_spec(name) is None]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        bool(ABSENT), reason=f"a desktop needs {', '.join(ABSENT)} (docs/guides/linux.md says how to install it)"
    ),
]

FOLDER = TaskInstance(
    task_id="make_folder",
    goal="Make a folder new.",
    env="linux",
    preset={"ui.app": "xterm"},
    checks=(Check(path="files", op="has", value={"path": "new", "folder": True}),),
    plan=({"run": "mkdir new"},),
)
TEXTS = [
    "很",
    "☝️👩‍💻",
    "שלום!",
    "a b  c",
    "$HOME `x` \"q\" 'r' & ; | %s",
    "two\nlines",
    "",
    "ĄąĆćĘęŁłŃńÓóŚśŹźŻżàéîõüßœ",
]


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "sessions")


def make(ledger):
    async def env():
        return LinuxEnv(ledger, settle_ms=30)

    return env


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check, ledger):
    anyio.run(check, make(ledger), FOLDER)
    assert ledger.leases() == []


def test_c44_any_text_arrives_as_it_is(ledger):
    async def work():
        env = LinuxEnv(ledger)
        try:
            preset = {"files": [{"path": "t.txt"}], "ui.app": "mousepad t.txt"}
            await env.reset(FOLDER.model_copy(update={"preset": preset}), 0)
            for text in TEXTS:
                await env.step(Key(keys=("ctrl", "a")))
                await env.step(Key(keys=("Delete",)))
                await env.step(TypeText(text=text))
                await env.step(Key(keys=("ctrl", "s")))
                (file,) = [f for f in (await env.state())["files"] if f["path"] == "t.txt"]
                assert file["text"] == text
            assert "unsupported_text" in (await env.step(TypeText(text="a\x07"))).info["rejected"]
            assert "no key" in (await env.step(Key(keys=("Hyper_X",)))).info["rejected"]
        finally:
            await env.close()

    anyio.run(work)


def test_keys_are_held_pressed_several_times_and_buttons_let_go_apart(ledger):
    """A text is selected from its caret to a click with Shift, by presses, and by a button that stays down."""

    async def left_of(actions):
        env = LinuxEnv(ledger)
        try:
            preset = {"files": [{"path": "t.txt", "text": "abcdefgh"}], "ui.app": "mousepad t.txt"}
            await env.reset(FOLDER.model_copy(update={"preset": preset}), 0)
            (window,) = [window for window in env.windows() if window.app == "mousepad"]
            line = {"x": window.x + window.width - 20, "y": window.y + 40}
            for action in actions(line):
                assert "rejected" not in (await env.step(action)).info
            await env.step(Key(keys=("ctrl", "s")))
            (file,) = [f for f in (await env.state())["files"] if f["path"] == "t.txt"]
            return file["text"]
        finally:
            await env.close()

    start, gone = Key(keys=("ctrl", "Home")), Key(keys=("Delete",))
    third = Key(keys=("Right",), count=3)
    assert anyio.run(left_of, lambda at: [start, third, Click(**at, held=("shift",)), gone]) == "abc"
    assert anyio.run(left_of, lambda at: [start, Key(keys=("shift", "Right"), count=5), gone]) == "fgh"
    down = [KeyDown(key="shift"), Key(keys=("Right",), count=2), KeyUp(key="shift")]
    assert anyio.run(left_of, lambda at: [start, *down, gone]) == "cdefgh"
    left = anyio.run(left_of, lambda at: [MouseDown(**at), Move(x=at["x"] - 600, y=at["y"]), MouseUp(), gone])
    assert left in ("", "a", "ab", "abc"), "from the end of the line to the pointer"


def test_what_can_not_be_held_is_refused_by_name(ledger):
    async def work():
        env = LinuxEnv(ledger)
        try:
            await env.reset(FOLDER, 0)
            for action in (Click(x=1, y=1, held=("Hyper_X",)), KeyDown(key="ctrl+c"), KeyUp(key="nothing")):
                assert "key" in (await env.step(action)).info["rejected"]
        finally:
            await env.close()

    anyio.run(work)


def test_b25_a_long_text_is_typed_to_its_end(ledger):
    """Also in letters that no keyboard has, which take turns on a few keys; a turn's time grows with the text."""
    text = "The quick brown fox. " * 60 + "".join(chr(0x4E00 + n) for n in range(300))
    task = FOLDER.model_copy(
        update={
            "preset": {"files": [{"path": "t.txt"}], "ui.app": "mousepad t.txt"},
            "allow": ("files",),
            "checks": (Check(path="files", op="has", value={"path": "t.txt", "text": text}),),
        }
    )

    async def work():
        actions = [TypeText(text=text), Key(keys=("ctrl", "s"))]
        return await roll_out([task], lambda task: LinuxEnv(ledger), lambda _, env: Acting(env, actions), turn_s=8.0)

    (done,) = anyio.run(work)
    assert went_well(done), done.failure
    assert done.reward == 1, done.verdict.checks[0].actual


def test_an_application_that_can_not_be_asked_holds_nothing_up(ledger):
    """A terminal does not answer whether it has read what was typed."""

    async def work():
        env = LinuxEnv(ledger)
        try:
            await env.reset(FOLDER, 0)
            await env.step(TypeText(text="mkdir " + "a" * 250, submit=True))
            assert any(file["path"] == "a" * 250 for file in (await env.state())["files"])
        finally:
            await env.close()

    anyio.run(work)


@pytest.mark.parametrize(
    "name",
    [
        "linux_term_sort",
        "linux_edit_wrap",
        "linux_files_trash",
        "linux_win_move",
        "linux_eval_term_join",
        "linux_eval_files_trash_both",
        "linux_eval_win_two",
    ],
)
def test_the_oracle_solves_it_and_doing_nothing_does_not(name, ledger):
    tasks = [task for suite in ("linux", "linux_eval") for task in load_suite(shipped_folder() / suite).tasks]
    (task,) = [task for task in tasks if task.id == name]
    assert [proof.problem for proof in prove_task(task, 1, partial(LinuxEnv, ledger))] == [""]


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["linux", "linux_eval"])
def test_the_oracle_solves_every_task_and_doing_nothing_none(suite, ledger):
    for task in load_suite(shipped_folder() / suite).tasks:
        assert [proof.problem for proof in prove_task(task, 2, partial(LinuxEnv, ledger))] == ["", ""], task.id


def test_a_display_that_is_killed_is_an_error_of_the_environment_and_leaves_nothing(ledger):
    async def work():
        env = LinuxEnv(ledger)
        try:
            await env.reset(FOLDER, 0)
            session = env._session
            os.kill(session._children[0].pid, signal.SIGKILL)
            with pytest.raises(EnvError, match="display"), anyio.fail_after(10):
                for _ in range(20):
                    await env.step(Wait(seconds=0.05))
        finally:
            await env.close()
        return session

    session = anyio.run(work)
    assert marked(session.mark) == [] and not session.home.folder.exists() and ledger.leases() == []


def test_a_display_that_hangs_lets_go_when_the_time_is_up(ledger):
    async def work():
        env = LinuxEnv(ledger)
        try:
            await env.reset(FOLDER, 0)
            session = env._session
            os.kill(session._children[0].pid, signal.SIGSTOP)
            with anyio.move_on_after(0.5) as scope:
                await env.step(Wait(seconds=0))
            assert scope.cancelled_caught
        finally:
            await env.close()
        return session.mark

    assert marked(anyio.run(work)) == []


SLEEPER = """
import sys, anyio
from pathlib import Path
from cuarl.env.leases import Ledger
from cuarl.env.linux.env import LinuxEnv
from cuarl.tasks.task import TaskInstance

async def work():
    env = LinuxEnv(Ledger(Path(sys.argv[1])))
    await env.reset(TaskInstance(task_id="t", goal="g", preset={"ui.app": "xterm"}), 0)
    print("up", flush=True)
    await anyio.sleep(60)

anyio.run(work)
"""


def test_after_kill_9_a_sweep_finds_and_ends_what_is_left(ledger):
    with subprocess.Popen([sys.executable, "-c", SLEEPER, str(ledger.folder)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        (lease,) = ledger.leases()
        assert lease.state == "live"
        process.kill()
    assert lease.state == "orphaned" and len(marked(lease.id)) >= 4
    command = [sys.executable, "-m", "cuarl", "sessions", "sweep", "--json", "--sessions-dir", str(ledger.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [(s["kind"], s["outcome"]) for s in json.loads(done.stdout)] == [("display", "swept")]
    assert marked(lease.id) == [] and ledger.leases() == []
    assert not os.path.exists(lease.detail["folder"])  # noqa: PTH110
