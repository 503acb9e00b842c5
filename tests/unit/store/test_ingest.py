"""Rows and tokens of other trainers, on both databases."""

import threading

import pytest

from cuarl.errors import ConfigError
from cuarl.store.ingest import Ingest, Sent


@pytest.fixture
def ingest(store):
    return Ingest(store.engine)


def test_a_row_that_comes_again_keeps_its_number_and_what_it_does_not_say(ingest):
    first = Sent("turns", "u:turn:0", {"turn": 0, "text": "a\x00\ud800", "start": 1.5}, 7)
    assert ingest.keep("phones", [first, Sent("turns", "u:turn:1", {"turn": 1}, 7)], at=1.0) == [1, 2]
    assert ingest.keep("phones", [Sent("turns", "u:turn:0", {"reward": 1e300})], at=2.0) == [1]
    [kept, other] = ingest.rows("turns", parents=[7])
    assert (kept.id, kept.client_id, kept.parent) == (1, "u:turn:0", 7) and other.id == 2
    assert kept.data == {"turn": 0, "text": "a\x00\ud800", "start": 1.5, "reward": 1e300}
    assert [row.id for row in ingest.rows("turns", ids=[2, 3])] == [2]


def test_projects_see_nothing_of_each_other(ingest):
    assert ingest.keep("phones", [Sent("tasks", "a", {})], at=1.0) == [1]
    assert ingest.keep("cars", [Sent("tasks", "a", {})], at=1.0) == [2]
    assert (ingest.known("phones", "tasks", [1, 2]), ingest.known("cars", "tasks", [1, 2])) == ({1}, {2})


def test_many_at_once_get_numbers_of_their_own(ingest):
    found = []

    def one(number):
        rows = [Sent("turns", f"{number}.{i}", {}) for i in range(5)]
        found.append(ingest.keep("phones", rows, at=1.0))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(n for numbers in found for n in numbers) == list(range(1, 31))


def test_a_token_lets_in_until_it_is_revoked(ingest):
    record, secret = ingest.create_token("phones", at=1.0)
    assert ingest.project_of(secret) == "phones" and ingest.project_of(f"{secret}x") is None
    assert secret not in repr(ingest.tokens())
    assert ingest.revoke(record.id, at=2.0).revoked_at == ingest.revoke(record.id, at=3.0).revoked_at == 2.0
    assert ingest.project_of(secret) is None
    with pytest.raises(ConfigError, match='no token "x"'):
        ingest.revoke("x", at=4.0)
