"""What happened in a browser that no picture shows: told once, with the first picture after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuarl.env.browser.options import Dialogs
from cuarl.env.browser.tabs import Tabs

LISTS = ("dialogs", "downloads", "blocked")


class News:
    """What has been told already of the tabs of one episode."""

    def __init__(self) -> None:
        self._told = dict.fromkeys(LISTS, 0)
        self._tabs = 1

    def since(self, tabs: Tabs) -> dict[str, Any]:
        """By name what is new: lists of texts, and ``tabs``, how many there are, if that is another number."""
        found: dict[str, Any] = {}
        for name in LISTS:
            lines: Sequence[str] = getattr(tabs, name)
            if len(lines) > self._told[name]:
                found[name] = list(lines[self._told[name] :])
            self._told[name] = len(lines)
        if tabs.count != self._tabs:
            found["tabs"] = tabs.count
            found["opened"] = tabs.count > self._tabs
            self._tabs = tabs.count
        return found


_BUTTONS: Mapping[Dialogs, str] = {"accept": "OK", "dismiss": "Cancel", "ask": ""}


def in_words(news: Mapping[str, Any], *, dialogs: Dialogs) -> str:
    """The same for a model; ``dialogs``: how questions are answered."""
    button = _BUTTONS[dialogs]
    said = [_dialog(text, button) for text in news.get("dialogs", ())]
    said += [f"A file was downloaded: {name}." for name in news.get("downloads", ())]
    said += [f"This address can't be reached from here: {url}" for url in news.get("blocked", ())]
    if "tabs" in news:
        what = "A new tab was opened, and is shown" if news["opened"] else "A tab was closed"
        said.append(f"{what}; {news['tabs']} {'is' if news['tabs'] == 1 else 'are'} open.")
    return " ".join(said)


def _dialog(text: str, button: str) -> str:
    kind, _, message = text.partition(": ")
    match kind:
        case "alert":
            return f'The page said in a dialog, which was closed: "{message}"'
        case "confirm" | "prompt" if not button:
            typed = ", or type the answer" if kind == "prompt" else ""
            return f'The page asks in a dialog: "{message}" Press Enter for OK or Escape for Cancel{typed}.'
        case "confirm" | "prompt":
            return f'The page asked in a dialog, which was answered by {button}: "{message}"'
        case "beforeunload":
            return "The page asked whether it may be left, and was left."
        case _:
            return text[:1].upper() + text[1:] + "."
