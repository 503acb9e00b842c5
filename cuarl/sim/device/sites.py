"""The web of the simulated phone: a few invented pages by address, and a search over them."""

from __future__ import annotations

from dataclasses import dataclass

HOME = "about:home"
"""Address of the page that a new tab shows."""
QUERY = ".test?q="
"""What stands between the name of a search engine and the words that it looks for."""


@dataclass(frozen=True, slots=True)
class Link:
    """A line that leads to another address."""

    label: str
    url: str


@dataclass(frozen=True, slots=True)
class Download:
    """A line that saves a file."""

    name: str
    size_kb: int


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that can be saved to the gallery."""

    name: str
    subject: str


@dataclass(frozen=True, slots=True)
class Site:
    """One page: its title, and paragraphs, links, files and pictures from top to bottom."""

    title: str
    blocks: tuple[str | Link | Download | Image, ...]


SITES: dict[str, Site] = {
    "example.com": Site("Example Domain", (
        "This domain is for use in examples. You may use it without asking.",
        Link("More information", "example.com/about"), Download("example.txt", 4), Download("logo.svg", 12),
    )),
    "example.com/about": Site("About examples", (
        "Example pages are where manuals send their readers.", Link("Example home", "example.com"),
    )),
    "gbox.ai": Site("GBox", (
        "Devices for agents: phones, desktops and browsers that start in seconds.",
        Download("logo.svg", 12), Link("Documentation", "gbox.ai/docs"), Link("Pricing", "gbox.ai/pricing"),
    )),
    "gbox.ai/docs": Site("GBox Docs", (
        "Start a box, look at its screen, act on it, and give it back.",
        Download("quickstart.pdf", 310), Link("GBox home", "gbox.ai"),
    )),
    "gbox.ai/pricing": Site("GBox Pricing", (
        "The first ten hours of each month cost nothing.", Link("GBox home", "gbox.ai"),
    )),
    "news.test": Site("Daily News", (
        Link("Harbour bridge opens", "news.test/bridge"), Link("Rain until Friday", "news.test/rain"),
        Link("Library stays open late", "news.test/library"),
        "More stories tomorrow.",
    )),
    "news.test/bridge": Site("Bridge opens", (
        Image("Bridge", "city"), "After four years the new harbour bridge carries its first trams.",
        Link("All news", "news.test"),
    )),
    "news.test/rain": Site("Rain until Friday", (
        "Take an umbrella: the sun comes back at the weekend.", Link("Forecast", "weather.test"),
        Link("All news", "news.test"),
    )),
    "news.test/library": Site("Library hours", (
        "From June on the city library closes at ten in the evening.", Link("All news", "news.test"),
    )),
    "weather.test": Site("Weather", (
        "Berlin: 18 degrees, rain. London: 15 degrees, cloudy. Tokyo: 24 degrees, sunny.",
        Link("Why it rains", "wiki.test/rain"),
    )),
    "wiki.test": Site("Open Wiki", (
        "An encyclopedia that anyone may copy.",
        Link("Android", "wiki.test/android"), Link("Lighthouse", "wiki.test/lighthouse"),
        Link("Rain", "wiki.test/rain"),
    )),
    "wiki.test/android": Site("Android", (
        "Android is an operating system for phones. Apps for it are tested on real and on simulated devices.",
        Link("Testing apps", "devs.test/testing"), Link("Wiki home", "wiki.test"),
    )),
    "wiki.test/lighthouse": Site("Lighthouse", (
        Image("Lighthouse", "waves"), "A lighthouse is a tower with a lamp that guides ships at night.",
        Link("Wiki home", "wiki.test"),
    )),
    "wiki.test/rain": Site("Rain", ("Rain is water that falls from clouds.", Link("Wiki home", "wiki.test"))),
    "devs.test/testing": Site("Testing apps", (
        "How to test an Android app: unit tests first, then tests on a device.",
        Download("checklist.pdf", 96), Link("About Android", "wiki.test/android"),
    )),
    "recipes.test": Site("Good Recipes", (
        Link("Apple cake", "recipes.test/cake"), Link("Lentil soup", "recipes.test/soup"),
        "Cook something new this week.",
    )),
    "recipes.test/cake": Site("Apple cake", (
        "Four apples, flour, butter, sugar, two eggs. Bake for 45 minutes.",
        Download("apple-cake.pdf", 54), Link("All recipes", "recipes.test"),
    )),
    "recipes.test/soup": Site("Lentil soup", (
        "Red lentils, carrots, cumin and a lemon. Cook for 25 minutes.", Link("All recipes", "recipes.test"),
    )),
    "pictures.test": Site("Free Pictures", (
        "Tap a picture to keep it.", Image("Dunes", "dunes"), Image("Night sky", "night"),
        Image("Morning mist", "mist"),
    )),
    "shop.test": Site("Corner Shop", (
        "Tea, paper and lamps. Open from nine to six.", Download("catalogue.pdf", 1480),
        Link("Opening news", "news.test"),
    )),
}  # fmt: skip


def resolve(typed: str, engine: str) -> str:
    """The address that was meant by what was typed: an address, or words for a search engine."""
    text = typed.strip()
    if not text or text.startswith("about:"):
        return text or HOME
    if " " in text or "." not in text:
        return f"{engine.lower()}{QUERY}{text}"
    for prefix in ("https://", "http://", "www."):
        text = text.removeprefix(prefix)
    return text.rstrip("/").lower()


def words_of(url: str) -> str:
    """What a search page was asked for; empty for other addresses."""
    return url.partition(QUERY)[2]


def search(words: str) -> tuple[str, ...]:
    """Addresses of pages that have any of the words, those with most of them first."""
    wanted = words.lower().split()
    scores = {url: sum(word in _text(url, site) for word in wanted) for url, site in SITES.items()}
    return tuple(sorted((u for u in SITES if scores[u]), key=lambda u: -scores[u]))


def title_of(url: str) -> str:
    """What a tab with an address is called."""
    if url == HOME:
        return "New tab"
    return SITES[url].title if url in SITES else words_of(url) or url


def _text(url: str, site: Site) -> str:
    words = [url.replace(".test", ""), site.title]
    for block in site.blocks:
        words.append(block if isinstance(block, str) else block.label if isinstance(block, Link) else block.name)
    return " ".join(words).lower()
