"""A plan made of what a person did on a Linux desktop: places are told within an application's window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuarl.env.base import Capabilities
from cuarl.env.held import beyond
from cuarl.env.linux.env import NOTCH_PX, LinuxEnv
from cuarl.env.linux.plan import TITLE_BUTTONS
from cuarl.env.linux.windows import Window
from cuarl.tasks.task import Task, TaskInstance
from cuarl.types import Action, Click, Drag, Key, Observation, OpenApp, Scroll, StepResult, TypeText, Wait
from cuarl.workflow.plan_lines import Line

SAYABLE = frozenset({"click", "drag", "scroll", "type", "key", "open_app", "wait", "answer", "finish"})
"""Kinds of actions for which plans of desktops have words."""
_NEAR_PX = 8
"""How far from the middle of a title bar's button a click on it may be."""
COMPLETED_S = 0.5
"""How long a plan waits between typing and Enter."""


class Unsayable(Exception):
    """Why no line of a plan does the same."""


class RecordedDesktop:
    """A desktop that is worked by a person; ``lines`` is the plan of what they did so far."""

    def __init__(self, env: LinuxEnv) -> None:
        self._env, self.lines = env, list[Line]()
        self.before: Mapping[str, Any] = {}
        self.after: Mapping[str, Any] = {}

    @property
    def capabilities(self) -> Capabilities:
        """The desktop's, as far as plans have words for it."""
        return Capabilities(self._env.capabilities.actions & SAYABLE, state=True, kind="desktop")

    @property
    def volatile(self) -> tuple[str, ...]:
        """The desktop's."""
        return self._env.volatile

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Start the desktop."""
        shown = await self._env.reset(task, seed)
        self.before = self.after = await self._env.state()
        return shown

    async def step(self, action: Action) -> StepResult:
        """Carry out one action, and note how a plan says it."""
        windows = self._env.windows()
        try:
            line = line_of(action, windows)
        except Unsayable as why:
            info = {"rejected": f"a plan can't say it: {why}", "changed": False}
            return StepResult(Observation(await self._env.screenshot()), info=info)
        result = await self._env.step(action)
        if "rejected" not in result.info:
            # a field that completes what is typed takes Enter for itself until it is done; plans outrun a hand
            if line.get("key") == "Return" and self.lines and "type" in self.lines[-1]:
                self.lines.append({"wait": COMPLETED_S})
            self.lines.append(line)
            known = {window.app for window in windows}
            # an application takes its time, and what comes next is for its window
            self.lines += [{"appear": w.app} for w in self._env.windows() if w.app not in known]
            self.after = await self._env.state()
        return result

    def end(self, answer: str | None) -> None:
        """Note what was answered."""
        if answer:
            self.lines.append({"answer": answer})

    def record(self, worked: Task, answer: str | None) -> tuple[dict[str, Any], list[Line]]:
        """Preset and checks of the task that was done."""
        return dict(worked.preset), suggested_checks(self.before, self.after, answer)

    async def state(self) -> Mapping[str, Any]:
        """The desktop's."""
        return await self._env.state()

    async def close(self) -> None:
        """End the desktop."""
        await self._env.close()


def line_of(action: Action, windows: Sequence[Window]) -> Line:
    """What ``action`` is in a plan; ``windows`` from the lowest to the topmost. Raises Unsayable."""
    if reason := beyond(action, "a plan"):
        raise Unsayable(reason)
    match action:
        case TypeText(text=text, submit=submit):
            return {"type": text, **({"submit": True} if submit else {})}
        case Key(keys=keys):
            return {"key": "+".join(keys)}
        case OpenApp(name=name):
            return {"open": name}
        case Wait(seconds=seconds):
            return {"wait": seconds}
        case Click():
            return _click(action, windows)
        case Scroll(x=int(x), y=int(y), direction="up" | "down" as direction):
            notches = action.amount if action.unit == "notch" else max(1, round(action.amount / NOTCH_PX))
            return {"scroll": _at(windows, x, y).app, "notches": notches if direction == "down" else -notches}
        case Drag(path=((x, y), *_, (x2, y2))):
            window = _at(windows, x, y)
            if y < window.y:
                return {"move": window.app, "by": [x2 - x, y2 - y]}
    raise Unsayable(f"there is no word for this {action.kind.replace('_', ' ')}")


def suggested_checks(before: Mapping[str, Any], after: Mapping[str, Any], answer: str | None) -> list[Line]:
    """Checks of the files that are new, changed or gone, and of what was answered. Suggestions."""
    old, new = ({f["path"]: f for f in state.get("files", ())} for state in (before, after))
    found: list[Line] = [
        {"path": "files", "op": "has", "value": _file(file)} for path, file in new.items() if old.get(path) != file
    ]
    found += [{"path": "files", "op": "lacks", "value": {"path": path}} for path in old if path not in new]
    return found + ([{"path": "answer", "op": "icontains", "value": answer}] if answer else [])


def _file(file: Mapping[str, Any]) -> Line:
    kind = {"folder": True} if file.get("folder") else {"text": file["text"]} if file.get("text") is not None else {}
    return {"path": file["path"], **kind}


def _click(action: Click, windows: Sequence[Window]) -> Line:
    window = _at(windows, action.x, action.y)
    if action.y < window.y:
        from_right = window.x + window.width - action.x
        button = next((name for name, at in TITLE_BUTTONS.items() if abs(from_right - at) <= _NEAR_PX), None)
        return {"title": window.app, "button": button} if button else {"focus": window.app}
    line: Line = {"click": window.app, "at": [action.x - window.x, action.y - window.y]}
    line |= {"button": action.button} if action.button != "left" else {}
    return line | ({"count": action.count} if action.count != 1 else {})


def _at(windows: Sequence[Window], x: int, y: int) -> Window:
    """The topmost window there, with its title bar. Raises Unsayable."""
    for w in reversed(windows):
        if not w.minimised and w.x <= x < w.x + w.width and w.y - w.top <= y < w.y + w.height:
            if any(other.app == w.app and not other.minimised for other in windows[windows.index(w) + 1 :]):
                raise Unsayable(f"{w.app} has a window above this one, and a plan means the topmost")
            return w
    raise Unsayable("there is no window")
