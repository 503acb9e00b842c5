import logging

from cuarl.errors import StoreError
from cuarl.monitor.console import ConsoleSink
from cuarl.monitor.sinks import FanOut


class Kept:
    """Keeps what it is given; fails while it is told to."""

    def __init__(self, error=None):
        self.seen, self.error, self.closed = [], error, False

    def metrics(self, step, values):
        self._fail()
        self.seen.append((step, dict(values)))

    def event(self, kind, data):
        self._fail()
        self.seen.append((kind, dict(data)))

    def close(self):
        self.closed = True

    def _fail(self):
        if self.error:
            raise self.error


def test_every_sink_gets_everything_and_is_closed():
    first, second = Kept(), Kept()
    both = FanOut([first, second])
    both.metrics(1, {"a": 2.0})
    both.event("done", {"b": 3})
    both.close()
    assert first.seen == second.seen == [(1, {"a": 2.0}), ("done", {"b": 3})]
    assert first.closed and second.closed


def test_a_failing_sink_warns_once_and_says_at_the_end_what_was_lost(caplog):
    good, bad = Kept(), Kept(OSError(28, "No space left on device"))
    both = FanOut([bad, good])
    with caplog.at_level(logging.WARNING):
        for step in range(3):
            both.metrics(step, {})
        assert len(caplog.records) == 1
        assert "No space left" in caplog.text
        bad.error = None
        both.metrics(3, {})
        both.close()
    assert [step for step, _ in good.seen] == [0, 1, 2, 3]
    assert [step for step, _ in bad.seen] == [3]
    assert "Kept lost 3 records" in caplog.text


def test_errors_of_our_own_stop_nothing_either(caplog):
    FanOut([Kept(StoreError("gone"))]).event("x", {})
    assert "gone" in caplog.text


def test_the_console_prints_the_headline_and_what_is_noteworthy():
    said = []
    sink = ConsoleSink(said.append)
    sink.metrics(3, {"reward/mean": 0.51239, "time/step_s": 12345678.0, "tokens/total": 5.0, "policy/loss": 1e-7})
    sink.metrics(4, {"tokens/total": 5.0})
    sink.event("episode", {"id": 1})
    sink.event("checkpoint", {"path": "x\x1b[2J", "empty": None})
    sink.close()
    assert said == [
        "step 3  reward/mean 0.5124  policy/loss 1.00e-07  time/step_s 1.23e+07",
        "checkpoint  path=x\\x1b[2J",
    ]


def test_steps_that_teach_nothing_are_said_once_with_what_may_help():
    said = []
    sink = ConsoleSink(said.append, show=())
    for step, mixed in enumerate([0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]):
        sink.metrics(step, {"group/frac_mixed": mixed})
        sink.metrics(step, {"eval/x/success_rate": 0.5})
        assert len(said) == (step >= 5), step
    assert said[0].startswith("no signal for 3 steps") and "--group-size" in said[0]
