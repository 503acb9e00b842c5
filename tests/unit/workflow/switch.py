"""A lamp that any click switches, two tasks with it, and watchers that remember."""

from contextlib import nullcontext

from PIL import Image

import cuarl
from cuarl.config.load import resolve
from cuarl.settings import Settings
from cuarl.workflow.experiment import Experiment

TASKS = [
    cuarl.Task(id=f"lamp_{word}", description=f"Turn the lamp {word}", checks=[{"path": "lamp", "value": word == "on"}])
    for word in ("on", "off")
]


class Lamp(cuarl.SimpleEnv):
    on = False

    def screen(self):
        return Image.new("RGB", (192, 384), "yellow" if self.on else "black")

    def act(self, action):
        self.on ^= action.kind == "click"

    def facts(self):
        return {"lamp": self.on}


class Remembers:
    """A watcher."""

    def __init__(self):
        self.notes, self.events, self.steps, self.seen, self.parts = [], [], [], [], []

    def note(self, text):
        self.notes.append(text)

    def progress(self, what, total, *, part=False):
        self.parts.append((what, part))
        return nullcontext(lambda trajectory, done, total: self.seen.append((done, total)))

    def metrics(self, step, values):
        self.steps.append(step)

    def event(self, kind, data):
        self.events.append((kind, dict(data)))

    def close(self):
        pass


def experiment(folder, **fields):
    """On lamps, watched."""
    flags = {"env": f"{__name__}:Lamp", **fields}
    return Experiment(
        resolved=resolve(flags=flags),
        settings=Settings.load(runs_dir=folder / "runs"),
        watcher=Remembers(),
        tasks=TASKS,
        eval_tasks=TASKS,
    )
