import pytest

from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.records import Mail
from cuarl.sim.phone.state import DeviceState
from tests.unit.sim.phone.apps.finger import back, crawl, device, find, tap, type_into

MAILS = DeviceState().mails


def rows(world):
    return [e.label for e in elements(world) if e.role == "row"]


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("mail/inbox", seed, profile))
    assert {
        f"mail/{p}" for p in ("inbox", "starred", "sent", "drafts", "mail:1", "new", "settings", "archived")
    } <= pages


def test_opening_a_mail_marks_it_as_read():
    world = tap(device("mail/inbox"), "Meeting notes")
    assert (world.ui.page, world.state.mails[0].read) == ("mail/mail:0", True)
    world = tap(world, "More options", "Mark as unread")
    assert (world.ui.page, world.state) == ("mail/inbox", device("mail/inbox").state)


def test_all_mails_are_marked_as_read_at_once():
    world = tap(device("mail/inbox"), "More options", "Mark all as read")
    assert all(m.read for m in world.state.mails)


def test_a_mail_is_sent_to_the_address_of_the_person():
    world = tap(device("mail/inbox"), "Compose")
    assert not find(world, "Send").enabled
    for field, text in (("To", "grace park"), ("Subject", "Tea"), ("Message", "At four?")):
        world = type_into(world, field, text)
    world = tap(world, "Send")
    assert world.state.mails == (*MAILS, Mail("Me", "Tea", "At four?", read=True, to="grace@mail.test"))
    assert world.ui.page == "mail/inbox"
    assert rows(world) == [m.subject for m in MAILS]
    assert rows(tap(world, "Sent")) == ["Tea"]


def test_a_person_is_suggested_unless_the_app_may_not_look():
    world = type_into(device("mail/new"), "To", "Ben")
    assert rows(world) == ["Ben Ortiz"]
    world = tap(world, "Ben Ortiz")
    assert (world.get("ui.form.mail.to"), world.ui.focus) == ("ben@mail.test", "ui.form.mail.subject")
    assert rows(type_into(device("mail/new", **{"apps.mail.contacts": False}), "To", "Ben")) == []


def test_leaving_the_form_sends_nothing_and_forgets_it():
    world = back(back(type_into(tap(device("mail/inbox"), "Compose"), "To", "x@y.test")))
    assert (world.ui.page, world.state.mails) == ("mail/inbox", MAILS)
    assert find(tap(world, "Compose"), "To").value == ""


def test_a_reply_is_addressed_and_titled():
    world = tap(device("mail/mail:0"), "Reply")
    world = tap(type_into(world, "Message", "Thanks"), "Send")
    assert world.state.mails[-1] == Mail("Me", "Re: Meeting notes", "Thanks", read=True, to="ben@mail.test")
    again = tap(device("mail/mail:0", mails=[{"sender": "A", "subject": "Re: b"}]), "Reply")
    assert find(again, "Subject").value == "Re: b"


def test_forwarding_keeps_the_text():
    world = tap(device("mail/mail:1"), "Forward")
    assert not find(world, "Send").enabled
    world = tap(type_into(world, "To", "dan@mail.test"), "Send")
    assert world.state.mails[-1] == Mail("Me", "Fwd: Book is due", MAILS[1].text, read=True, to="dan@mail.test")


def test_a_draft_is_finished_later():
    world = tap(type_into(device("mail/new"), "Subject", "Later"), "Save draft")
    assert world.state.mails[-1] == Mail("Me", "Later", read=True, draft=True)
    assert rows(world) == [m.subject for m in MAILS]
    world = tap(type_into(tap(world, "Drafts", "Later"), "To", "ada@mail.test"), "Send")
    assert world.state.mails[-1] == Mail("Me", "Later", read=True, to="ada@mail.test")
    assert len(world.state.mails) == len(MAILS) + 1


def test_a_mail_is_deleted_only_after_the_question():
    world = tap(device("mail/mail:1"), "Delete mail")
    assert tap(world, "Cancel").state == world.state
    assert tap(world, "Delete").state.mails == (MAILS[0], MAILS[2])


def test_stars_and_the_archive_move_mails():
    world = tap(device("mail/mail:2"), "Add star", "Archive")
    assert (world.ui.page, rows(world)) == ("mail/inbox", ["Meeting notes", "Book is due"])
    world = tap(world, "More options", "Archived", "Holiday photos", "Unarchive")
    assert rows(tap(back(world), "Starred")) == ["Holiday photos"]


def test_the_search_looks_into_senders_subjects_and_texts():
    assert rows(type_into(device("mail/inbox"), "Search mail", "FRIDAY")) == ["Book is due"]
    assert rows(type_into(device("mail/inbox"), "Search mail", "ortiz")) == ["Meeting notes"]
