from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.errors import RewardError
from cuarl.tasks.paths import changes, covers, includes, leaves, lookup, same

STATE: dict[str, Any] = {
    "network": {"wifi": {"enabled": True, "saved": ["Home", "Office"]}},
    "display": {"brightness": 120},
    "contacts": [{"name": "Ada", "phone": "1", "starred": False}, {"name": "Ben", "phone": "2", "starred": False}],
    "apps": {"chrome": {"package": "com.chrome", "installed": True}},
}


def changed_paths(before, after):
    """Sorted paths of what differs."""
    return tuple(sorted({path for change in changes(before, after) for path in leaves(change)}))


def changed(**replaced: Any) -> tuple[str, ...]:
    return changed_paths(STATE, {**STATE, **replaced})


def test_a_path_leads_through_mappings_and_positions() -> None:
    assert lookup(STATE, "network.wifi.enabled") is True
    assert lookup(STATE, "contacts.1.name") == "Ben"
    assert lookup(STATE, "apps.chrome") == {"package": "com.chrome", "installed": True}


def test_a_position_beyond_the_list_is_none_since_items_come_and_go() -> None:
    assert lookup(STATE, "contacts.2.name") is None


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("network.wifi.enabeld", '(did you mean "network.wifi.enabled"?)'),
        ("wifi.enabled", '(did you mean "network.wifi.enabled"?)'),
        ("display.brightness.level", '"display.brightness" is int'),
        ("contacts.first", '"contacts" is list'),
    ],
)
def test_a_path_that_the_device_does_not_have_is_an_error_not_a_no(path: str, words: str) -> None:
    with pytest.raises(RewardError) as caught:
        lookup(STATE, path)
    assert f'no "{path}"' in caught.value.what
    assert words in caught.value.what


@pytest.mark.parametrize(
    ("glob", "path", "covered"),
    [
        ("ui.*", "ui.page", True),
        ("ui.*", "ui.stack.0.page", True),
        ("ui", "ui.page", True),
        ("ui", "uid", False),
        ("apps.*.running", "apps.chrome.running", True),
        ("apps.*.running", "apps.chrome.installed", False),
        ("browser.history", "browser.history.3", True),
        ("network.suspended*", "network.suspended_wifi", True),
        ("a.?", "a.b", True),
        ("a[b]", "a[b]", True),
        ("a[b]", "ab", False),
        ("wifi", "network.wifi", False),
    ],
)
def test_globs_cover_what_they_match_and_what_lies_below(glob: str, path: str, covered: bool) -> None:
    assert covers(glob, path) is covered


def test_leaves_and_lists_of_scalars_are_told_by_path() -> None:
    wifi = {"wifi": {"enabled": False, "saved": ["Home"]}}
    assert changed(network=wifi, display={"brightness": 120, "new": 1}) == (
        "display.new",
        "network.wifi.enabled",
        "network.wifi.saved",
    )


def test_a_truth_value_is_not_a_number_but_a_tuple_is_a_list() -> None:
    assert not same({"a": True}, {"a": 1})
    assert not same(0, False)
    assert same({"b": (1, [2.0])}, {"b": [1, (2,)]})
    assert changed_paths({"b": (1, 2)}, {"b": [1, 2]}) == ()


def test_an_item_that_comes_or_goes_does_not_change_its_neighbours() -> None:
    ada, ben = STATE["contacts"]
    zoe = {"name": "Zoe", "phone": "9", "starred": True}
    assert changed(contacts=[ben]) == ("contacts.0",)
    assert changed(contacts=[zoe, ada, ben]) == ("contacts.0",)
    assert changed(contacts=[ben, ada]) == ("contacts",)


def test_an_altered_item_is_told_by_its_fields_even_if_it_moved() -> None:
    ada, ben = STATE["contacts"]
    assert changed(contacts=[ada, {**ben, "starred": True}]) == ("contacts.1.starred",)
    assert changed(contacts=[{**ben, "name": "Abe"}, ada]) == ("contacts.0.name",)


SCALARS = st.none() | st.booleans() | st.integers(2, 4) | st.sampled_from("ab")
STATES = st.dictionaries(
    st.sampled_from("xyz"),
    st.recursive(SCALARS, lambda s: st.lists(s, max_size=3) | st.dictionaries(st.sampled_from("pqr"), s, max_size=3)),
    max_size=3,
)


@given(STATES, STATES)
def test_nothing_changed_exactly_when_the_states_are_the_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert (changed_paths(before, after) == ()) == same(before, after)
    assert changed_paths(before, before) == ()


def test_a_value_includes_what_is_named_at_any_depth() -> None:
    thread = {"to": "Ada", "messages": [{"text": "hi", "mine": False}, {"text": "yes", "mine": True}]}
    assert includes(thread, {"to": "Ada", "messages": [{"text": "yes"}]})
    assert not includes(thread, {"messages": [{"text": "yes", "mine": False}]})
    assert not includes(thread, {"to": "Ada", "draft": ""})
