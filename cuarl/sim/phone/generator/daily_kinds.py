"""Kinds of goals about time, calls, the web, sums, songs, places and people to follow."""

from __future__ import annotations

from cuarl.sim.phone.apps.clock import ZONES
from cuarl.sim.phone.apps.instagram import PEOPLE
from cuarl.sim.phone.apps.maps import PLACES
from cuarl.sim.phone.apps.weather import FORECASTS
from cuarl.sim.phone.generator.part import Part, Scope, answer, equals, kind
from cuarl.sim.phone.generator.record_kinds import any_of, has, lacks
from cuarl.tasks.task import Check

# --- clock ---------------------------------------------------------------------------------------------------------

ALARMS, CLOCK = ("alarms",), ("clock.alarms",)


def clock_time(minutes: int) -> str:
    """A time of day: ``07:30``."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


@kind("alarm.switch", "clock", "app")
def switch_alarm(scope: Scope) -> Part | None:
    """Turn an alarm on or off."""
    at, alarm = any_of(scope, scope.device.alarms)
    on = not alarm["enabled"]
    time = clock_time(alarm["minutes"])
    words = {"time": time, "state": "on" if on else "off"}
    return Part(f"alarm {time}", words, (equals(f"clock.alarms.{at}.enabled", on),), 4, CLOCK, uses=ALARMS)


@kind("alarm.add", "clock", "app", weight=2)
def add_alarm(scope: Scope) -> Part | None:
    """Add an alarm."""
    minutes = 5 * scope.draw.below(288)
    if minutes in [alarm["minutes"] for alarm in scope.device.alarms]:
        return None
    time = clock_time(minutes)
    plan = ({"open": "clock/new"}, {"tap": time[:2]}, {"tap": time[2:]}, {"tap": "Save alarm"})
    check = has("clock.alarms", {"minutes": minutes, "enabled": True})
    return Part(f"alarm {time}", {"time": time}, (check,), 7, CLOCK, uses=ALARMS, plan=plan)


@kind("alarm.delete", "clock", "app")
def delete_alarm(scope: Scope) -> Part | None:
    """Delete an alarm."""
    at, alarm = any_of(scope, scope.device.alarms)
    time = clock_time(alarm["minutes"])
    plan = ({"open": f"clock/edit:{at}"}, {"tap": "Delete alarm"}, {"tap": "Delete"})
    check = lacks("clock.alarms", {"minutes": alarm["minutes"]})
    return Part(f"alarm {time}", {"time": time}, (check,), 6, CLOCK, uses=ALARMS, plan=plan)


@kind("alarm.lookup", "clock", "app", last=True)
def look_up_alarm(scope: Scope) -> Part | None:
    """Say what an alarm is for, or when it rings."""
    alarm = any_of(scope, scope.device.alarms)[1]
    time, label = clock_time(alarm["minutes"]), alarm["label"]
    plan = ({"open": "clock/alarms"}, {"answer": label})
    return Part(f"alarm {time}", {"time": time}, (answer(label),), 4, CLOCK, uses=ALARMS, plan=plan)


@kind("city.add", "clock", "app", weight=0.3)
def add_city(scope: Scope) -> Part | None:
    """Add a city to the world clock."""
    city = scope.chosen(tuple(ZONES))
    if city is None:
        return None
    others = scope.draw.some([other for other in ZONES if other != city], 2)
    check = Check(path="clock.cities", op="contains", value=city)
    return Part(city, {"city": city}, (check,), 6, ("clock.cities",), {"clock.cities": others})


@kind("timer.start", "clock", "app")
def start_timer(scope: Scope) -> Part | None:
    """Start a timer."""
    minutes = scope.draw.between(1, 59)
    checks = (equals("clock.timer.seconds", 60 * minutes), equals("clock.timer.running", True))
    taps = tuple({"tap": digit, "role": "button"} for digit in (*str(minutes), "00"))
    plan = ({"open": "clock/timer"}, *taps, {"tap": "Start timer"})
    words = {"span": f"{minutes} minute{'s' if minutes > 1 else ''}"}
    return Part(f"timer {minutes}", words, checks, 5 + len(taps), ("clock.timer",), plan=plan)


# --- calls, web, sums ----------------------------------------------------------------------------------------------


@kind("call.block", "phone", "app")
def block(scope: Scope) -> Part | None:
    """Block a number of the call log."""
    number = any_of(scope, scope.device.calls)[1]["number"]
    plan = ({"open": f"phone/number:{number}"}, {"tap": "Block number"}, {"tap": "Block", "role": "button"})
    check = Check(path="phone.blocked", op="contains", value=number)
    return Part(number, {"number": number}, (check,), 6, ("phone", "contacts"), uses=("calls",), plan=plan)


WEB = "browser"


@kind("web.search", "chrome", "input", weight=2)
def web_search(scope: Scope) -> Part | None:
    """Search the web."""
    text = f"{scope.draw.choose(scope.device.words.adjectives)} {scope.device.words.noun(scope.draw)}"
    check = Check(path="browser.url", op="icontains", value=f"q={text}")
    return _surfed(text, {"text": text}, check)


@kind("web.open", "chrome", "input")
def web_open(scope: Scope) -> Part | None:
    """Open an address."""
    url = f"{scope.device.words.made_up(scope.draw)}.test"
    return _surfed(url, {"text": url}, equals("browser.url", url))


def _surfed(text: str, words: dict[str, str], check: Check) -> Part:
    plan = ({"open": "app/chrome"}, {"type": text, "into": "Search or type URL", "submit": True})
    return Part(text, words, (check,), 4, (WEB,), allow=("browser.tabs",), plan=plan)


OPERATORS = (("Plus", "+", "plus"), ("Minus", "-", "minus"), ("Times", "*", "times"))


@kind("sum", "calculator", "app", weight=2)
def work_out(scope: Scope) -> Part | None:
    """Work something out on the calculator."""
    key, sign, word = scope.draw.choose(OPERATORS)
    a, b = scope.draw.between(11, 989), scope.draw.between(2, 9 if sign == "*" else 99)
    if sign == "-" and b >= a:
        return None
    result = {"+": a + b, "-": a - b, "*": a * b}[sign]
    keys = (*str(a), key, *str(b), "Equals")
    plan = ({"open": "app/calculator"}, *({"tap": key, "role": "button"} for key in keys))
    words = {"sum": f"{a} {sign if scope.draw.chance(0.5) else word} {b}"}
    check = equals("calculator.result", str(result))
    return Part(
        f"{a}{sign}{b}", words, (check,), 3 + len(keys), ("calculator",), allow=("calculator.expression",), plan=plan
    )


# --- songs, events, weather, places, people ------------------------------------------------------------------------


@kind("song.play", "music", "app", weight=2)
def play_song(scope: Scope) -> Part | None:
    """Play a song."""
    songs = scope.device.songs
    at = scope.draw.between(1, len(songs) - 1)
    checks = (equals("music.playing", True), equals("music.current", at))
    words = {"title": songs[at]["title"]}
    return Part(songs[at]["title"], words, checks, 4, ("music",), {"music.current": 0}, ("songs",))


@kind("song.like", "music", "app", weight=2)
def like_song(scope: Scope) -> Part | None:
    """Like a song."""
    at, song = any_of(scope, scope.device.songs)
    title = song["title"]
    return Part(title, {"title": title}, (equals(f"music.songs.{at}.liked", True),), 4, ("music",), uses=("songs",))


EVENTS = ("events",)


@kind("event.add", "calendar", "input", weight=2)
def add_event(scope: Scope) -> Part | None:
    """Write an entry into the calendar."""
    title, place = scope.device.words.title(scope.draw), scope.device.words.title(scope.draw)
    plan = (
        {"open": "calendar/new"},
        {"type": title, "into": "Title"},
        {"type": place, "into": "Place"},
        {"tap": "Save event"},
    )
    words, check = {"title": title, "place": place}, has("events", {"title": title, "place": place, "day": 18})
    return Part(title, words, (check,), 10, EVENTS, uses=EVENTS, plan=plan)


@kind("event.delete", "calendar", "app")
def delete_event(scope: Scope) -> Part | None:
    """Delete an entry of the calendar."""
    title = any_of(scope, scope.device.events)[1]["title"]
    plan = ({"open": "calendar/agenda"}, {"tap": title}, {"tap": "Delete event"}, {"tap": "Delete"})
    return Part(title, {"title": title}, (lacks("events", {"title": title}),), 8, EVENTS, uses=EVENTS, plan=plan)


@kind("event.lookup", "calendar", "app", last=True, weight=2)
def look_up_event(scope: Scope) -> Part | None:
    """Say when or where something is."""
    event = any_of(scope, scope.device.events)[1]
    what, told, exactly = scope.draw.choose(
        (
            ("where", event["place"], False),
            ("on which day of June", event["day"], True),
            ("at what time", clock_time(event["minutes"]), False),
        )
    )
    plan = ({"open": "calendar/agenda"}, {"answer": str(told)})
    words = {"title": event["title"], "what": what}
    return Part(event["title"], words, (answer(told, exactly=exactly),), 5, EVENTS, uses=EVENTS, plan=plan)


@kind("weather.city", "weather", "app")
def weather_city(scope: Scope) -> Part | None:
    """Show another city's weather."""
    city = scope.chosen(tuple(FORECASTS))
    if city is None:
        return None
    start = scope.draw.choose([other for other in FORECASTS if other != city])
    return Part(city, {"city": city}, (equals("weather.city", city),), 6, ("weather",), {"weather.city": start})


@kind("weather.lookup", "weather", "app", last=True)
def weather_now(scope: Scope) -> Part | None:
    """Say how warm, windy or humid it is."""
    city = scope.chosen(tuple(FORECASTS))
    if city is None:
        return None
    now = FORECASTS[city]
    what, told = scope.draw.choose(
        (("temperature in degrees", now.now), ("wind in km/h", now.wind), ("humidity in percent", now.humidity))
    )
    preset = {"weather.city": city, "weather.fahrenheit": False}
    plan = ({"open": "app/weather"}, {"answer": str(told)})
    words = {"city": city, "what": what}
    return Part(city, words, (answer(told, exactly=True),), 3, ("weather",), preset, plan=plan)


@kind("place.save", "maps", "app")
def save_place(scope: Scope) -> Part | None:
    """Save a place."""
    name = scope.chosen(tuple(PLACES))
    if name is None:
        return None
    check = Check(path="maps.saved", op="contains", value=name)
    return Part(name, {"name": name}, (check,), 6, ("maps",), {"maps.saved": []})


@kind("place.lookup", "maps", "app", last=True)
def place_address(scope: Scope) -> Part | None:
    """Say where a place is."""
    name = scope.chosen(tuple(PLACES))
    if name is None:
        return None
    told = PLACES[name].address
    plan = ({"open": f"maps/place:{name}"}, {"answer": told})
    return Part(name, {"name": name}, (answer(told),), 5, ("maps",), plan=plan)


@kind("person.follow", "instagram", "app", weight=0.3)
def follow(scope: Scope) -> Part | None:
    """Follow someone."""
    name = scope.chosen(tuple(PEOPLE))
    if name is None:
        return None
    check = Check(path="instagram.following", op="contains", value=name)
    return Part(name, {"name": name}, (check,), 6, ("instagram",), {"instagram.following": []})
