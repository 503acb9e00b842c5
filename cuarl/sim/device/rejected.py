"""What simulated devices raise for actions that are impossible on them."""

from __future__ import annotations


class Rejected(Exception):
    """The action is impossible here; the message says why. The world stays as it is."""
