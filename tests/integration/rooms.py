"""Rooms with a lamp, for workers: some are slow, some break, some take their process with them."""

import os
import signal
from pathlib import Path

import anyio
from PIL import Image

import cuarl


class Room(cuarl.SimpleEnv):
    """Clicks switch the lamp. In the folder ``ROOMS`` each leaves the number of its process, and that it was closed."""

    on = False

    def begin(self, task, seed):
        self.kind, self.name = task.preset.get("kind", ""), f"{task.task_id}-{seed}-{os.getpid()}"
        if "ROOMS" in os.environ:
            (Path(os.environ["ROOMS"]) / self.name).touch()

    def screen(self):
        return Image.new("RGB", (192, 384), "yellow" if self.on else "black")

    async def step(self, action):
        if self.kind == "slow":
            await anyio.sleep(0.1)
        if self.kind == "stuck":
            await anyio.sleep(3600)
        return await super().step(action)

    def act(self, action):
        if self.kind == "broken":
            raise ValueError("the lamp is broken")
        if self.kind == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        self.on ^= action.kind == "click"

    def facts(self):
        return {"lamp": self.on}

    def end(self):
        if "ROOMS" in os.environ:
            (Path(os.environ["ROOMS"]) / f"{self.name}-closed").touch()


def odd(trajectory):
    """A reward that fails where the room is called so."""
    if "unrewarded" in trajectory.task_id:
        raise KeyError("reward")
    return float(trajectory.success or 0)
