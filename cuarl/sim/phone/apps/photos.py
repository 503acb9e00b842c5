"""The gallery: photos, albums, favourites, and what can be done with one picture."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Dialog, Dismiss, Effect, Open, Option, Put, Replace, Seq, Show, Toast, Toggle
from cuarl.sim.phone import forms
from cuarl.sim.phone.records import Photo
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import confirmation, link, switch, text_field, value_row

APP = AppModule("photos", home="photos/grid")

TABS = (("Photos", "grid", "photo"), ("Albums", "albums", "folder"), ("Favourites", "favourites", "heart"))
ALBUM = "ui.form.photo.album"


def _screen(ctx: Context, body: tuple[w.Widget, ...]) -> Screen:
    page = ctx.page.partition("/")[2]
    tabs = tuple(w.Tab(label, Replace(f"photos/{key}"), selected=key == page, icon=icon) for label, key, icon in TABS)
    gear = w.IconButton("Gallery settings", Open("photos/settings"), icon="gear")
    return Screen("Gallery", body, (gear,), bottom=(w.HBox(tabs, height=32),))


def _grid(ctx: Context, found: list[tuple[int, Photo]], nothing: str) -> tuple[w.Widget, ...]:
    """Pictures, the newest first."""
    cells = tuple(_cell(ctx, i, photo) for i, photo in reversed(found))
    return (w.Grid(cells, 3, 58, gap=3, pad=4),) if cells else forms.empty(nothing)


def _cell(ctx: Context, index: int, photo: Photo) -> w.Picture:
    path = f"media.photos.{index}.favourite"
    options = (
        Option("Remove favourite" if photo.favourite else "Add favourite", Put(path, not photo.favourite)),
        Option("Delete", Show(_deletion(ctx, index))),
    )
    menu = Show(Dialog(photo.name, options=options, buttons=(Option("Cancel", Dismiss()),)))
    return w.Picture(photo.name, Open(f"photos/photo:{index}"), menu, subject=photo.subject, height=58)


@APP.page("grid")
def grid(ctx: Context) -> Screen:
    """All pictures."""
    return _screen(ctx, _grid(ctx, list(enumerate(ctx.state.media.photos)), "No photos yet"))


@APP.page("favourites")
def favourites(ctx: Context) -> Screen:
    """Pictures with a heart."""
    found = [(i, p) for i, p in enumerate(ctx.state.media.photos) if p.favourite]
    return _screen(ctx, _grid(ctx, found, "No favourites yet"))


@APP.page("albums")
def albums(ctx: Context) -> Screen:
    """Albums with their last picture."""
    rows = tuple(
        w.Row(name, Open(f"photos/album:{name}"), icon="folder", value=str(count))
        for name, count in _albums(ctx).items()
    )
    return _screen(ctx, rows or forms.empty("No albums yet"))


def _albums(ctx: Context) -> dict[str, int]:
    """Number of pictures of each album, by name."""
    names = [p.album for p in ctx.state.media.photos]
    return {name: names.count(name) for name in sorted(set(names))}


@APP.page("album")
def album(ctx: Context) -> Screen:
    """Pictures of one album."""
    found = [(i, p) for i, p in enumerate(ctx.state.media.photos) if p.album == ctx.arg]
    return Screen(ctx.arg, _grid(ctx, found, "This album is empty"))


@APP.page("photo")
def photo(ctx: Context) -> Screen:
    """One picture."""
    found = forms.at(ctx.state.media.photos, ctx.arg)
    if found is None:
        return forms.gone("Photo")
    path = f"media.photos.{ctx.arg}"
    heart = w.IconButton(
        "Remove favourite" if found.favourite else "Add favourite",
        Toggle(f"{path}.favourite"),
        icon="heart",
        active=found.favourite,
    )
    delete = w.IconButton("Delete photo", Show(_deletion(ctx, int(ctx.arg), leave=True)), icon="trash")
    wallpaper = Seq((Put("display.wallpaper", wallpaper_of(found)), Toast("Wallpaper set")))
    height = min(200.0, ctx.world.profile.height - 200)
    body = (
        w.HBox((w.Picture("Picture", subject=found.subject, height=height),), pad=6),
        w.Space(4),
        value_row("Album", found.album, Open(f"photos/move:{ctx.arg}"), "folder"),
        w.Row("Set as wallpaper", wallpaper, icon="wallpaper"),
        value_row("Kind", found.kind.capitalize(), icon="info"),
    )
    return Screen(found.name, body, (heart, delete))


def wallpaper_of(photo: Photo) -> str:
    """The name of the wallpaper that shows a picture."""
    return photo.subject.partition(":")[0].capitalize()


def _deletion(ctx: Context, index: int, *, leave: bool = False) -> Dialog:
    photos = ctx.state.media.photos
    effect: Effect = Put("media.photos", forms.without(photos, index))
    if leave:
        effect = forms.finish(effect, toast="Photo deleted")
    return confirmation("Delete photo?", f"{photos[index].name} will be lost.", effect, "Delete")


@APP.page("move")
def move(ctx: Context) -> Screen:
    """Albums to put a picture into, or a new one."""
    found = forms.at(ctx.state.media.photos, ctx.arg)
    if found is None:
        return forms.gone("Move to album")
    path = f"media.photos.{ctx.arg}.album"
    rows = tuple(
        w.Row(
            name,
            forms.finish(Put(path, name), toast=f"Moved to {name}"),
            icon="folder",
            trailing="radio",
            checked=name == found.album,
        )
        for name in _albums(ctx)
    )
    typed = str(ctx.get(ALBUM)).strip()
    made = forms.finish(Put(path, typed), Put(ALBUM, ""), toast=f"Moved to {typed}")
    create = w.Button("Create", made, look="filled", enabled=bool(typed))
    return Screen("Move to album", (*rows, w.Divider(), text_field(ctx, "New album", ALBUM), w.HBox((create,), pad=50)))


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Gallery settings."""
    rows = (
        switch(ctx, "Back up photos", "system.backup", "When charging"),
        switch(ctx, "Free up space", "system.storage_manager", "Delete what is backed up"),
        switch(ctx, "Notifications", "apps.photos.notifications"),
        link(ctx, "Permissions", "settings/app_permissions:photos", "Camera, location"),
    )
    return Screen("Gallery settings", ctx.shuffled(rows))
