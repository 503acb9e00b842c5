"""Small Gymnasium environments of every kind of action, as users bring them."""

from __future__ import annotations

import os
import sys
import time

import gymnasium
import numpy as np
from gymnasium import spaces

HEIGHT, WIDTH = 48, 64
COLOURS = np.array([(200, 40, 40), (40, 200, 40), (40, 40, 200), (200, 200, 40)], np.uint8)
RENDERED = {"render_modes": ["rgb_array"], "render_fps": 4}


class Lamps(gymnasium.Env):
    """Four lamps; the action that is the number of the lit one is rewarded, three times in a row end the episode."""

    metadata = RENDERED

    def __init__(self, render_mode=None, needed=3):
        self.render_mode, self._needed = render_mode, needed
        self.observation_space = spaces.Discrete(4)
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._right = 0
        self._lit = (options or {}).get("lit", int(self.np_random.integers(4)))
        print("a line on standard output, as some environments print")
        return self._lit, {"lit": self._lit}

    def step(self, action):
        right = int(action) == self._lit
        self._right = self._right + 1 if right else 0
        self._lit = int(self.np_random.integers(4))
        done = self._right >= self._needed
        return self._lit, float(right), done, False, {"lit": self._lit, "right": np.int64(self._right)}

    def render(self):
        picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        picture[:, self._lit * 16 : self._lit * 16 + 16] = COLOURS[self._lit]
        return picture


class Board(gymnasium.Env):
    """Rows and columns; the cell that is bright is to be chosen. Shows itself as its observation, with a mission."""

    def __init__(self, rows=3, columns=4, flat=False):
        self._rows, self._columns, self._flat = rows, columns, flat
        self.observation_space = spaces.Dict(
            {"image": spaces.Box(0, 255, (rows * 16, columns * 16, 3), np.uint8), "mission": spaces.Text(64)}
        )
        self.action_space = spaces.Discrete(rows * columns) if flat else spaces.MultiDiscrete([rows, columns])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(self._rows)), int(self.np_random.integers(self._columns))
        return self._look(), {}

    def step(self, action):
        chosen = divmod(int(action), self._columns) if self._flat else tuple(int(one) for one in action)
        return self._look(), float(chosen == self.cell), True, False, {"solved": chosen == self.cell}

    def _look(self):
        picture = np.full((self._rows * 16, self._columns * 16, 3), 30, np.uint8)
        row, column = self.cell
        picture[row * 16 : row * 16 + 16, column * 16 : column * 16 + 16] = 250
        return {"image": picture, "mission": "choose the bright cell"}


class Dart(gymnasium.Env):
    """A point in a box of reals is to be hit: rewarded by how near it is."""

    metadata = RENDERED

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.observation_space = spaces.Box(-1, 1, (2,), np.float32)
        self.action_space = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 10], np.float32))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self._last = [float(action[0]), float(action[1])]
        return np.zeros(2, np.float32), 1 - abs(self._last[0]), False, True, {"hit": action}

    def render(self):
        return np.full((40, 80), 0.5)


class Form(gymnasium.Env):
    """Clicks, text and keys in a Dict, as pages have them; each step tells what it was given."""

    metadata = RENDERED

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.observation_space = spaces.Box(0, 1, (1,))
        self.action_space = spaces.Dict(
            {
                "type": spaces.Discrete(4),
                "at": spaces.Box(0, 100, (2,), np.int32),
                "text": spaces.Text(20, min_length=0),
            }
        )

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        told = {"type": int(action["type"]), "at": [int(one) for one in action["at"]], "text": action["text"]}
        return np.zeros(1, np.float32), float(action["text"] == "lamp"), False, False, told

    def render(self):
        return np.zeros((100, 100, 4), np.uint8)


class Faulty(Lamps):
    """Action 0 hangs, 1 raises, 2 kills the process, 3 changes the size of the picture."""

    wide = False

    def step(self, action):
        match int(action):
            case 0:
                time.sleep(3600)
            case 1:
                raise RuntimeError("the belt has come off")
            case 2:
                print("going down", file=sys.stderr, flush=True)
                os._exit(9)
        self.wide = True
        return super().step(action)

    def render(self):
        return np.zeros((HEIGHT, WIDTH * (1 + self.wide), 3), np.uint8)


gymnasium.register("cuarl-tests/Lamps-v0", entry_point=Lamps, max_episode_steps=6)
gymnasium.register("cuarl-tests/Board-v0", entry_point=Board)


def phone(**kwargs):
    """One of cuarl's own environments, as it is given to learners that speak Gymnasium."""
    from cuarl.integrations.gymnasium import CuarlEnv
    from cuarl.tasks.task import Check, Task

    off = Task(id="off", description="Turn Wi-Fi off.", checks=(Check(path="network.wifi.enabled", value=False),))
    return CuarlEnv([off], render_mode="rgb_array", **kwargs)
