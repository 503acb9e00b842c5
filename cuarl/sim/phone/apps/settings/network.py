"""Network & internet, and connected devices."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import (
    Append,
    Back,
    Copy,
    Dialog,
    Dismiss,
    Input,
    Open,
    Option,
    Put,
    Remove,
    Seq,
    Show,
    Toast,
)
from cuarl.sim.phone.registry import Builder, Context, Screen
from cuarl.sim.phone.rows import choice, confirmation, link, switch, value_row


def network(ctx: Context) -> Screen:
    """The category's own page."""
    net = ctx.state.network
    wifi = net.wifi.connected if net.wifi.enabled else "Off"
    return Screen(
        "Network & internet",
        ctx.shuffled(
            (
                link(ctx, "Wi-Fi", "settings/wifi", wifi, "wifi"),
                link(ctx, "Mobile network", "settings/mobile", "Data, roaming", "network"),
                switch(ctx, "Airplane mode", "network.airplane_mode", icon="airplane"),
                link(ctx, "Hotspot & tethering", "settings/hotspot", "Share this connection", "hotspot"),
                link(ctx, "Data Saver", "settings/data_saver", "Use less data", "data"),
                link(ctx, "VPN", "settings/vpn", "None", "vpn"),
                choice(
                    ctx, "Private DNS", "network.private_dns", {v: v for v in ("Off", "Automatic", "Custom")}, "lock"
                ),
            )
        ),
    )


def wifi(ctx: Context) -> Screen:
    """Wi-Fi: the switch, networks in range, links."""
    net = ctx.state.network.wifi
    body: list[w.Widget] = [switch(ctx, "Use Wi-Fi", "network.wifi.enabled")]
    if net.enabled:
        body.append(w.Header("Networks"))
        names = [n for n in net.available if n != net.connected]
        if net.connected:
            body.append(
                w.Row(net.connected, Open(f"settings/wifi_network:{net.connected}"), subtitle="Connected", icon="wifi")
            )
        for name in names:
            body.append(_network_row(name, name in net.saved))
    body += [
        w.Divider(),
        link(ctx, "Saved networks", "settings/wifi_saved", f"{len(net.saved)} networks", "key"),
        link(ctx, "Wi-Fi preferences", "settings/wifi_preferences", "", "gear"),
    ]
    return Screen("Wi-Fi", tuple(body))


def _network_row(name: str, saved: bool) -> w.Row:
    join = Seq((Put("network.wifi.connected", name), Append("network.wifi.saved", name)))
    if saved:
        return w.Row(name, Put("network.wifi.connected", name), subtitle="Saved", icon="wifi")
    ask = Dialog(
        f"Join {name}?", "This network is open.", buttons=(Option("Cancel", Dismiss()), Option("Connect", join))
    )
    return w.Row(name, Show(ask), icon="wifi")


def wifi_saved(ctx: Context) -> Screen:
    """Known networks."""
    rows = [w.Row(n, Open(f"settings/wifi_network:{n}"), icon="wifi") for n in ctx.state.network.wifi.saved]
    return Screen("Saved networks", tuple(rows) or (w.Paragraph("No saved networks", align="centre"),))


def wifi_network(ctx: Context) -> Screen:
    """One network: forget, connect, metered."""
    name, net = ctx.arg, ctx.state.network.wifi
    state = "Connected" if net.connected == name else "Saved" if name in net.saved else "Forgotten"
    forget = Remove("network.wifi.saved", name)
    buttons = w.HBox(
        (
            w.Button("Forget", forget, icon="trash", enabled=name in net.saved),
            w.Button(
                "Connect",
                Put("network.wifi.connected", name),
                icon="wifi",
                enabled=net.connected != name and net.enabled,
            ),
        ),
        height=34,
    )
    return Screen(
        "Network details",
        (
            w.Row(name, subtitle=state, icon="wifi"),
            buttons,
            switch(ctx, "Treat as metered", "network.wifi.metered"),
            switch(ctx, "Random MAC", "network.wifi.random_mac"),
            value_row("Security", "WPA3"),
            value_row("Frequency", "5 GHz"),
        ),
    )


def wifi_preferences(ctx: Context) -> Screen:
    """Wi-Fi preferences."""
    return Screen(
        "Wi-Fi preferences",
        ctx.shuffled(
            (
                switch(ctx, "Wi-Fi scanning", "network.wifi.scan_always", "Even when Wi-Fi is off"),
                switch(ctx, "Notify for open networks", "network.wifi.notify_open"),
            )
        ),
    )


def mobile(ctx: Context) -> Screen:
    """The SIM's settings."""
    return Screen(
        "Mobile network",
        ctx.shuffled(
            (
                switch(ctx, "Mobile data", "network.mobile_data", "Access data over mobile"),
                switch(ctx, "Roaming", "network.roaming", confirm="Roaming may be expensive."),
                switch(ctx, "Wi-Fi calling", "network.wifi_calling"),
                choice(ctx, "Preferred network", "network.preferred", {v: v for v in ("5G", "4G", "3G")}),
                switch(ctx, "Data warning", "network.data_warning"),
            )
        ),
    )


def hotspot(ctx: Context) -> Screen:
    """Hotspot and tethering."""
    name = "network.hotspot_name"
    rename = Dialog(
        "Hotspot name",
        inputs=(Input("Name", "ui.form.hotspot.name"),),
        buttons=(Option("Cancel", Dismiss()), Option("Save", Copy("ui.form.hotspot.name", name))),
    )
    edit = Seq((Put("ui.form.hotspot.name", ctx.get(name)), Show(rename)))
    return Screen(
        "Hotspot & tethering",
        (
            switch(ctx, "Wi-Fi hotspot", "network.hotspot", icon="hotspot"),
            w.Row("Hotspot name", edit, subtitle=ctx.get(name), icon="edit"),
            switch(ctx, "USB tethering", "network.usb_tethering", icon="usb"),
        ),
    )


def vpn(ctx: Context) -> Screen:
    """VPN."""
    return Screen(
        "VPN", (switch(ctx, "Work VPN", "network.vpn", "Office network", "vpn"), w.Paragraph("One profile is stored."))
    )


def data_saver(ctx: Context) -> Screen:
    """Data Saver."""
    note = "Data Saver keeps apps from using mobile data in the background."
    return Screen("Data Saver", (switch(ctx, "Use Data Saver", "network.data_saver"), w.Paragraph(note)))


def devices(ctx: Context) -> Screen:
    """Connected devices."""
    state = "On" if ctx.state.network.bluetooth.enabled else "Off"
    return Screen(
        "Connected devices",
        ctx.shuffled(
            (
                link(ctx, "Bluetooth", "settings/bluetooth", state, "bluetooth"),
                link(ctx, "NFC", "settings/nfc", "Contactless payments", "nfc"),
                switch(ctx, "Cast", "network.cast", "Show this screen on a TV", "cast"),
                switch(ctx, "Printing", "network.printing", icon="print"),
                switch(ctx, "Nearby Share", "network.nearby_share", icon="share"),
            )
        ),
    )


def bluetooth(ctx: Context) -> Screen:
    """Bluetooth: switch, devices, name."""
    blue = ctx.state.network.bluetooth
    body: list[w.Widget] = [switch(ctx, "Use Bluetooth", "network.bluetooth.enabled")]
    if blue.enabled:
        body.append(w.Header("Paired devices"))
        body += [w.Row(d, Open(f"settings/bluetooth_device:{d}"), icon="headset") for d in blue.paired]
        body.append(w.Header("Available"))
        for d in blue.available:
            if d not in blue.paired:
                pair = confirmation(f"Pair with {d}?", "", Append("network.bluetooth.paired", d), "Pair")
                body.append(w.Row(d, Show(pair), icon="bluetooth"))
    rename = Dialog(
        "Device name",
        inputs=(Input("Name", "ui.form.bluetooth.name"),),
        buttons=(
            Option("Cancel", Dismiss()),
            Option("Rename", Copy("ui.form.bluetooth.name", "network.bluetooth.name")),
        ),
    )
    edit = Seq((Put("ui.form.bluetooth.name", blue.name), Show(rename)))
    body += [w.Divider(), w.Row("Device name", edit, subtitle=blue.name, icon="edit")]
    body.append(switch(ctx, "Share contacts", "network.bluetooth.share_contacts", icon="people"))
    return Screen("Bluetooth", tuple(body))


def bluetooth_device(ctx: Context) -> Screen:
    """One paired device."""
    forget = Seq((Remove("network.bluetooth.paired", ctx.arg), Back(), Toast("Forgotten")))
    ask = confirmation(f"Forget {ctx.arg}?", "You must pair again to use it.", forget, "Forget")
    return Screen(
        "Device details",
        (w.Row(ctx.arg, subtitle="Paired", icon="headset"), w.Button("Forget", Show(ask), icon="trash")),
    )


def nfc(ctx: Context) -> Screen:
    """NFC."""
    return Screen(
        "NFC",
        (
            switch(ctx, "Use NFC", "network.nfc", icon="nfc"),
            switch(ctx, "Require unlock", "network.contactless_locked", "Unlock before paying", "lock"),
        ),
    )


PAGES: dict[str, Builder] = {
    "network": network, "wifi": wifi, "wifi_saved": wifi_saved, "wifi_network": wifi_network,
    "wifi_preferences": wifi_preferences, "mobile": mobile, "hotspot": hotspot, "vpn": vpn, "data_saver": data_saver,
    "devices": devices, "bluetooth": bluetooth, "bluetooth_device": bluetooth_device, "nfc": nfc,
}  # fmt: skip
