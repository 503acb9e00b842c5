"""An episode as a GIF: what each of its frames shows, and for how long."""

from io import BytesIO

import pytest
from PIL import Image, ImageChops, ImageStat

from cuarl.monitor.film import LAST_MS, TURN_MS, gif
from cuarl.monitor.frames import Drawn, draw
from tests.unit.monitor.web.made import PICTURE, episode


def frames_of(data):
    with Image.open(BytesIO(data)) as film:
        shown = []
        for i in range(film.n_frames):
            film.seek(i)
            shown.append((film.convert("RGB"), film.info["duration"]))
        return shown, film.info["loop"]


def test_it_shows_every_turn_with_its_action_and_then_the_end():
    drawn = list(draw(episode("base", 1, 0, 0, "wifi_on"), lambda digest: PICTURE))
    shown, loop = frames_of(gif(drawn))
    assert ([ms for _, ms in shown], loop) == ([TURN_MS] * 4 + [LAST_MS], 0)
    for one, (picture, _) in zip(drawn, shown, strict=True):
        part = picture.crop((0, 0, *one.picture.size))
        differs = ImageStat.Stat(ImageChops.difference(part, one.picture)).mean
        assert max(differs) < 8, one.name  # 255 colours a frame


def test_frames_of_different_sizes_are_all_whole():
    sizes = [(40, 60), (80, 30)]
    shown, _ = frames_of(gif([Drawn("x", "", "", Image.new("RGB", size, "red")) for size in sizes]))
    for (picture, _), (width, height) in zip(shown, sizes, strict=True):
        assert picture.size == (80, 60)
        assert picture.getpixel((width - 1, height - 1)) == (255, 0, 0)
        assert picture.getpixel((79, 59)) != (255, 0, 0)


def test_turns_that_look_the_same_are_all_there():
    still = Drawn("x", "", "", Image.new("RGB", (40, 60), "red"))
    shown, _ = frames_of(gif([still] * 3))
    assert sum(ms for _, ms in shown) == 2 * TURN_MS + LAST_MS


def test_nothing_can_not_be_drawn():
    with pytest.raises(ValueError, match="without screens"):
        gif([])
