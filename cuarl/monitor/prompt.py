"""A prompt as people read it."""

from __future__ import annotations


def shortened(text: str) -> str:
    """The text of a prompt: a picture is one placeholder, not as many as it has tokens."""
    out: list[str] = []
    for part in text.split("<|image_pad|>"):
        if part or not out or out[-1] != " [picture] ":
            out += [part, " [picture] "]
    return "".join(out[:-1])
