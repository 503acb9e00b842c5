"""Security, privacy, location."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.phone.registry import Builder, Context, Screen
from cuarl.sim.phone.rows import link, radio, switch


def security(ctx: Context) -> Screen:
    """The category's own page."""
    rows = ctx.shuffled(
        (
            link(ctx, "Screen lock", "settings/screen_lock", ctx.state.security.screen_lock, "lock"),
            link(ctx, "Face & fingerprint", "settings/biometrics", "Unlock methods", "person"),
            switch(ctx, "Find My Device", "security.find_device", icon="location"),
            switch(ctx, "Scan apps", "security.scan_apps", icon="shield"),
            link(ctx, "Advanced security", "settings/advanced_security", "Pinning, sources", "gear"),
        )
    )
    return Screen("Security", rows)


def screen_lock(ctx: Context) -> Screen:
    """Kinds of screen lock."""
    kinds = ("None", "Swipe", "Pattern", "PIN", "Password")
    rows = tuple(radio(ctx, k, "security.screen_lock", k) for k in ctx.shuffled(kinds))
    return Screen("Screen lock", (*rows, w.Divider(), switch(ctx, "Lock instantly", "security.lock_instantly")))


def biometrics(ctx: Context) -> Screen:
    """Face and fingerprint."""
    return Screen(
        "Face & fingerprint",
        ctx.shuffled(
            (switch(ctx, "Fingerprint", "security.fingerprint"), switch(ctx, "Face Unlock", "security.face_unlock"))
        ),
    )


def advanced_security(ctx: Context) -> Screen:
    """Advanced security."""
    return Screen(
        "Advanced security",
        ctx.shuffled(
            (
                switch(ctx, "App pinning", "security.app_pinning", "Keep one app in view"),
                switch(ctx, "Show passwords", "security.show_passwords", "Briefly while typing"),
                switch(ctx, "Lockdown option", "security.lockdown"),
                switch(ctx, "Unknown sources", "security.unknown_sources", confirm="Apps from elsewhere may harm."),
                switch(ctx, "Encrypt backups", "security.encrypt_backups"),
            )
        ),
    )


def privacy(ctx: Context) -> Screen:
    """The category's own page."""
    rows = ctx.shuffled(
        (
            switch(ctx, "Camera access", "privacy.camera_access", "For apps", "camera"),
            switch(ctx, "Microphone access", "privacy.mic_access", "For apps", "mic"),
            switch(ctx, "Clipboard alerts", "privacy.clipboard_alerts", icon="copy"),
            switch(ctx, "Lock screen content", "privacy.lock_screen_content", icon="lock"),
            link(ctx, "Ads", "settings/ads", "Personalisation", "store"),
            link(ctx, "Usage & diagnostics", "settings/diagnostics", "Shared data", "info"),
            switch(ctx, "Safety check", "privacy.safety_check", icon="shield"),
        )
    )
    return Screen("Privacy", rows)


def ads(ctx: Context) -> Screen:
    """Advertising."""
    return Screen(
        "Ads", (switch(ctx, "Personalised ads", "privacy.personalised_ads"), w.Paragraph("Ads stay; they match less."))
    )


def diagnostics(ctx: Context) -> Screen:
    """Usage and diagnostics."""
    return Screen(
        "Usage & diagnostics",
        ctx.shuffled(
            (
                switch(ctx, "Share usage data", "privacy.usage_data"),
                switch(ctx, "Send crash reports", "system.send_diagnostics"),
            )
        ),
    )


def location(ctx: Context) -> Screen:
    """The category's own page."""
    return Screen(
        "Location",
        (
            switch(ctx, "Use location", "location.enabled", icon="location"),
            w.Header("Services"),
            *ctx.shuffled(
                (
                    link(ctx, "Location scanning", "settings/scanning", "Wi-Fi, Bluetooth", "wifi"),
                    switch(ctx, "Location accuracy", "location.accuracy", icon="zoom"),
                    switch(ctx, "Emergency location", "location.emergency", icon="heart"),
                    switch(ctx, "Location history", "location.history", icon="clock"),
                )
            ),
        ),
    )


def scanning(ctx: Context) -> Screen:
    """Scanning."""
    return Screen(
        "Location scanning",
        ctx.shuffled(
            (
                switch(ctx, "Wi-Fi scan", "location.wifi_scanning", icon="wifi"),
                switch(ctx, "Bluetooth scan", "location.bluetooth_scanning", icon="bluetooth"),
            )
        ),
    )


PAGES: dict[str, Builder] = {
    "security": security, "screen_lock": screen_lock, "biometrics": biometrics, "advanced_security": advanced_security,
    "privacy": privacy, "ads": ads, "diagnostics": diagnostics, "location": location, "scanning": scanning,
}  # fmt: skip
