"""Whether an application has read what was sent to it.

Windows are asked, as window managers do (EWMH, ``_NET_WM_PING``).

Key presses wait in an application's queue. What a key stands for is looked up when the press is read, and a picture
taken before that shows nothing of it.
"""

from __future__ import annotations

import select
import time
from typing import Any

from Xlib import X
from Xlib.error import BadWindow, CatchError
from Xlib.protocol.event import ClientMessage

ANSWER_S = 5.0
"""An application that takes longer to answer hangs, or is busy with something else."""


class Attention:
    """Asks the windows of one display (``Xlib.display.Display``)."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._root = display.screen().root
        self._protocols = display.intern_atom("WM_PROTOCOLS")
        self._ping = display.intern_atom("_NET_WM_PING")
        self._active = display.intern_atom("_NET_ACTIVE_WINDOW")
        self._asked = 0
        # answers are sent to the root window
        self._root.change_attributes(event_mask=X.SubstructureNotifyMask)

    def caught_up(self) -> bool:
        """Wait until the active window has read everything; False if it can't be asked, or does not answer in time."""
        self._display.sync()
        try:
            window = self._askable()
            if window is None:
                return False
            self._asked += 1
            data = (32, [self._ping, self._asked, window.id, 0, 0])
            message = ClientMessage(window=window, client_type=self._protocols, data=data)
            window.send_event(message, event_mask=0, onerror=CatchError(BadWindow))
            self._display.flush()
        except BadWindow:  # closed just now
            return False
        return self._answered(time.monotonic() + ANSWER_S)

    def _askable(self) -> Any:
        """The active window, if it is one that answers."""
        found = self._root.get_full_property(self._active, X.AnyPropertyType)
        number = found.value[0] if found is not None and len(found.value) else 0
        if not number:
            return None
        window = self._display.create_resource_object("window", number)
        return window if self._ping in window.get_wm_protocols() else None

    def _answered(self, until: float) -> bool:
        while True:
            while self._display.pending_events():
                event = self._display.next_event()
                if event.type == X.ClientMessage and event.client_type == self._protocols:
                    words = list(event.data[1])
                    if words[:2] == [self._ping, self._asked]:
                        return True
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._display.fileno()], [], [], left)[0]:
                return False
