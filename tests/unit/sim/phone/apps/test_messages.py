import pytest

from cuarl.sim.phone.device import step
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.records import Message, Thread
from cuarl.sim.phone.state import DeviceState
from cuarl.types import LongPress, TypeText
from tests.unit.sim.phone.apps.finger import back, crawl, device, find, tap, type_into

THREADS = DeviceState().messages


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone"), (2, "small")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("messages/threads", seed, profile))
    assert {"messages/threads", "messages/thread:Ada Meyer", "messages/new", "messages/settings"} <= pages


def test_opening_a_conversation_marks_it_as_read():
    world = tap(device("messages/threads"), "Ada Meyer")
    assert not world.state.messages[0].unread
    assert world.state.messages[2].unread


def test_what_is_typed_is_the_draft_until_it_is_sent():
    world = type_into(device("messages/thread:Dan Okafor"), "Text message", "On my way")
    assert world.state.messages[1].draft == "On my way"
    assert find(back(back(world)), "Dan Okafor").value == "Draft: On my way"
    world = tap(world, "Send")
    assert world.state.messages[1] == Thread("Dan Okafor", (*THREADS[1].messages, Message("On my way", mine=True)))


def test_enter_sends_and_blanks_are_not_sent():
    world = tap(device("messages/thread:Dan Okafor"), "Text message")
    sent = step(world, TypeText(text="Hi", submit=True))
    assert sent.state.messages[1].messages[-1] == Message("Hi", mine=True)
    blank = step(world, TypeText(text="  ", submit=True))
    assert blank.state.messages[1].messages == THREADS[1].messages


def test_a_new_message_starts_a_conversation_with_the_suggested_person():
    world = type_into(tap(device("messages/threads"), "New message"), "To", "eva")
    assert [e.label for e in elements(world) if e.role == "row"] == ["Eva Lind"]
    world = tap(type_into(tap(world, "Eva Lind"), "Text message", "Happy birthday"), "Send")
    assert world.state.messages == (Thread("Eva Lind", (Message("Happy birthday", mine=True),)), *THREADS)
    assert (world.ui.page, world.ui.toast) == ("messages/thread:Eva Lind", "Sent")
    assert back(world).ui.page == "messages/threads"


def test_a_new_message_to_a_known_conversation_continues_it():
    world = tap(type_into(type_into(device("messages/new"), "To", "555-0101"), "Text message", "Yes"), "Send")
    assert len(world.state.messages) == len(THREADS)
    assert world.state.messages[0].messages[-1] == Message("Yes", mine=True)


def test_a_draft_to_a_stranger_is_saved_without_sending():
    world = type_into(type_into(device("messages/new"), "To", "5550199"), "Text message", "Call me")
    world = tap(world, "Save draft")
    assert world.state.messages == (Thread("555-0199", draft="Call me"), *THREADS)


@pytest.mark.parametrize("to", ["", "Nobody", "12"])
def test_nothing_can_be_sent_without_a_recipient(to):
    world = device("messages/new", **{"ui.form.message.to": to, "ui.form.message.body": "Hello"})
    assert not find(world, "Send").enabled
    assert not find(world, "Save draft").enabled


def test_the_first_message_to_a_person_starts_their_conversation():
    world = tap(type_into(device("messages/thread:Finn Baker"), "Text message", "Hello"), "Send")
    assert world.state.messages[0] == Thread("Finn Baker", (Message("Hello", mine=True),))


def test_a_conversation_is_deleted_only_after_the_question():
    world = tap(device("messages/thread:555-0190"), "Delete conversation")
    assert tap(world, "Cancel").state == world.state
    world = tap(world, "Delete")
    assert world.state.messages == THREADS[:2]
    assert world.ui.page == "messages/threads"


def test_a_long_press_pins_and_archives():
    world = device("messages/threads")
    x, y = find(world, "555-0190").centre
    pinned = tap(step(world, LongPress(x=x, y=y)), "Pin")
    assert next(e.label for e in elements(pinned) if e.role == "row") == "555-0190"
    archived = tap(step(world, LongPress(x=x, y=y)), "Archive")
    assert archived.state.messages[2].archived
    assert not any(e.label == "555-0190" for e in elements(archived))
    assert find(tap(archived, "Message settings", "Archived"), "555-0190")


def test_the_menu_blocks_the_number():
    world = tap(device("messages/thread:555-0190"), "More options", "Block number")
    assert world.state.phone.blocked == ("555-0190",)


def test_the_search_looks_into_the_messages():
    world = type_into(device("messages/threads"), "Search messages", "train")
    assert [e.label for e in elements(world) if e.role == "row"] == ["Dan Okafor"]
