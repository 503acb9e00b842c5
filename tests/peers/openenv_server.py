"""Run by a Python that has the real ``openenv``: serve a toy environment on a free port, which is printed."""

from __future__ import annotations

import base64
import io
import os
import socket
from typing import Any

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from PIL import Image

TASKS = [{"id": f"square_{n}", "goal": f"Hit the square of row {n}.", "max_steps": 4} for n in range(3)]


class Hit(Action):
    """A hit at a place, from 0 to 1 each way; or words, as BrowserGym's servers take them."""

    across: float = -1.0
    down: float = -1.0
    action_str: str = ""


class Look(Observation):
    """What is seen. Some servers send pictures as lists of numbers."""

    frame: str | list[Any]
    goal: str = ""
    url: str = "toy://board"


class Board(Environment[Hit, Look, State]):
    """Three rows: the one that the task names is bright, and is to be hit twice."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._row, self._hits, self._state = 0, 0, State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, task: str = "square_0", **more: Any
    ) -> Look:
        self._row, self._hits = int(task.rpartition("_")[2]), 0
        self._state = State(episode_id=episode_id or f"{task}/{seed}", step_count=0)
        self._lists = bool(more.get("lists"))
        return self._look(None, False, {})

    def step(self, action: Hit, timeout_s: float | None = None, **more: Any) -> Look:
        self._state.step_count += 1
        if action.across > 1:
            raise ValueError("the arrow left the hall")
        right = int(action.down * 3) == self._row
        self._hits += right
        late = self._state.step_count >= 4 and self._hits < 2
        return self._look(
            0.5 if right else 0.0, self._hits >= 2 or late, {"truncated": late, "said": action.action_str}
        )

    @property
    def state(self) -> State:
        return self._state

    def list_splits(self) -> list[Any]:
        return ["train"]

    def list_tasks(self, split: str) -> list[Any]:
        return TASKS if os.environ.get("WITH_TASKS") else self._none()

    def _none(self) -> list[Any]:
        raise NotImplementedError  # OpenEnv's own sign of a server without lists

    def _look(self, reward: float | None, done: bool, metadata: dict[str, Any]) -> Look:
        picture = Image.new("RGB", (60, 90), (10, 10, 10))
        picture.paste((240, 240, 240), (0, self._row * 30, 60, self._row * 30 + 30))
        out = io.BytesIO()
        picture.save(out, "PNG")
        lists = [[list(picture.getpixel((x, y))) for x in range(60)] for y in range(90)]
        frame: Any = lists if self._lists else base64.b64encode(out.getvalue()).decode()
        return Look(frame=frame, goal=f"Hit row {self._row}.", reward=reward, done=done, metadata=metadata)


if __name__ == "__main__":
    app = create_fastapi_app(Board, Hit, Look, max_concurrent_envs=2, env_name="board")
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    print(sock.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off")).run(sockets=[sock])
