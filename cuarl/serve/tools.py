"""Tools in a prompt and tool calls in an answer, in the form that Qwen's chat templates have (Hermes style). Pure.

The tools are described at the end of the system prompt; a call is JSON between ``<tool_call>`` tags; results come back
in a user message, each between ``<tool_response>`` tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from cuarl import strict_json
from cuarl.agent.formats.thinking import said
from cuarl.serve.requests import ToolCall

CLOSE = "</tool_call>"
_CALL = re.compile(rf"<tool_call>\s*(.*?)\s*{CLOSE}", re.DOTALL)


class Answer(NamedTuple):
    """An answer as clients see it: text without the stop text that ended it, and calls taken out of it."""

    text: str
    calls: tuple[tuple[str, str], ...]
    """Name and arguments (JSON text) of each call."""
    stop: str = ""
    """The stop text that ended it."""


def tool_prompt(tools: Sequence[Mapping[str, Any]]) -> str:
    """What stands at the end of the system prompt."""
    listed = "\n".join(json.dumps({"type": "function", "function": t}, ensure_ascii=False) for t in tools)
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        f"You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{listed}\n</tools>\n\n"
        "For each function call, return a json object with function name and arguments within <tool_call></tool_call> "
        'XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )


def call_text(call: ToolCall) -> str:
    """A call that the policy did not sample, in the words that it would have used."""
    return f'<tool_call>\n{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}\n</tool_call>'


def read_answer(text: str, offered: Collection[str], stops: Sequence[str] = ()) -> Answer:
    """Take the calls of offered tools out of an answer.

    What is no such call, or was thought only, stays text as sampled.

    The text ends before the first of ``stops``, as the protocol has it; the tokens that were sampled may reach further.
    A call that its own closing tag has stopped is whole.
    """
    stop = min((one for one in stops if one and one in text), key=text.index, default="")
    if stop:
        text = text[: text.index(stop)]
        if stop != CLOSE:
            return read_answer(text, offered)._replace(stop=stop)
        found = read_answer(text + stop, offered)
        return found._replace(stop=stop) if found.calls else Answer(text, (), stop)
    calls: list[tuple[str, str]] = []

    def take(found: re.Match[str]) -> str:
        call = _call(found[1], offered)
        if call is None:
            return found[0]
        calls.append(call)
        return ""

    spoken, behind = said(text)
    thought = text[: len(text) - len(spoken) - len(behind)]
    rest = thought + (_CALL.sub(take, spoken) if offered else spoken) + behind
    return Answer(rest.strip() if calls else text, tuple(calls))


def _call(text: str, offered: Collection[str]) -> tuple[str, str] | None:
    try:
        call = strict_json.loads(text)
    except strict_json.NotJson:
        return None
    name = call.get("name") if isinstance(call, dict) else None
    if not isinstance(name, str) or name not in offered:
        return None
    return name, json.dumps(call.get("arguments") or {}, ensure_ascii=False)
