import pytest

from cuarl.sim.phone.apps.phone import name_of, number_of, written
from cuarl.sim.phone.records import Call
from cuarl.sim.phone.route import leads_to
from cuarl.sim.phone.state import DeviceState
from tests.unit.sim.phone.apps.finger import back, crawl, device, find, tap, type_into


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone"), (2, "small")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("phone/recent", seed, profile), depth=4)
    assert {"phone/recent", "phone/keypad", "phone/people", "phone/call", "phone/blocked", "phone/block"} <= pages


def test_a_dialed_number_is_called_and_logged():
    world = tap(device("phone/keypad"), *"5550117", "Call")
    assert (world.state.phone.in_call, world.state.phone.dialed) == ("555-0117", "")
    assert world.state.phone.calls[0] == Call("555-0117", "out")
    assert world.ui.page == "phone/call"


def test_digits_can_be_deleted_before_calling():
    world = tap(device("phone/keypad"), "5", "*", "#", "Delete digit")
    assert world.state.phone.dialed == "5*"


def test_nothing_is_called_without_a_number():
    world = device("phone/keypad")
    assert not find(world, "Call").enabled
    assert tap(world, "Call").state == world.state


def test_a_running_call_can_be_found_again_and_ended():
    world = tap(device("phone/recent"), "Call Eva Lind")
    world = tap(back(world), "Return to call", "Mute")
    assert find(world, "Mute").checked
    world = tap(world, "End call")
    assert world.state.phone.in_call == ""
    assert world.ui.page == "phone/recent"


def test_blocking_asks_first_and_can_be_undone():
    world = tap(device("phone/recent"), "Ben Ortiz", "Block number")
    assert tap(world, "Cancel").state == world.state
    world = tap(world, "Block")
    assert world.state.phone.blocked == ("555-0117",)
    assert tap(world, "Unblock number").state.phone.blocked == ()


def test_a_typed_number_is_blocked_and_unblocked_in_the_settings():
    world = tap(device("phone/settings"), "Blocked numbers", "Block a number")
    world = tap(type_into(world, "Phone number", "5550190"), "Block")
    assert world.state.phone.blocked == ("555-0190",)
    assert world.ui.page == "phone/blocked"
    assert tap(world, "555-0190", "Unblock").state.phone.blocked == ()


def test_the_log_is_cleared_only_after_the_question():
    world = tap(device("phone/recent"), "More options", "Clear call log")
    assert tap(world, "Cancel").state == world.state
    assert tap(world, "Clear").state.phone.calls == ()


def test_calls_of_one_number_are_one_row_and_deleted_together():
    calls = [{"number": "555-0190", "direction": d} for d in ("missed", "in", "out")]
    world = device("phone/recent", **{"phone.calls": [*calls, {"number": "555-0101"}]})
    assert find(world, "555-0190").value == "Missed (3)"
    world = tap(world, "555-0190", "Delete from log", "Delete")
    assert world.state.phone.calls == (Call("555-0101"),)


def test_the_way_to_a_new_callers_page_is_known():
    world = tap(device("phone/keypad"), *"5550199", "Call", "End call")
    assert leads_to(world, "phone/number:555-0199").label == "Recent"


@pytest.mark.parametrize(
    ("typed", "number"), [("5550117", "555-0117"), ("555-0190", "555-0190"), ("112", "112"), ("*100#", "*100#")]
)
def test_numbers_are_written_as_people_do(typed, number):
    assert written(DeviceState(), typed) == number


def test_people_and_numbers_are_found_by_one_another():
    state = DeviceState()
    assert name_of(state, "5550142") == "Eva Lind"
    assert name_of(state, "555-9999") == "555-9999"
    assert number_of(state, "Eva Lind") == "555-0142"
    assert number_of(state, "Nobody") == ""
