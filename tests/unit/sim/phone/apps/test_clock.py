import pytest

from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.records import Alarm, Stopwatch, Timer
from cuarl.sim.phone.state import DeviceState
from tests.unit.sim.phone.apps.finger import back, crawl, device, find, tap, type_into

ALARMS = DeviceState().clock.alarms


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("clock/alarms", seed, profile))
    assert {"clock/world", "clock/timer", "clock/stopwatch", "clock/new", "clock/edit:0", "clock/cities"} <= pages


def test_every_page_shows_with_the_12_hour_clock():
    assert "clock/edit:2" in crawl(device("clock/alarms", **{"system.use_24h": False}))


def test_the_switch_of_an_alarm_is_not_its_row():
    world = device("clock/alarms")
    assert tap(world, "06:30", role="switch").state.clock.alarms[0].enabled
    assert tap(world, "06:30", role="row").ui.page == "clock/edit:0"


def test_a_new_alarm_is_set_by_hour_and_minute():
    world = tap(device("clock/alarms"), "Add alarm", "06", ":45", "1 min later", "Vibrate")
    world = tap(type_into(world, "Label", "Swim"), "Save alarm")
    assert world.state.clock.alarms == (*ALARMS, Alarm(406, True, "Swim", vibrate=False))
    assert world.ui.page == "clock/alarms"


def test_leaving_the_form_sets_no_alarm():
    world = back(tap(device("clock/alarms"), "Add alarm", "06"))
    assert world.state.clock.alarms == ALARMS


def test_an_alarm_at_a_taken_time_replaces_the_old_one():
    world = tap(device("clock/new"), "07", ":30", "Save alarm")
    assert world.state.clock.alarms == (ALARMS[0], ALARMS[2], Alarm(450))


def test_an_alarm_is_changed_in_place():
    world = tap(device("clock/alarms"), "07:30", "08", "Save alarm")
    assert world.state.clock.alarms[1] == Alarm(510, True, "Work")


def test_an_alarm_is_deleted_only_after_the_question():
    world = tap(device("clock/alarms"), "06:30", "Delete alarm")
    assert tap(world, "Cancel").state == world.state
    assert tap(world, "Delete").state.clock.alarms == ALARMS[1:]


@pytest.mark.parametrize(("minutes", "text"), [(0, "12:00 AM"), (725, "12:05 PM"), (1439, "11:59 PM"), (60, "1:00 AM")])
def test_times_follow_the_12_hour_clock(minutes, text):
    preset = {"system.use_24h": False, "clock.alarms": [{"minutes": minutes}]}
    assert find(device("clock/alarms", **preset), text, "row")


def test_the_timer_counts_typed_digits_from_the_right():
    world = tap(device("clock/timer"), "1", "3", "0", "5", "Erase", "Start timer")
    assert world.state.clock.timer == Timer(90, running=True)
    world = tap(world, "Pause")
    assert world.state.clock.timer == Timer(90, running=False)
    assert tap(world, "Resume", "Delete").state.clock.timer == Timer()


def test_the_timer_takes_six_digits_at_most():
    world = tap(device("clock/timer"), *"1234567", "Start timer")
    assert world.state.clock.timer.seconds == 12 * 3600 + 34 * 60 + 56


def test_the_stopwatch_keeps_laps_until_it_is_reset():
    world = tap(device("clock/stopwatch"), "Start", "Lap", "Lap", "Stop")
    watch = world.state.clock.stopwatch
    assert not watch.running
    assert len(watch.laps) == 2
    assert watch.laps[0] < watch.laps[1] < watch.seconds
    assert tap(world, "Reset").state.clock.stopwatch == Stopwatch()


def test_cities_are_searched_added_and_removed():
    world = type_into(tap(device("clock/world"), "Add city"), "Search cities", "del")
    world = tap(world, "Delhi")
    assert world.state.clock.cities == ("London", "Tokyo", "Delhi")
    assert world.ui.page == "clock/world"
    assert tap(world, "London", "Remove").state.clock.cities == ("Tokyo", "Delhi")


def test_the_world_clock_follows_the_time_zone():
    world = device("clock/world", **{"system.timezone": "Tokyo", "clock.cities": ["New York"]})
    hour, minute = divmod((world.look.minutes - 14 * 60) % 1440, 60)
    assert next(e.value for e in elements(world) if e.label == "New York") == f"{hour:02d}:{minute:02d}"
