import random
from dataclasses import replace

import pytest
from PIL import Image, ImageChops

from cuarl.sim.kit import render as render_module
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.icons import APP_GLYPHS, ICONS, icon_mask
from cuarl.sim.kit.paint import PAINTERS
from cuarl.sim.kit.render import Frame, FrameCache, TileCache, draw, drawing, forget, render
from cuarl.sim.kit.scene import Part, Placed, Scene
from cuarl.sim.kit.style import Style
from cuarl.sim.phone import device
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.start import prepare
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import PROFILES
from cuarl.tasks.task import TaskInstance
from cuarl.types import Button, Click, OpenApp, Scroll


def walk(rng, count):
    """Random actions that visit many screens."""
    for _ in range(count):
        kind = rng.random()
        if kind < 0.7:
            yield Click(x=rng.randrange(192), y=rng.randrange(384))
        elif kind < 0.85:
            yield Scroll(direction=rng.choice(("up", "down")), amount=120)
        elif kind < 0.95:
            yield OpenApp(name="Settings")
        else:
            yield Button(name=rng.choice(("back", "recents", "power")))


@pytest.mark.parametrize("seed", range(3))
def test_frames_drawn_from_the_last_one_equal_frames_drawn_from_scratch(seed):
    world, last = prepare(TaskInstance(task_id="t", goal="g"), Look.drawn(seed), PROFILES["small"]), None
    for action in walk(random.Random(seed), 120):
        world = device.step(world, action)
        last = draw(view(world), last)
        assert ImageChops.difference(last.image, render(view(world))).getbbox() is None


def test_same_screen_shown_again_is_the_same_frame():
    world = prepare(TaskInstance(task_id="t", goal="g"), Look(), PROFILES["small"])
    first = draw(view(world))
    there = device.step(world, OpenApp(name="Settings"))
    back = device.step(there, Button(name="home"))
    assert draw(view(back), draw(view(there), first)) is first


def test_picture_of_the_callers_own_can_be_changed_without_harm():
    world = prepare(TaskInstance(task_id="t", goal="g"), Look(), PROFILES["small"])
    mine = render(view(world))
    mine.paste((255, 0, 0), (0, 0, 100, 100))
    assert render(view(world)).tobytes() != mine.tobytes()


def test_frame_cache_forgets_the_oldest_when_it_is_full():
    small = Image.new("RGB", (5, 2))
    cache, frames = FrameCache(limit=100), [Frame(small, n, small, ()) for n in range(3)]
    assert [cache.put(n, frame) for n, frame in enumerate(frames)] == frames
    assert cache.get(0) is None and cache.get(2) is frames[2] and cache.size == 80


def test_frame_that_two_paint_at_the_same_time_is_kept_once():
    small = Image.new("RGB", (5, 2))
    cache, first = FrameCache(limit=100), Frame(small, 1, small, ())
    assert cache.put(1, first) is first and cache.put(1, Frame(small, 1, small, ())) is first and cache.size == 40


@pytest.mark.parametrize("profile", ["small", "tall"])
def test_frames_painted_in_turns_are_those_painted_one_after_the_other(profile):
    looks = [Look(wallpaper=name) for name in ("hills", "city", "hills")]
    alone = [render(view(world)).tobytes() for world in worlds(looks, profile)]
    forget()
    painting = [drawing(view(world)) for world in worlds(looks, profile)]
    frames = [None] * len(painting)
    while None in frames:
        for n, parts in enumerate(painting):
            if frames[n] is None:
                try:
                    next(parts)
                except StopIteration as done:
                    frames[n] = done.value
    assert [frame.image.tobytes() for frame in frames] == alone
    assert frames[0] is frames[2]


def worlds(looks, profile):
    return [prepare(TaskInstance(task_id="t", goal="g"), look, PROFILES[profile]) for look in looks]


def test_tile_cache_drops_whole_styles_when_it_is_full():
    cache, styles = TileCache(limit=25), [Style(accent=i) for i in range(3)]
    for style in styles:
        cache.shelf(style).bitmaps["tile"] = None
        cache.grown(style, 10)
    assert list(cache.shelves) == styles[1:] and cache.size == 20


def test_places_that_are_remembered_count_as_bitmaps_do(monkeypatch):
    cache = TileCache(limit=200_000)
    monkeypatch.setattr(render_module, "_TILES", cache)
    for _ in range(1000):
        part = Part([Placed(w.Bar("page"), (0, 0, 9, 9), (0, 0, 9, 9), (0, 0, 9, 9))])
        draw(Scene((9, 9), Style(), "bar", part.items, parts=(part,)))
        assert cache.size <= cache.limit and sum(len(shelf.parts) for shelf in cache.shelves.values()) <= 400


def test_every_widget_has_a_painter():
    def names(cls):
        return {name for child in cls.__subclasses__() for name in (child.__name__, *names(child))}

    assert names(w.Widget) - {cls.__name__ for cls in PAINTERS} <= {"Control", "Clickable", "HBox", "Grid"}


@pytest.mark.parametrize("name", sorted(ICONS))
def test_icon_covers_a_sensible_part_of_its_square(name):
    mask = icon_mask(name, 24)
    share = sum(mask.histogram()[128:]) / 24**2
    assert 0.04 < share < 0.85


def test_icons_can_be_told_apart():
    assert len({icon_mask(glyph, 24).tobytes() for glyph, _ in APP_GLYPHS.values()}) == len(APP_GLYPHS)


def test_a_change_of_order_alone_is_drawn():
    def drawn(order, last=None):
        boxes = {"page": (0, 0, 60, 60), "raised": (30, 30, 90, 90)}
        items = tuple(Placed(w.Bar(fill), boxes[fill], (0, 0, 99, 99), boxes[fill]) for fill in order)
        return draw(Scene((99, 99), Style(), "bar", items), last)

    first = drawn(("page", "raised"))
    turned = drawn(("raised", "page"), first)
    palette = Style().palette
    assert (first.image.getpixel((45, 45)), turned.image.getpixel((45, 45))) == (palette.raised, palette.page)


@pytest.mark.parametrize("background", ["page", "wallpaper:dunes", "picture:mist"])
def test_a_scene_drawn_in_parts_is_the_scene_drawn_at_once(background):
    world = prepare(
        TaskInstance(task_id="t", goal="g", preset={"ui.app": "settings"}), Look.drawn(3), PROFILES["small"]
    )
    scene = replace(view(world), background=background)
    render_module.forget()
    render_module._wallpaper.cache_clear()
    work, parts = drawing(scene), 1
    with pytest.raises(StopIteration) as done:
        while True:
            next(work)
            parts += 1
    assert parts >= 2
    frame = done.value.value
    assert draw(scene) is frame
    render_module.forget()
    assert ImageChops.difference(frame.image, render(scene)).getbbox() is None
