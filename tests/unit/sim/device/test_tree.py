from dataclasses import dataclass

import pytest

from cuarl.sim.device import tree
from cuarl.sim.phone.records import Contact
from cuarl.sim.phone.state import DeviceState


@dataclass(frozen=True, slots=True)
class Leaf:
    key: str
    on: bool = False


@dataclass(frozen=True, slots=True)
class Root:
    leaves: tuple[Leaf, ...] = (Leaf("a"), Leaf("b"))
    names: tuple[str, ...] = ("x", "y")


def test_put_shares_everything_beside_the_path_when_a_leaf_changes():
    old = DeviceState()
    new = tree.put(old, "network.wifi.enabled", False)
    assert not new.network.wifi.enabled and old.network.wifi.enabled
    assert new.sound is old.sound and new.network.bluetooth is old.network.bluetooth


def test_put_returns_the_same_tree_when_nothing_changes():
    state = DeviceState()
    assert tree.put(state, "network.wifi.enabled", True) is state


def test_items_are_found_by_key_and_by_position():
    root = tree.put(Root(), "leaves.b.on", True)
    assert [leaf.on for leaf in root.leaves] == [False, True]
    assert tree.put(root, "names.1", "z").names == ("x", "z")


@pytest.mark.parametrize(
    "path", ["network.wify", "network.wifi.enabled.x", "apps.nosuch.installed", "contacts.99.name"]
)
def test_get_raises_key_error_when_the_path_does_not_exist(path):
    with pytest.raises(KeyError):
        tree.get(DeviceState(), path)


def test_as_mapping_keys_items_by_key_when_they_have_one():
    assert tree.as_mapping(Root()) == {
        "leaves": {"a": {"key": "a", "on": False}, "b": {"key": "b", "on": False}},
        "names": ["x", "y"],
    }


def test_put_plain_builds_records_when_given_mappings():
    state = tree.put_plain(DeviceState(), "contacts", [{"name": "Zoe", "phone": "1"}])
    assert state.contacts == (Contact("Zoe", "1"),)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("network.wifi.enabled", 1),
        ("network.wifi.enabled", "true"),
        ("display.brightness", True),
        ("display.timeout_ms", 61000),
        ("contacts", [{"nick": "Zoe"}]),
        ("network.wifi.saved", "HomeNet"),
    ],
)
def test_put_plain_refuses_values_of_the_wrong_type(path, value):
    with pytest.raises(TypeError):
        tree.put_plain(DeviceState(), path, value)
