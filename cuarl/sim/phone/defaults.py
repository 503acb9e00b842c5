"""What is on a fresh device: apps, people, messages, files. Names and numbers are invented."""

from __future__ import annotations

from cuarl.sim.phone.records import Alarm, App, Contact, Event, File, Mail, Message, Note, Photo, Song, Thread

APPS: tuple[App, ...] = (
    App("settings", "Settings", "com.android.settings", system=True, storage_mb=24),
    App("phone", "Phone", "com.android.dialer", system=True, microphone=True, contacts=True, storage_mb=31),
    App("messages", "Messages", "com.android.messaging", system=True, contacts=True, storage_mb=48),
    App("contacts", "Contacts", "com.android.contacts", system=True, contacts=True, storage_mb=22),
    App("chrome", "Chrome", "com.android.chrome", storage_mb=182, cache_kb=52776, data_kb=20480, location=True),
    App("camera", "Camera", "com.android.camera", system=True, camera=True, microphone=True, storage_mb=77),
    App("photos", "Gallery", "com.android.gallery", system=True, storage_mb=64, cache_kb=8192),
    App("clock", "Clock", "com.android.deskclock", system=True, storage_mb=12),
    App("calculator", "Calculator", "com.android.calculator", system=True, storage_mb=6, cache_kb=128),
    App("calendar", "Calendar", "com.android.calendar", system=True, contacts=True, storage_mb=26),
    App("files", "Files", "com.android.documentsui", system=True, storage_mb=15),
    App("notes", "Notes", "com.android.notes", storage_mb=18),
    App("store", "Store", "com.android.vending", system=True, storage_mb=56),
    App("mail", "Mail", "com.android.email", contacts=True, storage_mb=88),
    App("music", "Music", "com.android.music", storage_mb=41),
    App("maps", "Maps", "com.android.maps", location=True, storage_mb=140),
    App("weather", "Weather", "com.android.weather", location=True, storage_mb=20),
    App(
        "instagram", "Instagram", "com.instagram.android", camera=True, microphone=True, storage_mb=120, cache_kb=30720
    ),
    App("facebook", "Facebook", "com.facebook.katana", location=True, contacts=True, storage_mb=210, cache_kb=40960),
    App("keyboard", "GBox Keyboard", "com.gbox.keyboard", icon=False, storage_mb=9, cache_kb=64, data_kb=128),
)
"""In the order of the app drawer before sorting."""

CONTACTS = (
    Contact("Ada Meyer", "555-0101", "ada@mail.test"),
    Contact("Ben Ortiz", "555-0117", "ben@mail.test"),
    Contact("Carla Novak", "555-0123"),
    Contact("Dan Okafor", "555-0138", "dan@mail.test", starred=True),
    Contact("Eva Lind", "555-0142"),
    Contact("Finn Baker", "555-0155"),
    Contact("Grace Park", "555-0160", "grace@mail.test"),
)
THREADS = (
    Thread("Ada Meyer", (Message("Lunch tomorrow?"), Message("Sure, at noon", mine=True)), unread=True),
    Thread("Dan Okafor", (Message("The train is late"),)),
    Thread("555-0190", (Message("Your code is 4821"),), unread=True),
)
NOTES = (
    Note("Groceries", "Milk, bread, apples"),
    Note("Ideas", "Paint the shelf"),
    Note("Wi-Fi guest", "Ask at the desk"),
)
FILES = (
    File("Download", folder=True),
    File("Download/report.pdf", size_kb=820),
    File("Download/ticket.pdf", size_kb=140),
    File("Documents", folder=True),
    File("Documents/budget.txt", size_kb=3),
    File("Documents/letter.txt", size_kb=2),
    File("Pictures", folder=True),
    File("Pictures/garden.jpg", size_kb=2210),
    File("Music", folder=True),
    File("Music/rain.mp3", size_kb=5120),
)
EVENTS = (
    Event("Dentist", 12, 570, "Main Street 4"),
    Event("Team call", 18, 840),
    Event("Ada's birthday", 23, 1080),
)
ALARMS = (Alarm(390, enabled=False, label="Early"), Alarm(450, enabled=True, label="Work"), Alarm(555, enabled=False))
PHOTOS = (
    Photo("IMG_0001", "hills"),
    Photo("IMG_0002", "sunset"),
    Photo("IMG_0003", "city"),
    Photo("IMG_0004", "flower"),
    Photo("Poster", "abstract", kind="download", album="Download"),
)
MAILS = (
    Mail("Ben Ortiz", "Meeting notes", "See you on Monday."),
    Mail("Library", "Book is due", "Please return it by Friday."),
    Mail("Grace Park", "Holiday photos", "The best ones are inside.", read=True),
)
SONGS = (
    Song("Blue Harbour", "The Lanterns"),
    Song("Paper Moon", "Ida West"),
    Song("Slow Train", "Orchard Road"),
    Song("Night Market", "Tom Sato"),
)
BOOKMARKS = ("news.test", "weather.test", "example.com")
