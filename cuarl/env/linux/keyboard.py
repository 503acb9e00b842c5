"""Typing on an X display by XTEST: any Unicode text, and chords.

Characters that the keyboard layout lacks are put on keys that it leaves free, for as long as they are needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from cuarl.keys import named, parts

CONTROL = {"\n": 0xFF0D, "\t": 0xFF09}
"""Keysyms of the control characters that can be typed: Return and Tab."""
UNICODE = 0x01000000
"""Keysyms of characters outside of Latin-1 are this plus the code point (X11 protocol, appendix A)."""
LOCK_MASK = 2
AT_A_TIME = 100
"""Characters that are typed before the application is asked whether it has read them."""
CATCH_UP_S = 0.15
"""Before a borrowed key gets another character, applications that can't be asked have this long to read what was typed
with it."""


CHORD_S = 0.03
"""Modifiers are held this long: window managers that take the keyboard for a chord need to see them still down."""
SUBMIT_S = 0.1
"""Between a text and the Enter that submits it: dialogs look at what was typed before they take it."""


class Untypable(ValueError):
    """A text or a key that this keyboard has no way to produce. Nothing was typed."""


class Keyboard:
    """The keyboard of a display (``Xlib.display.Display``)."""

    def __init__(self, display: Any) -> None:
        from cuarl.env.linux.attention import Attention  # needs python-xlib, which is an extra

        self._display = display
        first = display.display.info.min_keycode
        rows = display.get_keyboard_mapping(first, display.display.info.max_keycode - first + 1)
        self._keys: dict[int, tuple[int, bool]] = {}
        for code, symbols in enumerate(rows, start=first):
            for shift, symbol in ((False, symbols[0]), (True, symbols[1] if len(symbols) > 1 else 0)):
                if symbol and (symbol not in self._keys or (self._keys[symbol][1] and not shift)):
                    self._keys[symbol] = code, shift
        self._free = [code for code, symbols in enumerate(rows, start=first) if not any(symbols)]
        self._borrowed: list[int] = []
        """Symbols on free keys, the oldest first."""
        self._attention = Attention(display)

    def type(self, text: str) -> None:
        """Type ``text``; a line break is the Return key. Raises Untypable before anything is typed."""
        symbols = [symbol_of(character) for character in text]
        self._release_caps_lock()
        for number, symbol in enumerate(symbols, start=1):
            self._tap(*self._key(symbol, keep=symbols))
            if number % AT_A_TIME == 0:
                self._attention.caught_up()
        self._attention.caught_up()

    def catch_up(self) -> None:
        """Wait until the active window has read what it was sent, as far as it can be asked."""
        self._attention.caught_up()

    def press(self, keys: Iterable[str], count: int = 1) -> None:
        """Press keys together, ``count`` times; ``ctrl+s`` in one word is understood too. Raises Untypable."""
        found = parts(list(keys))
        held = [part for part in found if _is_modifier(part)]
        plain = [part for part in found if not _is_modifier(part)]
        symbols = [_symbol_named(part.lower() if held and len(part) == 1 else part) for part in plain]
        for number in range(1, count + 1):
            with self.holding(held):
                for symbol in symbols:
                    self._tap(*self._key(symbol, keep=symbols))
                if held:
                    self._display.sync()
                    time.sleep(CHORD_S)
            if number % AT_A_TIME == 0:
                self._attention.caught_up()
        self._display.sync()

    @contextmanager
    def holding(self, keys: Iterable[str]) -> Iterator[None]:
        """Hold keys meanwhile. Raises Untypable before any is pressed."""
        symbols = [_symbol_named(part) for part in parts(list(keys))]
        codes = [self._key(symbol, keep=symbols)[0] for symbol in symbols]
        for code in codes:
            self._event(code, down=True)
        try:
            yield
        finally:
            for code in reversed(codes):
                self._event(code, down=False)
            self._display.sync()

    def set(self, key: str, *, down: bool) -> None:
        """Press a key and keep it down, or let it go. Raises Untypable."""
        symbol = _symbol_named(key)
        self._event(self._key(symbol, keep=[symbol])[0], down=down)
        self._display.sync()

    def _key(self, symbol: int, keep: list[int]) -> tuple[int, bool]:
        if symbol not in self._keys:
            self._keys[symbol] = self._borrow(symbol, keep), False
        return self._keys[symbol]

    def _borrow(self, symbol: int, keep: list[int]) -> int:
        if self._free:
            code = self._free.pop(0)
        elif self._borrowed:
            # whoever was sent the old character looks it up when it reads the event
            if not self._attention.caught_up():
                time.sleep(CATCH_UP_S)
            code = self._keys.pop(self._borrowed.pop(0))[0]
        else:
            raise Untypable("the keyboard has no free key")
        self._borrowed.append(symbol)
        self._display.change_keyboard_mapping(code, [[symbol, symbol]])
        self._display.sync()
        return code

    def _tap(self, code: int, shift: bool) -> None:
        shift_code = self._keys[_symbol_named("Shift_L")][0]
        if shift:
            self._event(shift_code, down=True)
        self._event(code, down=True)
        self._event(code, down=False)
        if shift:
            self._event(shift_code, down=False)

    def _event(self, code: int, *, down: bool) -> None:
        from Xlib import X
        from Xlib.ext import xtest

        xtest.fake_input(self._display, X.KeyPress if down else X.KeyRelease, code)

    def _release_caps_lock(self) -> None:
        """A locked keyboard would type everything in the other case."""
        if self._display.screen().root.query_pointer().mask & LOCK_MASK:
            self._tap(self._keys[_symbol_named("Caps_Lock")][0], shift=False)


def symbol_of(character: str) -> int:
    """The keysym of a character. Raises Untypable for control characters and lone surrogates."""
    code = ord(character)
    if character in CONTROL:
        return CONTROL[character]
    if code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000:
        raise Untypable(f"unsupported_text: the character U+{code:04X} can't be typed")
    return code if code < 0x100 else UNICODE + code


def check_text(text: str) -> None:
    """Raise Untypable if ``text`` has a character that can't be typed."""
    for character in text:
        symbol_of(character)


def check_keys(keys: Iterable[str]) -> None:
    """Raise Untypable if one of ``keys`` does not exist."""
    for part in parts(list(keys)):
        _symbol_named(part)


def check_key(key: str) -> None:
    """Raise Untypable if there is no such key, or if they are several."""
    if len(parts([key])) > 1:
        raise Untypable(f"one key at a time, not {key!r}")
    _symbol_named(key)


def _is_modifier(name: str) -> bool:
    key = named(name)
    return key is not None and bool(key.modifier)


def _symbol_named(name: str) -> int:
    """The keysym of a key: of the table of keys, or any other that X knows by that name. Raises Untypable."""
    if len(name) == 1:
        return symbol_of(name)
    from Xlib import XK

    key = named(name)
    symbol: int = XK.string_to_keysym(key.x if key else name) or XK.string_to_keysym(name.capitalize())
    if not symbol:
        raise Untypable(f"there is no key {name!r}")
    return symbol
