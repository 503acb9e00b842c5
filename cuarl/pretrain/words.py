"""Text that nobody has seen: words of random syllables and of lists of our own, put together as names, titles, files.

Which words are for training and which are held out is decided by a digest of the word alone, so that no list has to be
kept: one word in sixteen is never shown in training.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

PLAIN = (
    "amber anchor apple arrow autumn badge barley basket beacon berry blanket bottle branch breeze brick bridge bronze "
    "bucket button cabin candle canvas carpet cattle cedar cherry circle clay clever cliff cloud clover cobalt coffee "
    "copper coral corner cotton cradle crystal curtain daisy dancer delta desert diamond dinner dolphin dragon drawer "
    "eagle early east echo elbow ember engine evening fabric falcon family farmer feather fiddle field finger flame "
    "flour flower forest fossil fountain fox friend frost galaxy garden garlic ginger glacier glass globe golden "
    "grape gravel green hammer handle harbour harvest hazel heather helmet hollow honey horizon hunter island ivory "
    "jacket jasmine jelly jungle kettle kitchen kite ladder lantern laurel lemon letter linen lizard lobster lucky "
    "magnet maple marble market meadow melon metal middle mirror monkey morning mountain mustard narrow needle noble "
    "north nutmeg ocean olive onion orange orchard otter oyster paddle paper parrot pebble pencil pepper piano pillow "
    "planet plum pocket poem potato powder prairie pumpkin purple quarry quick quiet rabbit raven ribbon river robin "
    "rocket round rubber saddle saffron salmon sandal scarlet season shadow shell shelter silent silver simple sister "
    "sky slate sparrow spider spoon spring square stable station steam stone story summer sunset swift table teacher "
    "temple thunder ticket timber tomato tower travel treasure tulip tunnel turtle umbrella uncle valley velvet "
    "village violet violin wagon walnut water weather whisper willow window winter wonder wood yellow yogurt zebra"
).split()
"""Common nouns and adjectives, written down for this purpose."""

ONSETS = "b bl br c ch cl cr d dr f fl fr g gl gr h j k l m n p pl pr qu r s sc sh sk sl sp st t th tr v w y z".split()
VOWELS = "a e i o u ai ea ee ie oa oo ou y".split()
CODAS = ["", "", "", *"b ck d f g k l ll lt m mp n nd ng nt p r rd rk rn s sh sk ss st t th x z".split()]
ENDINGS = ".txt .pdf .jpg .png .mp3 .csv .zip .doc .html .md".split()
HOSTS = ".com .net .org .test .io .info".split()


def held_out(word: str) -> bool:
    """Whether a word is kept for the exam: never shown in training, in whatever case."""
    return zlib.crc32(word.casefold().encode()) % 16 == 0


def word(rng: random.Random, *, unseen: bool = False) -> str:
    """A lower-case word; ``unseen`` gives one of those held out."""
    while True:
        kind = rng.random()
        if kind < 0.4:
            found = rng.choice(PLAIN)
        elif kind < 0.5:
            found = rng.choice(PLAIN)[: rng.randint(2, 5)] + rng.choice(PLAIN)[-rng.randint(2, 5) :]
        else:
            count = rng.choice((1, 2, 2, 2, 3, 3))
            found = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(count)) + rng.choice(CODAS)
        if held_out(found) == unseen:
            return found


def words(rng: random.Random, low: int, high: int, *, unseen: bool = False) -> str:
    """Some words with a space between them."""
    return " ".join(word(rng, unseen=unseen) for _ in range(rng.randint(low, high)))


def title(rng: random.Random, low: int = 1, high: int = 3, *, unseen: bool = False) -> str:
    """As headings are written: a capital first, or on every word."""
    text = words(rng, low, high, unseen=unseen)
    return text.title() if rng.random() < 0.35 else text[0].upper() + text[1:]


def name(rng: random.Random, *, unseen: bool = False) -> str:
    """A person's."""
    return words(rng, 2, 2, unseen=unseen).title()


def sentence(rng: random.Random, low: int = 2, high: int = 6, *, unseen: bool = False) -> str:
    """A capital first, at times a number in it, and an end."""
    parts = words(rng, low, high, unseen=unseen).split(" ")
    if rng.random() < 0.3:
        parts.insert(rng.randint(1, len(parts)), number(rng))
    text = " ".join(parts)
    return text[0].upper() + text[1:] + rng.choice((".", ".", "", "?", "!"))


def number(rng: random.Random) -> str:
    """Digits as they occur on screens: counts, prices, times, telephone numbers, shares."""
    return rng.choice(_NUMBERS)(rng)


_NUMBERS: tuple[Callable[[random.Random], str], ...] = (
    lambda r: str(r.randint(0, 99)),
    lambda r: str(r.randint(100, 9999)),
    lambda r: f"{r.randint(0, 23):02}:{r.randint(0, 59):02}",
    lambda r: f"{r.randint(0, 99)}%",
    lambda r: f"{r.randint(0, 999)}.{r.randint(0, 99):02}",
    phone := lambda r: f"{r.choice(('555-', '0', '+', '555 '))}{r.randint(100, 9999999)}",
    lambda r: f"{r.randint(1, 31)}/{r.randint(1, 12)}/{r.randint(1990, 2040)}",
    lambda r: f"{r.randint(1, 900)} {r.choice(('MB', 'GB', 'kB', 'km', 'min', 'h'))}",
)


def address(rng: random.Random, *, unseen: bool = False) -> str:
    """An e-mail address or the name of a site."""
    end = word(rng, unseen=unseen) + rng.choice(HOSTS)
    return f"{word(rng, unseen=unseen)}@{end}" if rng.random() < 0.5 else end


def file(rng: random.Random, *, unseen: bool = False) -> str:
    """A file's name."""
    joined = rng.choice(("-", "_", " ", "")).join(words(rng, 1, 2, unseen=unseen).split(" "))
    return joined + (str(rng.randint(1, 99)) if rng.random() < 0.2 else "") + rng.choice(ENDINGS)


def anything(rng: random.Random, *, unseen: bool = False) -> str:
    """Any of these; codes of random letters now and then."""
    kind = rng.random()
    if kind < 0.4:
        return title(rng, unseen=unseen)
    if kind < 0.55:
        return name(rng, unseen=unseen)
    if kind < 0.65:
        return words(rng, 1, 3, unseen=unseen)
    if kind < 0.75:
        return sentence(rng, unseen=unseen)
    if kind < 0.83:
        return address(rng, unseen=unseen) if rng.random() < 0.5 else file(rng, unseen=unseen)
    if kind < 0.93:
        return number(rng)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+#!?&/:()"
    return "".join(rng.choice(letters) for _ in range(rng.randint(3, 9)))
