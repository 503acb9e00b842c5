"""Editing text: a frozen text with a caret and a selection, and the usual keys on it. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextBox:
    """A text being edited. ``caret`` and ``anchor`` are positions in it; what lies between them is selected."""

    text: str = ""
    caret: int = 0
    anchor: int = 0

    @classmethod
    def of(cls, text: str, *, selected: bool = False) -> TextBox:
        """The caret at the end; ``selected`` selects all."""
        return cls(text, len(text), 0 if selected else len(text))

    @property
    def selection(self) -> tuple[int, int]:
        """Start and end of what is selected."""
        return min(self.caret, self.anchor), max(self.caret, self.anchor)

    @property
    def selected(self) -> str:
        """The selected text."""
        start, end = self.selection
        return self.text[start:end]

    def insert(self, text: str) -> TextBox:
        """Type ``text`` over the selection."""
        start, end = self.selection
        at = start + len(text)
        return TextBox(self.text[:start] + text + self.text[end:], at, at)

    def erase(self, *, forward: bool = False) -> TextBox:
        """Backspace, or Delete."""
        if self.selected:
            return self.insert("")
        start, end = (self.caret, self.caret + 1) if forward else (max(0, self.caret - 1), self.caret)
        return TextBox(self.text[:start] + self.text[end:], start, start)

    def select_all(self) -> TextBox:
        """Everything selected."""
        return TextBox(self.text, len(self.text), 0)

    def at(self, position: int, *, extend: bool = False) -> TextBox:
        """The caret at a position; ``extend`` keeps the other end of the selection where it is."""
        caret = min(max(0, position), len(self.text))
        return TextBox(self.text, caret, self.anchor if extend else caret)

    def word_at(self, position: int) -> TextBox:
        """The word around a position selected; one outside the text means its nearer end."""
        start = end = min(max(0, position), len(self.text))
        while start > 0 and self.text[start - 1].isalnum():
            start -= 1
        while end < len(self.text) and self.text[end].isalnum():
            end += 1
        return TextBox(self.text, end, start)

    def line_at(self, position: int) -> TextBox:
        """The line around a position selected, its end left out; one outside the text means its nearer end."""
        position = min(max(0, position), len(self.text))
        start = self.text.rfind("\n", 0, position) + 1
        end = self.text.find("\n", position)
        return TextBox(self.text, len(self.text) if end < 0 else end, start)

    def moved(self, key: str, *, extend: bool = False, word: bool = False) -> TextBox:
        """The caret moved by ``left``, ``right``, ``up``, ``down``, ``home`` or ``end``; ``word`` goes further."""
        return self.at(self._target(key, word), extend=extend)

    def _target(self, key: str, far: bool) -> int:
        line_start = self.text.rfind("\n", 0, self.caret) + 1
        line_end = self.text.find("\n", self.caret)
        line_end = len(self.text) if line_end < 0 else line_end
        match key:
            case "left":
                return self._word_start() if far else self.caret - 1
            case "right":
                return self._word_end() if far else self.caret + 1
            case "home":
                return 0 if far else line_start
            case "end":
                return len(self.text) if far else line_end
            case "up" if line_start:
                above = self.text.rfind("\n", 0, line_start - 1) + 1
                return min(above + self.caret - line_start, line_start - 1)
            case "down" if line_end < len(self.text):
                below = self.text.find("\n", line_end + 1)
                return min(line_end + 1 + self.caret - line_start, len(self.text) if below < 0 else below)
        return self.caret

    def _word_start(self) -> int:
        at = self.caret
        while at > 0 and not self.text[at - 1].isalnum():
            at -= 1
        while at > 0 and self.text[at - 1].isalnum():
            at -= 1
        return at

    def _word_end(self) -> int:
        at = self.caret
        while at < len(self.text) and not self.text[at].isalnum():
            at += 1
        while at < len(self.text) and self.text[at].isalnum():
            at += 1
        return at
