"""Sound & vibration, and notifications."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Open, Toggle
from cuarl.sim.phone.registry import Builder, Context, Screen
from cuarl.sim.phone.rows import choice, link, radio, slider, switch


def sound(ctx: Context) -> Screen:
    """The category's own page."""
    rows = ctx.shuffled(
        (
            link(ctx, "Volume", "settings/volume", "Media, ring, alarm", "volume"),
            link(ctx, "Do Not Disturb", "settings/dnd", "On" if ctx.state.sound.dnd else "Off", "dnd"),
            link(ctx, "Vibration", "settings/vibration", "Calls, touch", "vibrate"),
            link(ctx, "System sounds", "settings/system_sounds", "Dial pad, lock, touch", "music"),
            link(ctx, "Ringtone", "settings/ringtone", ctx.state.sound.ringtone, "bell"),
            choice(
                ctx,
                "Alarm sound",
                "sound.alarm_sound",
                {v: v for v in ("Sunrise", "Bells", "Beacon", "Rooster")},
                "alarm",
            ),
            switch(ctx, "Live Caption", "sound.live_caption", icon="captions"),
            switch(ctx, "Spatial audio", "sound.spatial_audio", icon="headset"),
        )
    )
    return Screen("Sound & vibration", rows)


def volume(ctx: Context) -> Screen:
    """The four volumes."""
    return Screen(
        "Volume",
        ctx.shuffled(
            (
                slider(ctx, "Media volume", "sound.media", icon="music"),
                slider(ctx, "Ring volume", "sound.ring", icon="phone"),
                slider(ctx, "Notification volume", "sound.notification", icon="bell"),
                slider(ctx, "Alarm volume", "sound.alarm", icon="alarm"),
            )
        ),
    )


def dnd(ctx: Context) -> Screen:
    """Do Not Disturb."""
    return Screen(
        "Do Not Disturb",
        (
            switch(ctx, "Use Do Not Disturb", "sound.dnd", icon="dnd"),
            w.Header("What can interrupt"),
            *ctx.shuffled(
                (
                    switch(ctx, "Repeat callers", "sound.dnd_repeat_callers", icon="phone"),
                    switch(ctx, "Alarms", "sound.dnd_alarms", icon="alarm"),
                )
            ),
        ),
    )


def vibration(ctx: Context) -> Screen:
    """Vibration."""
    return Screen(
        "Vibration",
        ctx.shuffled(
            (
                switch(ctx, "Vibrate for calls", "sound.vibrate_on_ring", icon="vibrate"),
                switch(ctx, "Touch vibration", "sound.touch_vibration", icon="gesture"),
            )
        ),
    )


def system_sounds(ctx: Context) -> Screen:
    """Small sounds of the system."""
    return Screen(
        "System sounds",
        ctx.shuffled(
            (
                switch(ctx, "Dial pad tones", "sound.dial_pad_tones"),
                switch(ctx, "Screen locking sound", "sound.lock_sounds"),
                switch(ctx, "Charging sounds", "sound.charging_sounds"),
                switch(ctx, "Touch sounds", "sound.touch_sounds"),
                switch(ctx, "Screenshot sound", "sound.screenshot_sound"),
            )
        ),
    )


def ringtone(ctx: Context) -> Screen:
    """Ringtones."""
    names = ("Chimes", "Harbour", "Pulse", "Meadow", "Silent")
    return Screen("Ringtone", tuple(radio(ctx, n, "sound.ringtone", n) for n in ctx.shuffled(names)))


def notifications(ctx: Context) -> Screen:
    """The category's own page."""
    rows = ctx.shuffled(
        (
            link(ctx, "App notifications", "settings/app_notifications", "Choose apps", "apps"),
            switch(ctx, "Notification history", "notifications.history", icon="clock"),
            switch(ctx, "Bubbles", "notifications.bubbles", icon="message"),
            switch(ctx, "On lock screen", "notifications.on_lock_screen", icon="lock"),
            switch(ctx, "Sensitive content", "notifications.sensitive", icon="eye"),
            switch(ctx, "Allow snoozing", "notifications.snoozing", icon="timeout"),
            switch(ctx, "Notification dots", "notifications.badges", icon="bell"),
            switch(ctx, "Blink light", "notifications.blink_light", icon="brightness"),
            link(ctx, "Do Not Disturb", "settings/dnd", "", "dnd"),
        )
    )
    return Screen("Notifications", rows)


def app_notifications(ctx: Context) -> Screen:
    """A switch for each app."""
    apps = sorted((a for a in ctx.state.apps if a.installed and a.icon), key=lambda a: a.name)
    rows = [
        w.Row(
            a.name,
            Open(f"settings/app:{a.key}"),
            tint=a.key,
            trailing="split",
            switch=w.Switch(a.name, _flip(a.key), checked=a.notifications),
        )
        for a in apps
    ]
    return Screen("App notifications", tuple(rows))


def _flip(key: str) -> Toggle:
    return Toggle(f"apps.{key}.notifications")


PAGES: dict[str, Builder] = {
    "sound": sound, "volume": volume, "dnd": dnd, "vibration": vibration, "system_sounds": system_sounds,
    "ringtone": ringtone, "notifications": notifications, "app_notifications": app_notifications,
}  # fmt: skip
