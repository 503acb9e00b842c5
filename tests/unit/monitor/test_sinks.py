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


def step(success, **more):
    return {
        "episode/success_rate": success,
        "reward/mean": success,
        "group/frac_mixed": 0.5,
        "time/step_s": 2.0,
        **more,
    }


def test_the_console_prints_a_line_a_step_and_what_is_noteworthy():
    said = []
    sink = ConsoleSink(said.append)
    sink.metrics(3, step(0.5))
    sink.metrics(4, {"tokens/total": 5.0})
    sink.event("episode", {"id": 1})
    sink.event("checkpoint", {"path": "x"})
    sink.event("halted", {"path": "x\x1b[2J", "empty": None})
    sink.close()
    assert said == ["step 3  success 50 %  reward 0.50  signal 50 %  2.0 s", "halted  path=x\\x1b[2J"]


def test_details_are_all_metrics_and_events():
    said = []
    sink = ConsoleSink(said.append, detail=True)
    sink.metrics(4, {"tokens/total": 5.0})
    sink.event("checkpoint", {"path": "x"})
    assert said == ["step 4  tokens/total 5", "checkpoint  path=x"]


def test_the_time_that_is_left_counts_steps_and_evaluations():
    said = []
    sink = ConsoleSink(said.append)
    sink.event("start", {"steps": 10, "eval_every": 4})
    sink.metrics(3, step(0.5))
    sink.metrics(4, step(0.5, **{"time/step_s": 12.0, "time/eval_s": 10.0}))
    sink.metrics(10, step(0.5))
    lefts = [line.partition("2.0 s")[2] if "12 s" not in line else line.partition("12 s")[2] for line in said]
    assert lefts == ["  14 s left", "  32 s left", ""]  # seven steps; six steps and two evaluations


def test_success_and_reward_that_differ_are_explained_once():
    said = []
    sink = ConsoleSink(said.append)
    sink.event("start", {"reward": "shaped"})
    for number in range(3):
        sink.metrics(number, step(0.5) if number == 0 else step(0.5, **{"reward/mean": 0.2}))
    assert [line.startswith("reward is not success") for line in said] == [False, False, True, False]
    assert '"shaped"' in said[2]


def test_a_trend_is_drawn_of_the_last_steps():
    said = []
    sink = ConsoleSink(said.append, trend=True)
    for number in range(10):
        sink.metrics(number, step(number / 9))
    assert "success 0 %  " in said[0] and "success 11 % ▁▂  " in said[1] and "success 100 % ▃▃▄▅▆▆▇█  " in said[9]


def test_steps_that_teach_nothing_are_said_once_with_what_may_help():
    said = []
    sink = ConsoleSink(said.append)
    for number, mixed in enumerate([0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]):
        sink.metrics(number, {"group/frac_mixed": mixed})
        sink.metrics(number, {"eval/x/success_rate": 0.5})
        assert any(line.startswith("no signal") for line in said) == (number >= 5), number
    [told] = [line for line in said if line.startswith("no signal")]
    assert told.startswith("no signal for 3 steps") and "--group-size" in told


def test_imitation_learns_from_groups_that_all_succeed():
    said = []
    sink = ConsoleSink(said.append)
    sink.event("start", {"steps": 4, "imitates": True})
    for number in range(4):
        sink.metrics(number, {"group/frac_mixed": 0.0})
    assert not any(line.startswith("no signal") for line in said)
