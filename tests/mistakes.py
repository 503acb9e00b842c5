"""Mistakes that people make on the command line, and what they are told: one line each, in seconds, with nothing
half-made.

python -m tests.mistakes          the table of docs/results/mistakes.md
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory


@dataclass(frozen=True)
class Mistake:
    """A command, what it is told, and its exit code."""

    command: str
    said: str
    code: int = 2
    made: Callable[[Path], object] = lambda folder: None
    """What is wrong in the folder in which it is made."""


TASK = {
    "id": "wifi",
    "description": "Do it",
    "category": "settings",
    "checks": [{"path": "network.wifi.enabled", "value": False}],
}


def text(name: str, content: str | bytes) -> Callable[[Path], object]:
    """A file with this content."""
    return lambda folder: (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def task_file(name: str = "t.json", **changed: object) -> Callable[[Path], object]:
    """A file with one task, changed."""
    return text(name, json.dumps([{**TASK, **changed}]))


def model(damage: Callable[[Path], object]) -> Callable[[Path], object]:
    """A copy of the shipped base, damaged."""

    def make(folder: Path) -> None:
        from cuarl.policy import tiny

        damage(Path(shutil.copytree(tiny.path(), folder / "models" / "mine")))

    return make


def cut(folder: Path) -> None:
    """Weights that are not all there."""
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def run_of(kind: str) -> Callable[[Path], object]:
    """A run of this kind, called ``mine``."""

    def make(folder: Path) -> None:
        from cuarl.config.load import resolve
        from cuarl.run import Run

        Run.create(folder / "runs", resolve(), kind=kind, name="mine")  # type: ignore[arg-type]

    return make


def without_room(folder: Path) -> None:
    """A folder of runs that is a file."""
    (folder / "runs").write_text("")


MISTAKES = [
    # words that are not quite right
    Mistake("cuarl trian", "Did you mean 'train'?"),
    Mistake("cuarl train --taks settings", "--tasks"),
    Mistake("cuarl train --group-sise 4", "--group-size"),
    Mistake("cuarl rollout --agent oracel", 'did you mean "oracle"?'),
    Mistake("cuarl train --algorithm grpoo", "grpo"),
    Mistake("cuarl train --tasks setings", "setings"),
    Mistake("cuarl train --difficulty esay", "easy"),
    Mistake("cuarl train --category setting", "settings"),
    Mistake("cuarl train --preset qwen", "qwen"),
    Mistake("cuarl train -s grup_size=4", "group_size"),
    Mistake("cuarl train --env androd", "androd"),
    Mistake("cuarl train --reward simpel", 'did you mean "simple"?'),
    Mistake("cuarl eval nothere", 'there is no run "nothere"'),
    Mistake("cuarl eval mine@77", "no checkpoint of step 77", made=run_of("train")),
    Mistake("cuarl eval mine@best", "no checkpoint of the run has a value", made=run_of("train")),
    Mistake("cuarl rollout show nothere", "no episodes in the store yet"),
    Mistake("cuarl tasks show nothere", "nothere"),
    Mistake("cuarl monitor tail nothere", 'there is no run "nothere"'),
    Mistake("cuarl rollout --tasks train_02_enable_wify", "train_02_enable_wifi"),
    # values of the wrong kind
    Mistake("cuarl train --group-size four", "four"),
    Mistake("cuarl train --group-size 0", "group_size"),
    Mistake("cuarl train --learning-rate -1", "learning_rate"),
    Mistake("cuarl train --learning-rate nan", "learning_rate"),
    Mistake("cuarl train --temperature 0", "temperature"),
    Mistake("cuarl train --max-steps 1.5", "1.5"),
    Mistake("cuarl train --top-p 2", "top_p"),
    Mistake("cuarl train --lora-rank -3", "lora_rank"),
    Mistake("cuarl train -s group_size", "is not key=value"),
    Mistake("cuarl train --max-turn-time-seconds soon", "soon"),
    Mistake("cuarl rollout --name a/b", "no name for a run"),
    Mistake("cuarl rollout --name ..", "no name for a run"),
    # files
    Mistake("cuarl train --config nothere.yaml", "nothere.yaml"),
    Mistake("cuarl train --config bad.yaml", "bad.yaml, line 3", made=text("bad.yaml", "seed: 1\nmax_steps: [\n")),
    Mistake("cuarl train --config odd.yaml", "odd.yaml", made=text("odd.yaml", b"\xff\xfe\x00")),
    Mistake("cuarl train --config keys.yaml", "group_size", made=text("keys.yaml", "group_sice: 4\n")),
    Mistake("cuarl train --config twice.yaml", "seed", made=text("twice.yaml", "seed: 1\nseed: 2\n")),
    Mistake("cuarl rollout --tasks nothere.json", "nothere.json"),
    Mistake("cuarl rollout --tasks t.json", "holds no task", made=text("t.json", "[]")),
    Mistake("cuarl rollout --tasks t.json", "t.json", made=text("t.json", "[{")),
    Mistake("cuarl rollout --tasks t.json", "chekcs", made=task_file(chekcs=[])),
    Mistake("cuarl rollout --tasks t.json", "op", made=task_file(checks=[{"path": "a", "op": "eq", "value": 1}])),
    Mistake("cuarl rollout --tasks t.json", "wify", made=task_file(preset={"network.wify.enabled": True})),
    Mistake("cuarl train --tasks t.json", "checks", made=task_file(checks=[])),
    Mistake("cuarl rollout --tasks t.json", "two different tasks",
        made=text("t.json", json.dumps([TASK, {**TASK, "description": "Else"}]))),
    # models and devices
    Mistake("cuarl rollout --model-name models/nowhere", 'no model "models/nowhere"',
        made=lambda f: (f / "models").mkdir()),
    Mistake("cuarl rollout --model-name ./nowhere", 'no model "./nowhere"'),
    Mistake("cuarl train --model-name models/mine", "not all of one", 1, model(cut)),
    Mistake("cuarl train --model-name models/mine", "no tokenizer", 4,
        model(lambda f: (f / "tokenizer.json").unlink())),
    Mistake("cuarl train --model-name models/mine", "no weights", 4,
        model(lambda f: (f / "model.safetensors").unlink())),
    Mistake("cuarl train --model-name models/mine", "no model in it",
        made=model(lambda f: (f / "config.json").unlink())),
    Mistake("cuarl train --model-name models/mine", "gpt2",
        made=model(lambda f: (f / "config.json").write_text('{"model_type": "gpt2"}'))),
    Mistake("cuarl train --device cuda:7", "no device cuda:7"),
    Mistake("cuarl train --device gpu", "gpu"),
    Mistake("cuarl rollout --load-checkpoint-path nowhere", "no checkpoint here", 1),
    # servers
    Mistake("cuarl rollout --model-base-url nowhere:80", "nowhere:80"),
    Mistake("cuarl eval http://127.0.0.1:9/v1 --model-name m --episodes 1", "127.0.0.1:9", 4),
    Mistake("cuarl eval http://ann:sesame@127.0.0.1:9/v1", "has a password or key"),
    Mistake("cuarl train --db mysql://host/x", "mysql", 2),
    Mistake("cuarl rollout --env adb --limit 1", "adb", 4),
    # contradictions, and options without effect
    Mistake("cuarl train --algorithm sft", "--sft-runs RUN"),
    Mistake("cuarl train --algorithm sft --sft-runs nothere", 'there is no run "nothere"'),
    Mistake("cuarl train --top-p 0.9", "whole distribution"),
    Mistake("cuarl train --resume mine --name other", "contradict", made=run_of("train")),
    Mistake("cuarl train --resume mine", "a run of cuarl rollout", made=run_of("rollout")),
    Mistake("cuarl rollout --name mine", "already exists", made=run_of("rollout")),
    Mistake("cuarl rollout --agent oracle --temperature 0.5", "no effect"),
    Mistake("cuarl train --browser-contexts 4", "browser"),
    Mistake("cuarl rollout --task 'Do it'", "--url"),
    Mistake("cuarl rollout --env browser --url http://127.0.0.1:9/", "goal"),
    Mistake("cuarl rollout --tasks t.json --agent oracle", "nothing tells how",
        made=task_file(env="browser", preset={"url": "http://127.0.0.1:9/"}, checks=[{"path": "title", "value": "x"}])),
    Mistake("cuarl train --reward mine.py:r", "takes (a, b)", made=text("mine.py", "def r(a, b): return 1")),
    Mistake("cuarl train --reward wrong.py:r", "wrong.py, line 1", made=text("wrong.py", "def r(a: return 1")),
    Mistake("cuarl train --reward nothere.py:r", "there is no file nothere.py"),
    # places
    Mistake("cuarl rollout --limit 1 --agent oracle", "runs", 1, without_room),
    Mistake("cuarl db export .", "needs an empty folder", made=text("x", "y")),
    Mistake("cuarl db import nothere", "nothere"),
    Mistake("cuarl eval --curve nothere", "nothere"),
    Mistake("cuarl model export latest --out x", "no runs yet"),
]  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What came of a mistake."""

    code: int
    err: str
    seconds: float
    left: list[str]
    """Files and folders that are new."""


def make(mistake: Mistake) -> Told:
    """Make it in a folder of its own, in this process."""
    from cuarl.cli.app import run
    from cuarl.terminal.state import STATE, State

    was = Path.cwd()
    with TemporaryDirectory() as place, contextlib.chdir(place):
        folder = Path(place)
        mistake.made(folder)
        before = {path.relative_to(folder) for path in folder.rglob("*")}
        for name in State.__slots__:
            setattr(STATE, name, getattr(State(), name))
        out, err, began = io.StringIO(), io.StringIO(), time.monotonic()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(shlex.split(mistake.command)[1:])
        seconds = time.monotonic() - began
        found = {p.relative_to(folder) for p in folder.rglob("*") if "__pycache__" not in p.parts}
        left = sorted(map(str, found - before))
    assert Path.cwd() == was
    return Told(code, err.getvalue(), seconds, left)


def first_line(told: Told) -> str:
    """Of what it is told, the error itself."""
    return next((line for line in told.err.splitlines() if line.startswith("error")), told.err.strip())


def main() -> None:
    """Print the table."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    print("| command | it is told | code | seconds |\n| --- | --- | --- | --- |")
    for mistake in MISTAKES:
        told = make(mistake)
        cells = (f"`{mistake.command}`", first_line(told).replace("|", "\\|"), str(told.code), f"{told.seconds:.1f}")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
