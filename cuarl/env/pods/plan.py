"""Plans for sessions of other servers, whose protocol tells nothing of a screen but its pixels."""

from __future__ import annotations

from functools import partial

from cuarl.env.plans.devices import Abilities
from cuarl.env.pods.actions import refusal

IN_SESSIONS = Abilities("a session of another server", partial(refusal, size=(1, 1)), ways=("at",), terminal=True)
