"""The music player: songs, liked songs, the player with its controls."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, Open, Put, Replace, Seq, Toggle
from cuarl.sim.phone import forms
from cuarl.sim.phone.records import Song
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import slider, switch, text_field

APP = AppModule("music", home="music/songs")

QUERY = "ui.form.music.query"
TABS = (("Songs", "songs", "music"), ("Liked", "liked", "heart"))
COVERS = ("waves", "night", "hills", "city", "abstract", "dunes", "sunset", "mist")


def _play(index: int) -> Effect:
    return Seq((Put("music.current", index), Put("music.playing", True)))


def _current(ctx: Context) -> Song | None:
    return forms.at(ctx.state.music.songs, str(ctx.state.music.current))


def _screen(ctx: Context, body: tuple[w.Widget, ...], top: tuple[w.Widget, ...] = ()) -> Screen:
    page = ctx.page.partition("/")[2]
    tabs = tuple(w.Tab(label, Replace(f"music/{key}"), selected=key == page, icon=icon) for label, key, icon in TABS)
    gear = w.IconButton("Music settings", Open("music/settings"), icon="gear")
    return Screen("Music", body, (gear,), top=top, bottom=(*_mini_player(ctx), w.HBox(tabs, height=32)))


def _mini_player(ctx: Context) -> tuple[w.Widget, ...]:
    song = _current(ctx)
    if song is None:
        return ()
    card = w.Card("Now playing" if ctx.state.music.playing else "Paused", Open("music/player"), text=song.title)
    return (w.HBox((card, _play_pause(ctx)), (5, 1), pad=0, gap=0),)


def _play_pause(ctx: Context) -> w.IconButton:
    playing = ctx.state.music.playing
    label, icon = ("Pause", "pause") if playing else ("Play", "play")
    return w.IconButton(label, Put("music.playing", not playing), icon=icon)


def _rows(ctx: Context, found: list[tuple[int, Song]]) -> tuple[w.Widget, ...]:
    return tuple(_row(ctx, index, song) for index, song in found)


def _row(ctx: Context, index: int, song: Song) -> w.HBox:
    """A song with its heart at the end."""
    music = ctx.state.music
    heard = index == music.current and music.playing
    row = w.Row(song.title, _play(index), subtitle=song.artist, accent=heard, icon="volume" if heard else "music")
    label = f"{'Unlike' if song.liked else 'Like'} {song.title}"
    heart = w.IconButton(label, Toggle(f"music.songs.{index}.liked"), icon="heart", active=song.liked)
    return w.HBox((row, heart), (5, 1), pad=0, gap=0)


@APP.page("songs")
def songs(ctx: Context) -> Screen:
    """All songs; a tap plays one."""
    query = str(ctx.get(QUERY)).strip().lower()
    found = [(i, s) for i, s in enumerate(ctx.state.music.songs) if query in f"{s.title} {s.artist}".lower()]
    body = _rows(ctx, found) or forms.empty("Nothing found" if query else "No songs")
    return _screen(ctx, body, (text_field(ctx, "Search songs", QUERY, search=True),))


@APP.page("liked")
def liked(ctx: Context) -> Screen:
    """Songs with a heart."""
    found = [(i, s) for i, s in enumerate(ctx.state.music.songs) if s.liked]
    return _screen(ctx, _rows(ctx, found) or forms.empty("No liked songs"))


@APP.page("player")
def player(ctx: Context) -> Screen:
    """The current song with its controls."""
    song, music = _current(ctx), ctx.state.music
    if song is None:
        return Screen("Player", forms.empty("Nothing to play"))
    heart = w.IconButton(
        "Unlike song" if song.liked else "Like song",
        Toggle(f"music.songs.{music.current}.liked"),
        icon="heart",
        active=song.liked,
    )
    height = min(130.0, ctx.world.profile.height - 250)
    cover = w.Picture("Cover", subject=COVERS[music.current % len(COVERS)], height=height)
    label, icon = ("Pause", "pause") if music.playing else ("Play", "play")
    order = playing_order(ctx)
    at, last = order.index(music.current), len(order) - 1
    before, after = _play(order[at - 1]), _play(order[0 if at == last else at + 1])
    controls = (
        _mode(ctx, "Shuffle", "shuffle"),
        w.IconButton("Previous song", before, icon="previous", enabled=at > 0 or music.repeat),
        w.Button(label, Put("music.playing", not music.playing), look="round", icon=icon),
        w.IconButton("Next song", after, icon="next", enabled=at < last or music.repeat),
        _mode(ctx, "Repeat", "repeat"),
    )
    body = (
        w.Space(4),
        w.HBox((cover,), pad=32),
        w.Display(song.title, 17, height=28),
        w.Paragraph(song.artist, 12, align="centre"),
        w.HBox(controls, (1, 1, 1.4, 1, 1), height=46, pad=6),
        slider(ctx, "Volume", "sound.media", icon="volume"),
    )
    return Screen("Player", body, (heart,))


def _mode(ctx: Context, label: str, name: str) -> w.IconButton:
    on = bool(ctx.get(f"music.{name}"))
    icon = {"shuffle": "shuffle", "repeat": "update"}[name]
    return w.IconButton(f"{label} {'off' if on else 'on'}", Toggle(f"music.{name}"), icon=icon, active=on)


def playing_order(ctx: Context) -> tuple[int, ...]:
    """Positions of the songs as they are played: shuffled they follow an order of this device's own."""
    order = tuple(range(len(ctx.state.music.songs)))
    return ctx.shuffled(order, "shuffle") if ctx.state.music.shuffle else order


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Music settings."""
    rows = (
        switch(ctx, "Shuffle", "music.shuffle"),
        switch(ctx, "Repeat", "music.repeat"),
        switch(ctx, "Spatial audio", "sound.spatial_audio"),
        switch(ctx, "Mono audio", "accessibility.mono_audio", "Both ears hear the same"),
        switch(ctx, "Notifications", "apps.music.notifications"),
    )
    return Screen("Music settings", ctx.shuffled(rows))
