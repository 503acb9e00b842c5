"""Look-ups that read one page, whatever else the store holds."""

import pytest

from cuarl.errors import ConfigError
from cuarl.store import EpisodeStart
from cuarl.workflow.stored_episodes import find_episode
from tests.unit.store.samples import plain, run, save


@pytest.fixture
def clocked(store):
    """A store whose episodes are saved at the times of a counter, with one that is under way last."""
    store.start_run(run())
    ids = ["b1", "a2", "a10", "a1", "c\ud800", "c\U0010ffffx", "c"]
    for second, episode_id in enumerate(ids):
        store._clock = lambda now=second: float(now)
        save(store, plain(episode_id))
    store._clock = lambda: 100.0
    store.start_episode(EpisodeStart(episode_id="a-under-way", run_id="r1", task_id="t"))
    store.drain()
    return store


def test_the_newest_come_page_by_page_until_there_are_no_more(clocked):
    pages, last = [], None
    while page := clocked.newest(3, before=last):
        pages.append([e.episode_id for e in page])
        last = page[-1]
    assert pages == [["c", "c\U0010ffffx", "c\ud800"], ["a1", "a10", "a2"], ["b1"]]


def test_episodes_that_were_saved_at_the_same_time_are_on_one_page_only(store):
    store._clock = lambda: 5.0
    for i in range(7):
        save(store, plain(f"e{i}"))
    first = store.newest(4)
    assert [e.episode_id for e in [*first, *store.newest(4, before=first[-1])]] == [
        f"e{i}" for i in (6, 5, 4, 3, 2, 1, 0)
    ]


def test_ids_are_found_by_how_they_begin(clocked):
    assert clocked.beginning("a", limit=9) == ["a1", "a10", "a2"]
    assert clocked.beginning("a1", limit=1) == ["a1"]
    assert clocked.beginning("c", limit=9)[0] == "c" and len(clocked.beginning("c", limit=9)) == 3
    assert clocked.beginning("c\ud800", limit=9) == ["c\ud800"]
    assert clocked.beginning("%", limit=9) == clocked.beginning("A", limit=9) == []
    assert len(clocked.beginning("", limit=9)) == 7


def test_an_episode_is_shown_by_its_id_its_beginning_or_as_the_latest(clocked):
    assert find_episode(clocked, "latest").episode_id == "c"
    assert find_episode(clocked, "a1").episode_id == "a1"
    assert find_episode(clocked, "b").episode_id == "b1"
    with pytest.raises(ConfigError, match="3 episodes begin so: a1, a10, a2"):
        find_episode(clocked, "a")
    with pytest.raises(ConfigError, match="more than 5 episodes begin so: a1, a10, a2, b1, c"):
        find_episode(clocked, "")
    with pytest.raises(ConfigError, match="none begins so"):
        find_episode(clocked, "a-under")


def test_an_empty_store_says_how_to_fill_it(store):
    with pytest.raises(ConfigError, match="no episodes in the store yet"):
        find_episode(store, "latest")
