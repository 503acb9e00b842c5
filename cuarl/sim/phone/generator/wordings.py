"""How each kind of goal is said: clauses that begin with a verb, and questions, which begin with a question mark here.

``(a|b)`` is one or the other, ``(a|)`` may be left out, ``{name}`` is a word of the part. Of each kind's clauses every
fourth is held out: it stands in no task but those that are held out by wording.
"""

from __future__ import annotations

from collections.abc import Mapping

from cuarl.sim.phone.generator.record_wordings import RECORDS

WORDINGS: Mapping[str, tuple[str, ...]] = {
    "setting.switch": (
        "turn {state} {label}",
        "switch {state} {label}",
        "turn {label} {state}",
        "make sure {label} is {state}",
        "{enable} {label}",
        "set {label} to {state}",
        "(go to the settings and|) turn {label} {state}",
        "{label} should be {state}: change that",
        "see to it that {label} is {state}",
        "switch {label} {state}",
        "I want {label} {state}, so set it",
        "change {label} to {state}",
    ),
    "setting.choice": (
        "set {label} to {value}",
        "change {label} to {value}",
        "choose {value} for {label}",
        "for {label}, pick {value}",
        "(select|pick) {value} as {label}",
        "switch {label} to {value}",
        "make {value} the new value of {label}",
        "under {label}, select {value}",
    ),
    "setting.level": (
        "set {label} to about {percent}",
        "move {label} to around {percent}",
        "change {label} to roughly {percent}",
        "slide {label} to somewhere near {percent}",
        "put {label} at about {percent}",
        "adjust {label} to {percent}, more or less",
        "bring {label} to approximately {percent}",
        "{label} should be near {percent}: adjust it",
    ),
    "setting.lookup": (
        "tell me what {label} is set to",
        "?what is {label} set to",
        "look up {label} and tell me its value",
        "?which value does {label} have (now|)",
        "find out what is chosen for {label} and say it",
        "report the current value of {label}",
        "?what is chosen for {label} (at the moment|)",
        "read {label} out to me",
    ),
    "setting.ask": (
        "tell me whether {label} is on: yes or no",
        "?is {label} on, yes or no",
        "check if {label} is on and answer yes or no",
        "?is {label} switched on? Answer yes or no",
        "find out whether {label} is turned on and say yes or no",
        "?yes or no: is {label} on",
        "look at {label}: say yes if it is on, else no",
        "?has {label} been turned on? Yes or no",
    ),
    "setting.all_but": (
        "turn {state} everything on the {page} except {label}",
        "turn {state} all switches of the {page} but {label}",
        "on the {page}, turn {state} all but {label}",
        "leave {label} alone, but turn {state} the rest of the {page}",
        "switch {state} every setting on the {page} apart from {label}",
        "turn all of the {page} {state}; only {label} stays as it is",
    ),
    "setting.rename": (
        'rename the {what} to "{name}"',
        'give the {what} the name "{name}"',
        'call the {what} "{name}"',
        'let the {what} be called "{name}"',
        'change the name of the {what} to "{name}"',
        'set the name of the {what} to "{name}"',
    ),
    "app.uninstall": (
        "uninstall {app}",
        "remove {app} from the phone",
        "delete the app {app}",
        "get rid of the app {app}",
        "take {app} off this phone by uninstalling it",
    ),
    "app.clear_cache": (
        "clear the cache of {app}",
        "empty the cache of {app}",
        "delete the cache of {app}, but keep its data",
        "free the space that the cache of {app} takes",
        "wipe {app}'s cache",
    ),
    "app.clear_data": (
        "delete the data of {app}",
        "clear the user data of {app}",
        "remove all data that {app} has stored",
        "reset {app} by deleting its data",
        "wipe {app}'s data",
    ),
    "app.lookup": (
        "tell me how large the {what} of {app} is",
        "?how much {what} does {app} have",
        "look up the size of {app}'s {what}",
        "?what is the size of the {what} of {app}",
        "find out how much space the {what} of {app} takes",
    ),
    "wifi.join": (
        'connect to the Wi-Fi network "{name}"',
        "join the Wi-Fi {name}",
        'connect the phone to the network "{name}"',
        "get onto the Wi-Fi called {name}",
        "use the network {name} for Wi-Fi",
    ),
    "wifi.forget": (
        'forget the Wi-Fi network "{name}"',
        "remove {name} from the saved networks",
        "make the phone forget the Wi-Fi {name}",
        "delete the saved network {name}",
        "stop remembering the network {name}",
    ),
    "wifi.lookup": (
        "tell me which Wi-Fi (network|) the phone is connected to",
        "?which Wi-Fi is the phone connected to",
        "?what is the name of the Wi-Fi (network|) in use",
        "report the name of the connected network",
        "find out the network that is joined and name it",
        "look up which network is in use",
    ),
    "bluetooth.forget": (
        "forget the Bluetooth device {name}",
        "unpair {name}",
        'remove "{name}" from the paired devices',
        "make the phone forget {name}",
        "delete the pairing with {name}",
    ),
    "bluetooth.pair": (
        "pair with {name}",
        "pair the phone with the Bluetooth device {name}",
        'add "{name}" to the paired devices',
        "connect {name} over Bluetooth",
        "set up the Bluetooth device {name}",
    ),
    "app.open": (
        "open {app}",
        "start {app}",
        "go to the {app} app",
        "bring {app} to the front",
        "show me {app}",
        "launch the app {app}",
    ),
    "page.open": (
        "open the {page} page of {app}",
        "go to {page} in {app}",
        "show the page {page} in {app}",
        "take me to {page} in the app {app}",
        "navigate to {page} in {app}",
        "bring up {app}'s {page} page",
    ),
    "note.open": (
        'open the note "{title}"',
        "show the note {title}",
        "go to the note called {title}",
        "let me see the note {title}",
        'display my note "{title}"',
    ),
    "contact.open": (
        "open the contact {name}",
        "show {name} in the contacts",
        "go to {name}'s page in Contacts",
        "let me see the contact {name}",
        "look {name} up in the address book and stay there",
    ),
    "thread.open": (
        "open the conversation with {name}",
        "show my messages with {name}",
        "go to the chat with {name}",
        "let me see what {name} and I wrote",
        "open {name} in Messages",
    ),
    "mail.open": (
        'open the mail "{subject}"',
        "show the mail about {subject}",
        "go to the mail with the subject {subject}",
        "let me see the mail {subject}",
        'display the e-mail "{subject}"',
    ),
    "file.open": (
        "open the file {name} in {folder}",
        "show the details of {name} in the folder {folder}",
        "go to the file {name} ({folder})",
        "let me see the file {name} from {folder}",
        "find {folder}/{name} and open it",
    ),
    "event.open": (
        'open the event "{title}"',
        "show the calendar entry {title}",
        "go to {title} in the calendar",
        "let me see the event {title}",
        "open {title} in Calendar",
    ),
    "search": (
        'search {what} for "{text}"',
        "look for {text} in {app}",
        'use the search of {app} to find "{text}"',
        "find {text} in {what} with the search",
        'type "{text}" into the search of {app}',
        'in {app}, search for "{text}"',
    ),
    "notification.open": (
        'open the notification "{title}"',
        "tap the notification {title}",
        "go to what the notification {title} is about",
        "follow the notification {title}",
        "open {title} from the notification shade",
    ),
    "notification.dismiss": (
        'dismiss the notification "{title}"',
        "swipe the notification {title} away",
        "remove only the notification {title}",
        "get rid of the notification {title}",
        "clear {title} from the notifications and keep the others",
    ),
    "home.remove": (
        "take {app} off the home screen",
        "remove the icon of {app} from the home screen, without uninstalling it",
        "clear {app} from the home screen",
        "let {app} no longer be on the home screen",
        "remove {app} from home but keep the app",
    ),
    **RECORDS,
}

ALONE: tuple[str, ...] = (
    "{a}.",
    "{a}.",
    "Please {a}.",
    "(Could|Can) you {a}?",
    "I('d like| want) you to {a}.",
    "Your task: {a}.",
    "{a}, please.",
    "Help me: {a}.",
    "On this phone, {a}.",
)
"""What a single clause stands in."""

TOGETHER: tuple[str, ...] = (
    "{all} and {last}.",
    "{all}, then {last}.",
    "First {all}, and after that {last}.",
    "Please {all}, and {last}.",
    "(Could|Can) you {all} and {last}?",
    "Do this: {all}; {last}.",
    "{all}. {Last}.",
    "(Do|Take care of) all of these: {all}; {last}.",
)
"""How several clauses are said together."""

SPARING: tuple[str, ...] = (
    "{a}, but leave {other} as it is.",
    "{a}. Do not touch {other}.",
    "Without changing {other}, {a}.",
    "Leave {other} alone and {a}.",
    "{a}, and let {other} stay as it is.",
    "{a}; {other} must not change.",
)
"""How it is said that something stays."""

CHOOSING: tuple[str, ...] = (
    "If {fact}, {a}, otherwise {b}.",
    "{a} if {fact}, else {b}.",
    "Check whether {fact}: if so, {a}; if not, {b}.",
    "Should it be that {fact}, {a}; in the other case {b}.",
    "When {fact}, {a}. When not, {b}.",
)
"""How a condition is said."""
