"""What of an answer is said to the device: not what was thought before it, and not what was shown as an example.

A model that thinks may quote calls that it decides against. Where its thinking ends is told by tags alone, whatever
stands between them, so that nothing inside can pass for an action; a tag that is meant as text is written with an
escape.
"""

from __future__ import annotations

import re

from cuarl.agent.formats.call import THINKING, CallError, short

_TAG = re.compile(rf"<(/?)({THINKING})\s*>|(◁)(/?)think▷|(\[)(/?)THINK\]", re.I)


def spoken_part(text: str, *, strict: bool, warnings: list[str]) -> str:
    """``text`` without its thinking (see ``said``).

    Raises ``CallError`` for an answer that ends in thinking, if ``strict``.
    """
    spoken, unspoken = said(text)
    if not unspoken:
        return spoken
    if strict:
        raise CallError("no_call", f"the answer ends in thinking: {short(unspoken)}")
    warnings.append(f"thinking behind the answer: {short(unspoken)}")
    return spoken


def said(text: str) -> tuple[str, str]:
    """``text`` without its thinking.

    What is said behind all of it, and what follows that, to be refused or remarked on.

    Thinking is all that stands before a closing tag, whether it was opened in the answer or in the prompt, and what
    stands behind an opening tag that is never closed. Tags of other names within it are part of it.
    """
    start, end, opened = 0, len(text), list[str]()
    for tag in _TAG.finditer(text):
        name = (tag[2] or tag[3] or tag[5]).lower()
        closes = bool(tag[1] or tag[4] or tag[6])
        if not closes:
            end = end if opened else tag.start()
            opened += [name] if name not in opened else []
        elif name in opened:
            del opened[opened.index(name) :]
        elif opened:
            continue
        if closes and not opened:
            start, end = tag.end(), len(text)
    return text[start:end], text[end:]
