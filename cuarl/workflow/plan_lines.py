"""What a person did, as the lines of a plan that does the same: how they are put together on pages and phones alike."""

from __future__ import annotations

from typing import Any

from cuarl.env.plans.seeing import Named
from cuarl.types import Action, Button, Click, Key, LongPress, OpenApp, Scroll, TypeText, Wait

Line = dict[str, Any]


class PlanLines:
    """The plan of what was done so far, in ``lines``."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._editable = False
        """Whether the last thing that was clicked is a field."""
        self._waited = False
        """The screen took its time, or is another one: what comes next has to be waited for."""

    def note(self, action: Action, named: Named | None, *, moved: bool) -> None:
        """Add what ``action`` on the thing ``named`` is in a plan; ``moved``: another screen came of it."""
        match action:
            case Click() | LongPress() if named is not None:
                self._point(action, dict(named.target), editable=named.editable)
            case TypeText():
                self._type(action)
            case Key(keys=keys, count=count):
                self.lines += [{"key": "+".join(keys)} for _ in range(count)]
            case Button(name=name):
                self.lines.append({"press": name})
            case OpenApp(name=name):
                self.lines.append({"open": name})
            case Scroll(direction=direction, amount=amount):
                self.lines.append({"scroll": direction, "amount": amount})
            case Wait():
                self._waited = True
        self._waited = self._waited or moved

    def end(self, answer: str | None) -> None:
        """Note what was answered."""
        if answer:
            self.lines.append({"answer": answer})

    def _point(self, action: Click | LongPress, target: Line, *, editable: bool) -> None:
        written: Any = target["text"] if list(target) == ["text"] else target
        if "at" not in target:  # a pixel is always there, so there is nothing to wait or scroll for
            self._come_to(written)
        self._waited = False
        if isinstance(action, LongPress):
            self.lines.append({"long_press": written})
        else:
            line: Line = {"click": written}
            line |= {"button": action.button} if action.button != "left" else {}
            self.lines.append(line | ({"count": action.count} if action.count != 1 else {}))
        self._editable = editable

    def _come_to(self, written: Any) -> None:
        """Have the plan scroll until the thing is there, or wait for it."""
        if self.lines and "scroll" in self.lines[-1] and "until" not in self.lines[-1]:
            direction = self.lines[-1]["scroll"]
            while self.lines and self.lines[-1].get("scroll") == direction and "until" not in self.lines[-1]:
                self.lines.pop()
            self.lines.append({"scroll": direction, "until": written})
        elif self._waited:
            self.lines.append({"wait_for": written})

    def _type(self, action: TypeText) -> None:
        line: Line = {"type": action.text}
        if self.lines and list(self.lines[-1]) == ["click"] and self._editable:
            into = self.lines.pop()["click"]
            line["into"] = into["label"] if isinstance(into, dict) and list(into) == ["label"] else into
        self.lines.append(line | ({"submit": True} if action.submit else {}))
