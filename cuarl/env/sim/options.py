"""What can be chosen about the simulated devices (``--env sim``).

This module is light: help and configurations import it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeInt

from cuarl.config.fields import EnvOptions, Share


class Options(EnvOptions):
    """The options of ``env: sim``."""

    bare = True

    type: Literal["sim"] = "sim"
    profile: Literal["small", "phone", "tall"] = "small"
    """Screen of the simulated phone: small is 192x384, phone 360x640, tall 1080x2400 pixels."""
    clutter: Share = 0.1
    """Share of simulated episodes with something in the way, such as a pop-up."""
    astray: NonNegativeInt = 0
    """Simulated phones begin on a wrong page, up to this many taps away: to learn, and to demonstrate, finding back."""
    oracle_opens: bool = False
    """The oracle of simulated phones opens apps by their names, an action that real phones have too, in place of
    looking for icons."""
