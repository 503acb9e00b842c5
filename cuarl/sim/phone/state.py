"""The device state: one typed, immutable tree that validators, presets and side-effect checks read by dotted path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cuarl.sim.phone.defaults import (
    ALARMS,
    APPS,
    BOOKMARKS,
    CONTACTS,
    EVENTS,
    FILES,
    MAILS,
    NOTES,
    PHOTOS,
    SONGS,
    THREADS,
)
from cuarl.sim.phone.records import (
    Alarm,
    App,
    Call,
    Contact,
    Event,
    File,
    HomePage,
    Mail,
    Note,
    Notification,
    Photo,
    Song,
    Stopwatch,
    Thread,
    Timer,
)

TIMER, STOPWATCH = Timer(), Stopwatch()

VOLATILE: tuple[str, ...] = ("ui.*", "apps.*.running", "battery.level", "browser.history")
"""Globs of paths that change by merely using the device."""

DERIVED: tuple[str, ...] = ("network.wifi.connected", "network.suspended*")
"""Globs of paths that the device alone sets, as a consequence of another switch (see ``rules.py``)."""


@dataclass(frozen=True, slots=True)
class Wifi:
    """Wi-Fi; ``connected`` is the name of the joined network, or empty."""

    enabled: bool = True
    connected: str = "HomeNet"
    saved: tuple[str, ...] = ("HomeNet", "Office", "Cafe Guest")
    available: tuple[str, ...] = ("HomeNet", "Office", "Cafe Guest", "Library", "Neighbour 5G")
    scan_always: bool = True
    notify_open: bool = True
    metered: bool = False
    random_mac: bool = True


@dataclass(frozen=True, slots=True)
class Bluetooth:
    """Bluetooth; ``paired`` are names of devices."""

    enabled: bool = False
    paired: tuple[str, ...] = ("Car Audio", "Earbuds")
    available: tuple[str, ...] = ("Keyboard K3", "Speaker Mini")
    name: str = "My Phone"
    share_contacts: bool = True


@dataclass(frozen=True, slots=True)
class Network:
    """Network and internet."""

    wifi: Wifi = Wifi()
    bluetooth: Bluetooth = Bluetooth()
    airplane_mode: bool = False
    suspended: tuple[str, ...] = ()
    """Radios that airplane mode switched off, to be switched on again afterwards."""
    mobile_data: bool = True
    roaming: bool = False
    wifi_calling: bool = False
    preferred: Literal["5G", "4G", "3G"] = "5G"
    hotspot: bool = False
    hotspot_name: str = "My Phone"
    usb_tethering: bool = False
    nfc: bool = True
    contactless_locked: bool = True
    vpn: bool = False
    data_saver: bool = False
    data_warning: bool = True
    private_dns: Literal["Off", "Automatic", "Custom"] = "Automatic"
    cast: bool = False
    printing: bool = True
    nearby_share: bool = False


@dataclass(frozen=True, slots=True)
class Display:
    """Screen settings."""

    brightness: int = 120
    """1 to 255."""
    auto_brightness: bool = False
    dark_theme: bool = False
    night_light: bool = False
    night_light_strength: int = 50
    timeout_ms: Literal[15000, 30000, 60000, 120000, 300000, 600000, 1800000] = 60000
    auto_rotate: bool = False
    font_size: Literal["Small", "Default", "Large"] = "Default"
    wallpaper: str = "Seed"
    """Name of the wallpaper; ``Seed`` is the one that the appearance seed draws."""
    always_on: bool = False
    lift_to_wake: bool = True
    tap_to_wake: bool = True
    smooth_display: bool = True
    show_lock_info: bool = True
    screensaver: bool = False
    colours: Literal["Natural", "Boosted", "Adaptive"] = "Adaptive"


@dataclass(frozen=True, slots=True)
class Sound:
    """Volumes in percent, and sound switches."""

    media: int = 40
    ring: int = 60
    alarm: int = 70
    notification: int = 50
    dnd: bool = False
    dnd_repeat_callers: bool = True
    dnd_alarms: bool = True
    vibrate_on_ring: bool = False
    touch_vibration: bool = True
    dial_pad_tones: bool = True
    touch_sounds: bool = True
    lock_sounds: bool = True
    charging_sounds: bool = True
    screenshot_sound: bool = True
    live_caption: bool = False
    spatial_audio: bool = False
    ringtone: Literal["Chimes", "Harbour", "Pulse", "Meadow", "Silent"] = "Chimes"
    alarm_sound: Literal["Sunrise", "Bells", "Beacon", "Rooster"] = "Sunrise"


@dataclass(frozen=True, slots=True)
class Battery:
    """Battery."""

    level: int = 72
    saver: bool = False
    saver_schedule: Literal["None", "At 10%", "At 20%"] = "None"
    show_percentage: bool = False
    adaptive: bool = True
    optimised_charging: bool = True
    share: bool = False


@dataclass(frozen=True, slots=True)
class Location:
    """Location services."""

    enabled: bool = True
    wifi_scanning: bool = True
    bluetooth_scanning: bool = False
    accuracy: bool = True
    emergency: bool = True
    history: bool = False


@dataclass(frozen=True, slots=True)
class Security:
    """Security and lock screen."""

    screen_lock: Literal["None", "Swipe", "Pattern", "PIN", "Password"] = "Swipe"
    fingerprint: bool = False
    face_unlock: bool = False
    lock_instantly: bool = True
    show_passwords: bool = True
    find_device: bool = True
    scan_apps: bool = True
    lockdown: bool = False
    app_pinning: bool = False
    unknown_sources: bool = False
    encrypt_backups: bool = True


@dataclass(frozen=True, slots=True)
class System:
    """System, language, time, developer options."""

    language: Literal["en", "es", "de", "fr", "it", "pt"] = "en"
    auto_time: bool = True
    auto_timezone: bool = True
    timezone: Literal["London", "New York", "Tokyo", "Sydney", "Berlin"] = "Berlin"
    use_24h: bool = True
    developer_options: bool = False
    usb_debugging: bool = False
    wireless_debugging: bool = False
    stay_awake: bool = False
    show_taps: bool = False
    pointer_location: bool = False
    layout_bounds: bool = False
    mock_location: bool = False
    animation_scale: Literal["Off", "0.5x", "1x", "2x"] = "1x"
    oem_unlocking: bool = False
    auto_update: bool = True
    backup: bool = True
    quick_tap: bool = False
    jump_to_camera: bool = True
    flip_to_shush: bool = False
    one_handed: bool = False
    swipe_fingerprint: bool = False
    autocorrect: bool = True
    glide_typing: bool = True
    key_sounds: bool = False
    suggestions: bool = True
    spell_checker: bool = True
    device_name: str = "My Phone"
    guest_users: bool = False
    storage_manager: bool = False
    send_diagnostics: bool = False


@dataclass(frozen=True, slots=True)
class Accessibility:
    """Accessibility."""

    magnification: bool = False
    colour_correction: bool = False
    colour_inversion: bool = False
    high_contrast: bool = False
    bold_text: bool = False
    captions: bool = False
    mono_audio: bool = False
    reduce_motion: bool = False
    screen_reader: bool = False
    select_to_speak: bool = False
    large_pointer: bool = False
    extra_dim: bool = False
    power_ends_call: bool = False
    flash_alerts: bool = False
    hearing_aids: bool = False


@dataclass(frozen=True, slots=True)
class Privacy:
    """Privacy."""

    camera_access: bool = True
    mic_access: bool = True
    clipboard_alerts: bool = True
    lock_screen_content: bool = True
    personalised_ads: bool = True
    usage_data: bool = False
    safety_check: bool = False


@dataclass(frozen=True, slots=True)
class Notifications:
    """Posted notifications and how they are shown."""

    items: tuple[Notification, ...] = ()
    bubbles: bool = False
    on_lock_screen: bool = True
    sensitive: bool = True
    snoozing: bool = True
    history: bool = False
    badges: bool = True
    blink_light: bool = False


@dataclass(frozen=True, slots=True)
class Launcher:
    """Home screen layout."""

    pages: tuple[HomePage, ...] = ()
    dock: tuple[str, ...] = ("phone", "messages", "chrome", "camera")
    pinned: str = ""
    """Key of the app that is pinned to the screen, or empty."""
    add_new_icons: bool = True
    lock_layout: bool = False


@dataclass(frozen=True, slots=True)
class Browser:
    """The web browser."""

    url: str = "about:home"
    home: str = "about:home"
    bookmarks: tuple[str, ...] = BOOKMARKS
    history: tuple[str, ...] = ()
    tabs: tuple[str, ...] = ("about:home",)
    block_popups: bool = True
    javascript: bool = True
    do_not_track: bool = False
    save_passwords: bool = True
    safe_browsing: bool = True
    desktop_site: bool = False
    search_engine: Literal["Findly", "Seekr", "Lantern"] = "Findly"


@dataclass(frozen=True, slots=True)
class Calculator:
    """The calculator: what was typed, and what is shown as the result."""

    expression: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    """Alarms, timer, stopwatch, world clock."""

    alarms: tuple[Alarm, ...] = ALARMS
    timer: Timer = TIMER
    stopwatch: Stopwatch = STOPWATCH
    cities: tuple[str, ...] = ("London", "Tokyo")


@dataclass(frozen=True, slots=True)
class Phone:
    """The dialer."""

    dialed: str = ""
    in_call: str = ""
    """Number of the running call, or empty."""
    calls: tuple[Call, ...] = (Call("555-0142", "missed"), Call("555-0117", "out"))
    caller_id: bool = True
    blocked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Media:
    """Camera and gallery."""

    photos: tuple[Photo, ...] = PHOTOS
    grid_lines: bool = False
    flash: bool = False
    self_timer: Literal["Off", "3 s", "10 s"] = "Off"
    mode: Literal["Photo", "Video", "Portrait", "Night"] = "Photo"
    front_camera: bool = False
    recording: bool = False


@dataclass(frozen=True, slots=True)
class Music:
    """The music player."""

    songs: tuple[Song, ...] = SONGS
    playing: bool = False
    current: int = 0
    shuffle: bool = False
    repeat: bool = False


@dataclass(frozen=True, slots=True)
class Weather:
    """The weather app."""

    city: str = "Berlin"
    fahrenheit: bool = False
    alerts: bool = True


@dataclass(frozen=True, slots=True)
class Store:
    """The app store."""

    auto_update: bool = True
    wifi_only: bool = True
    pending: tuple[str, ...] = ("facebook", "maps")
    """Keys of apps with an update."""


@dataclass(frozen=True, slots=True)
class Maps:
    """The map."""

    saved: tuple[str, ...] = ("Old Harbour",)
    """Names of places."""
    miles: bool = False
    avoid_tolls: bool = False
    traffic: bool = True


@dataclass(frozen=True, slots=True)
class Social:
    """A network of people and their posts."""

    liked: tuple[str, ...] = ()
    """Titles of posts."""
    following: tuple[str, ...] = ("Mira Sol",)
    """Names of people."""
    private: bool = False
    show_activity: bool = True
    autoplay: bool = True
    save_pictures: bool = False


@dataclass(frozen=True, slots=True)
class DeviceState:
    """Everything a device remembers. ``get``, ``put`` and ``as_mapping`` of ``tree.py`` work on it."""

    network: Network = Network()
    display: Display = Display()
    sound: Sound = Sound()
    battery: Battery = Battery()
    location: Location = Location()
    security: Security = Security()
    system: System = System()
    accessibility: Accessibility = Accessibility()
    privacy: Privacy = Privacy()
    notifications: Notifications = Notifications()
    apps: tuple[App, ...] = APPS
    launcher: Launcher = Launcher()
    contacts: tuple[Contact, ...] = CONTACTS
    messages: tuple[Thread, ...] = THREADS
    notes: tuple[Note, ...] = NOTES
    files: tuple[File, ...] = FILES
    events: tuple[Event, ...] = EVENTS
    mails: tuple[Mail, ...] = MAILS
    clock: Clock = Clock()
    phone: Phone = Phone()
    media: Media = Media()
    music: Music = Music()
    browser: Browser = Browser()
    calculator: Calculator = Calculator()
    weather: Weather = Weather()
    store: Store = Store()
    maps: Maps = Maps()
    instagram: Social = Social()
    facebook: Social = Social()
