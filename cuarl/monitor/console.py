"""Metrics and events as lines of text while a command runs, and for those who look on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

from cuarl.monitor.lines import evaluation_lines, event_line, metrics_line, sparkline, step_line

QUIET_EVENTS = frozenset({"start", "done", "episode", "progress", "checkpoint", "listening"})
"""Events that the command itself already tells the person, or that a person need not see at every turn."""
SILENT_STEPS = 3
"""After so many steps in which no group had rewards that differ, a person is told what to do about it."""
NO_SIGNAL = (
    f"no signal for {SILENT_STEPS} steps: in every group all rewards were equal, so nothing was learnt. What may "
    "help: tasks that succeed sometimes (--difficulty easy), more attempts (--group-size 16), more variety "
    "(--temperature 1.2), or collecting again in place of such groups (--dynamic-sampling-rounds 2)"
)
_RECENT = 5
"""The time that is left is reckoned from so many steps."""
_TREND = 8
"""Steps of a sparkline."""


class ConsoleSink:
    """Hands a line per step and per evaluation, and one per noteworthy event, to ``write``. A ``types.Sink``.

    ``detail`` adds all metrics and events; ``trend`` draws the success of the last steps. How many steps there are, and
    which reward is learnt from, it hears from the event ``start``.
    """

    def __init__(self, write: Callable[[str], None], *, detail: bool = False, trend: bool = False) -> None:
        self._write, self._detail, self._trend = write, detail, trend
        self._silent, self._explained = 0, False
        self._begun: Mapping[str, Any] = {}
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._evaluated: deque[float] = deque(maxlen=_RECENT)
        self._successes: deque[float] = deque(maxlen=_TREND)

    def metrics(self, step: int, values: Mapping[str, Any]) -> None:
        """Write what a person should know of one step."""
        self._note_times(values)
        if values.get("episode/success_rate") is not None:
            self._successes.append(values["episode/success_rate"])
        line = step_line(
            step,
            values,
            total=self._begun.get("steps"),
            left_s=self._left(step),
            trend=sparkline(self._successes) if self._trend and len(self._successes) > 1 else "",
        )
        for text in (line, *evaluation_lines(step, values), self._all(step, values)):
            if text:
                self._write(text)
        self._explain(values)
        self._warn(values)

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Write that something noteworthy happened."""
        if kind == "start":
            self._begun = data
        if kind not in QUIET_EVENTS or (self._detail and kind == "checkpoint"):
            self._write(event_line(kind, data))

    def close(self) -> None:
        """Nothing is held."""

    def _all(self, step: int, values: Mapping[str, Any]) -> str:
        return metrics_line(step, values, ("*",)) if self._detail else ""

    def _note_times(self, values: Mapping[str, Any]) -> None:
        took, evaluating = values.get("time/step_s"), values.get("time/eval_s") or 0.0
        if took is not None:
            self._recent.append(took - evaluating)
        if evaluating:
            self._evaluated.append(evaluating)

    def _left(self, step: int) -> float | None:
        """Seconds until the last step, with its evaluations."""
        total, every = int(self._begun.get("steps") or 0), int(self._begun.get("eval_every") or 0)
        if not total or not self._recent or step >= total:
            return None
        left = fmean(self._recent) * (total - step)
        if not self._evaluated:
            return left
        between = (total - 1) // every - step // every if every else 0
        return left + fmean(self._evaluated) * (between + 1)

    def _explain(self, values: Mapping[str, Any]) -> None:
        """Say once why reward and success are not the same number."""
        success, reward = values.get("episode/success_rate"), values.get("reward/mean")
        if self._explained or success is None or reward is None or f"{success:.2f}" == f"{reward:.2f}":
            return
        self._explained = True
        named = f', here "{self._begun["reward"]}"' if "reward" in self._begun else ""
        self._write(
            f"reward is not success: success is how often the task was done, reward what is learnt from{named} "
            "(docs/guides/rewards.md)"
        )

    def _warn(self, values: Mapping[str, Any]) -> None:
        if "group/frac_mixed" not in values or self._begun.get("imitates"):  # equal successes are imitated all the same
            return
        helped = values.get("hints/success_rate") or values.get("imitation/groups")
        self._silent = 0 if values["group/frac_mixed"] > 0 or helped else self._silent + 1
        if self._silent == SILENT_STEPS:
            self._write(NO_SIGNAL)
