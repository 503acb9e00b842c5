"""Which calls a client is handed."""

from cuarl.serve.tools import read_answer

CALL = '<tool_call>\n{"name": "tap", "arguments": {"x": 1}}\n</tool_call>'
TAP = ("tap", '{"x": 1}')


def test_a_call_is_taken_out_of_what_is_said():
    assert read_answer(f"So:\n{CALL}", {"tap"}) == ("So:", (TAP,), "")


def test_a_call_that_is_thought_stays_text():
    for thought in (f"<think>{CALL}", f"<think>{CALL}</think>", f"{CALL}</think>", f"<think>{CALL}</think> Done."):
        assert read_answer(thought, {"tap"}) == (thought, (), "")
    told = read_answer(f"<think>{CALL}</think>\n{CALL}", {"tap"})
    assert told == (f"<think>{CALL}</think>", (TAP,), "")
