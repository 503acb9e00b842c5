"""The camera: a viewfinder, the shutter, modes, flash, and the camera on the other side."""

from __future__ import annotations

from dataclasses import dataclass

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.canvas import Canvas
from cuarl.sim.kit.effects import Append, Effect, Open, Put, Seq, Toast, Toggle
from cuarl.sim.kit.paint import PAINTERS, paint_picture
from cuarl.sim.phone.records import Photo
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import choice, link, switch

APP = AppModule("camera", home="camera/main")

MODES = ("Photo", "Video", "Portrait", "Night")
SCENES = ("waves", "dunes", "city", "hills", "flower", "sunset")
"""What is in front of the camera, one after the other as pictures are taken."""
TAKEN = 156.0
"""Height in units of everything but the viewfinder."""


@dataclass(frozen=True, slots=True)
class Viewfinder(w.Picture):
    """What the camera sees, with the lines that help to hold it straight."""

    lines: bool = False


def paint_viewfinder(c: Canvas, finder: Viewfinder) -> None:
    """Draw the viewfinder."""
    paint_picture(c, finder)
    if finder.lines:
        for i in (1, 2):
            c.rect(0, c.height * i / 3, c.width, 0.7, (235, 235, 235))
            c.rect(c.width * i / 3, 0, 0.7, c.height, (235, 235, 235))


PAINTERS[Viewfinder] = paint_viewfinder


@APP.page("main")
def main(ctx: Context) -> Screen:
    """The viewfinder with its controls."""
    media = ctx.state.media
    flash = w.IconButton(
        "Flash off" if media.flash else "Flash on", Toggle("media.flash"), icon="flashlight", active=media.flash
    )
    actions = (flash, w.IconButton("Camera settings", Open("camera/settings"), icon="gear"))
    modes = tuple(
        w.Tab(mode, Put("media.mode", mode), selected=mode == media.mode, enabled=not media.recording) for mode in MODES
    )
    allowed = ctx.state.privacy.camera_access and bool(ctx.get("apps.camera.camera"))
    body = _viewfinder(ctx) if allowed else _refused(ctx)
    bottom = (w.HBox(modes, height=30, pad=4, gap=0), _controls(ctx, allowed), w.Space(6))
    return Screen("Camera", body, actions, bottom=bottom)


def _viewfinder(ctx: Context) -> tuple[w.Widget, ...]:
    media = ctx.state.media
    badge = "REC" if media.recording else "" if media.self_timer == "Off" else f"Timer {media.self_timer}"
    height = ctx.world.profile.height - TAKEN
    return (Viewfinder("Viewfinder", subject=_scene(ctx), height=height, badge=badge, lines=media.grid_lines),)


def _refused(ctx: Context) -> tuple[w.Widget, ...]:
    page = "settings/app_permissions:camera" if ctx.state.privacy.camera_access else "settings/privacy"
    return (
        w.Space(50),
        w.Paragraph("The camera may not be used.", 12, align="centre"),
        w.HBox((w.Button("Allow in Settings", Open(page), look="filled"),), pad=36),
    )


def _scene(ctx: Context) -> str:
    media = ctx.state.media
    subject = "portrait" if media.front_camera else SCENES[len(media.photos) % len(SCENES)]
    return "night" if media.mode == "Night" and not media.front_camera else subject


def _controls(ctx: Context, allowed: bool) -> w.HBox:
    """Gallery, shutter, the other camera."""
    media = ctx.state.media
    last = Open(f"photos/photo:{len(media.photos) - 1}") if media.photos else Open("photos/grid")
    label = "Take photo" if media.mode != "Video" else "Stop recording" if media.recording else "Record video"
    shutter = w.Button(
        label, _shutter(ctx), look="round", icon="pause" if media.recording else "camera", enabled=allowed
    )
    turn = w.IconButton("Switch camera", Toggle("media.front_camera"), icon="rotate", enabled=not media.recording)
    return w.HBox((w.IconButton("Last photo", last, icon="photo"), shutter, turn), height=44, pad=16)


def _shutter(ctx: Context) -> Effect:
    """Take a picture; in video mode start and stop, which keeps the clip."""
    media = ctx.state.media
    if media.mode == "Video" and not media.recording:
        return Put("media.recording", True)
    taken = {p.name for p in media.photos}
    start = "VID" if media.mode == "Video" else "IMG"
    name = next(n for i in range(1, len(taken) + 2) if (n := f"{start}_{i:04d}") not in taken)
    save = Append("media.photos", Photo(name, _scene(ctx)))
    if media.mode == "Video":
        return Seq((Put("media.recording", False), save, Toast("Video saved")))
    return Seq((save, Toast("Photo saved")))


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Camera settings."""
    rows = (
        switch(ctx, "Grid lines", "media.grid_lines", "Hold it straight"),
        switch(ctx, "Flash", "media.flash"),
        choice(ctx, "Self-timer", "media.self_timer", {v: v for v in ("Off", "3 s", "10 s")}),
        switch(ctx, "Jump to camera", "system.jump_to_camera", "Press power twice"),
        link(ctx, "Permissions", "settings/app_permissions:camera", "Camera, location"),
    )
    return Screen("Camera settings", ctx.shuffled(rows))
