"""What a widget does when it is used, as data: small frozen values that one reducer interprets.

Because effects are values and not closures, a planner can read from a page which state paths it writes and which pages
it opens, without running anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Effect:
    """Base of all effects."""


@dataclass(frozen=True, slots=True)
class Put(Effect):
    """Write ``value`` at a state path (``ui.form.*`` for what a page remembers only while it is used)."""

    path: str
    value: Any


@dataclass(frozen=True, slots=True)
class Copy(Effect):
    """Write the value at path ``source`` to path ``target`` (the Save button of a form)."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Toggle(Effect):
    """Flip the boolean at a state path."""

    path: str


@dataclass(frozen=True, slots=True)
class Append(Effect):
    """Add an item to the end of the list at a state path, unless it is there already."""

    path: str
    item: Any


@dataclass(frozen=True, slots=True)
class Remove(Effect):
    """Take every item equal to ``item`` out of the list at a state path."""

    path: str
    item: Any


@dataclass(frozen=True, slots=True)
class Open(Effect):
    """Push a page, e.g. ``settings/wifi`` or ``settings/app:chrome``, onto the stack of the app it belongs to."""

    page: str


@dataclass(frozen=True, slots=True)
class Replace(Effect):
    """Show a page in place of the present one (tabs)."""

    page: str


@dataclass(frozen=True, slots=True)
class Back(Effect):
    """What the back button does."""


@dataclass(frozen=True, slots=True)
class Home(Effect):
    """What the home button does."""


@dataclass(frozen=True, slots=True)
class Launch(Effect):
    """Bring an app to the front, as its icon does."""

    app: str


@dataclass(frozen=True, slots=True)
class Overlay(Effect):
    """Open a layer over the screen: ``drawer``, ``recents``, ``shade``, ``quick``, ``power``; empty closes it."""

    name: str


@dataclass(frozen=True, slots=True)
class Option:
    """One line of a dialog or menu, or one of its buttons. Using it closes the dialog first."""

    label: str
    effect: Effect | None = None
    checked: bool | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """A text field of a dialog, bound to a path."""

    label: str
    path: str


@dataclass(frozen=True, slots=True)
class Dialog:
    """A box over the screen; nothing below it can be used while it is open."""

    title: str = ""
    text: str = ""
    options: tuple[Option, ...] = ()
    inputs: tuple[Input, ...] = ()
    buttons: tuple[Option, ...] = ()
    kind: str = "dialog"
    """``dialog``, ``menu`` (a list at the top right, closed by a tap outside) or ``popup`` (in the way; shown
    unasked)."""


@dataclass(frozen=True, slots=True)
class Show(Effect):
    """Open a dialog or menu."""

    dialog: Dialog


@dataclass(frozen=True, slots=True)
class Dismiss(Effect):
    """Close the open dialog."""


@dataclass(frozen=True, slots=True)
class Focus(Effect):
    """Put the cursor into the text field bound to ``path``; the keyboard opens. Empty closes it."""

    path: str


@dataclass(frozen=True, slots=True)
class Submit(Effect):
    """What the Enter key does: the focused field's own effect, with the keyboard closed."""


@dataclass(frozen=True, slots=True)
class Toast(Effect):
    """Show a short message at the bottom until the next action."""

    text: str


@dataclass(frozen=True, slots=True)
class Do(Effect):
    """Run the pure function registered as ``name``: for app logic that the other effects can't say.

    ``writes`` and ``opens`` declare, for the planner, what it may change.
    """

    name: str
    args: tuple[Any, ...] = ()
    writes: tuple[str, ...] = ()
    opens: str = ""


@dataclass(frozen=True, slots=True)
class Seq(Effect):
    """Several effects, one after the other."""

    effects: tuple[Effect, ...]


def flat(effect: Effect | None) -> tuple[Effect, ...]:
    """The primitive effects of ``effect``, in order; options of dialogs that it opens are not part of them."""
    if effect is None:
        return ()
    if isinstance(effect, Seq):
        return tuple(e for part in effect.effects for e in flat(part))
    return (effect,)


def writes(effect: Effect | None) -> tuple[tuple[str, Any], ...]:
    """State paths that ``effect`` writes at once, each with the value, or ... where it depends on the old one."""
    found: list[tuple[str, Any]] = []
    for e in flat(effect):
        match e:
            case Put(path, value):
                found.append((path, value))
            case Toggle(path) | Append(path, _) | Remove(path, _):
                found.append((path, ...))
            case Copy(_, target):
                found.append((target, ...))
            case Do(writes=paths):
                found.extend((p, ...) for p in paths)
            case _:
                pass
    return tuple(found)


def opens(effect: Effect | None) -> str | None:
    """The page that ``effect`` leads to; ``app/KEY`` for launching, ``layer/NAME`` for an overlay."""
    for e in flat(effect):
        match e:
            case Open(page) | Replace(page):
                return page
            case Launch(app):
                return f"app/{app}"
            case Overlay(name) if name:
                return f"layer/{name}"
            case Do(opens=page) if page:
                return page
            case _:
                pass
    return None


def dialog_of(effect: Effect | None) -> Dialog | None:
    """The dialog that ``effect`` opens."""
    return next((e.dialog for e in flat(effect) if isinstance(e, Show)), None)
