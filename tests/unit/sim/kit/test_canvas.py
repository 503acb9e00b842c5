"""What is drawn fast is what Pillow draws slowly: colours through masks, and lines of text."""

import random

import pytest
from PIL import Image

from cuarl.sim.kit import letters
from cuarl.sim.kit.canvas import Canvas
from cuarl.sim.kit.cover import blend, filled, mask_of, overlay, tinted
from cuarl.sim.kit.icons import ICONS
from cuarl.sim.kit.style import Style

INKS = [(0, 0, 0), (255, 255, 255), (12, 130, 251), (98, 97, 3)]
EVERY_COVER = Image.frombytes("L", (16, 16), bytes(range(256)))


def pixels(core):
    return core.convert("RGBA", 0).getpixel((0, 0)), Image.Image()._new(core).tobytes()


@pytest.mark.parametrize("ground", [(255, 255, 255), (20, 21, 24), (7, 180, 90)])
@pytest.mark.parametrize("ink", INKS)
def test_looking_a_colour_up_is_blending_it(ink, ground):
    blended = filled("RGB", (16, 16), ground)
    blend(blended, ink, EVERY_COVER.im, (0, 0, 16, 16))
    assert pixels(tinted(mask_of(EVERY_COVER), ink, ground)) == pixels(blended)


@pytest.mark.parametrize("ground", [(0, 0, 0, 0), (20, 21, 24, 255)])
@pytest.mark.parametrize("ink", INKS)
def test_looking_a_colour_up_is_laying_it_over(ink, ground):
    laid = filled("RGBA", (16, 16), ground)
    overlay(laid, ink, mask_of(EVERY_COVER), 0, 0)
    assert pixels(tinted(mask_of(EVERY_COVER), ink, ground)) == pixels(laid)


class Slow(Canvas):
    """Looks nothing up."""

    __slots__ = ()

    def _ground(self, box):
        return None


def scribble(canvas, rng):
    """Shapes, icons and text on, beside and over one another, some of them beyond the edge."""
    for _ in range(12):
        x, y = rng.uniform(-12, 90), rng.uniform(-12, 50)
        width, height, radius, ink = rng.uniform(1, 60), rng.uniform(1, 40), rng.uniform(0, 12), rng.choice(INKS)
        match rng.randrange(6):
            case 0:
                canvas.rounded(x, y, width, height, min(radius, width / 2, height / 2), ink)
            case 1:
                canvas.outline(x, y, width, height, min(radius, width / 2, height / 2), ink, rng.uniform(0.5, 3))
            case 2:
                canvas.circle(x, y, radius + 1, ink)
            case 3:
                canvas.rect(x, y, width, height, ink)
            case 4:
                canvas.icon(rng.choice(sorted(ICONS)), x, y, rng.uniform(6, 24), ink)
            case 5:
                canvas.text(
                    x, y, rng.choice(("Wi-Fi", "On", "Über 7°")), rng.uniform(7, 16), ink, bold=rng.random() < 0.5
                )
    return pixels(canvas.core)


@pytest.mark.parametrize("fill", [(250, 251, 252), None])
@pytest.mark.parametrize("seed", range(40))
def test_a_canvas_that_looks_up_what_it_can_shows_what_one_shows_that_blends_everything(seed, fill):
    style, size = Style(scale=random.Random(seed).choice((1.0, 1.875, 2.5))), (170, 110)
    fast, slow = (scribble(kind(style, size, fill), random.Random(seed)) for kind in (Canvas, Slow))
    assert fast == slow


def as_pillow_draws_it(text, px):
    (ascent, descent), whole = letters.font(px).getmetrics(), letters.font(px)
    box = Image.new("L", (max(1, int(whole.getlength(text)) + 3), ascent + descent), 0)
    core, (left, top) = whole.getmask2(text, mode="L", anchor="ls")
    width, height = core.size
    if width and height:
        x, y = max(0, round(left)), ascent + round(top)
        box.im.paste(core, (x, y, x + width, y + height))
    return box


@pytest.mark.parametrize("px", [6, 11, 19, 24, 61])
def test_lines_put_together_from_letters_are_those_that_pillow_draws(px):
    rng, simple = random.Random(px), sorted(letters.SIMPLE)
    texts = [first + "".join(first + second for second in simple) for first in simple]
    texts += ["".join(rng.choices(simple, k=rng.randrange(1, 20))) for _ in range(40)]
    for text in (*texts, *simple, "", "jj", "Größe …", "é", "أب"):
        assert letters.line_width(text, px) == letters.font(px).getlength(text)
        assert letters.line(text, px).tobytes() == as_pillow_draws_it(text, px).tobytes()
