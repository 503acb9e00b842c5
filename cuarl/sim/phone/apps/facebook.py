"""Facebook: news from friends."""

from __future__ import annotations

from cuarl.sim.phone.registry import AppModule
from cuarl.sim.phone.social import Network, Post

APP = AppModule("facebook", home="facebook/feed")

POSTS = (
    Post("Flea market", "Ben Ortiz", "On Sunday from nine, at the old station. Bring a bag.", 14),
    Post("New bikes", "Mira Sol", "We finally bought them. First trip tomorrow!", 63),
    Post("Summer party", "Grace Park", "Saturday in the garden, everyone brings something.", 41, "hills"),
    Post("Lost cat", "Dan Okafor", "Grey, answers to Pixel. Last seen in Mill Road.", 22),
    Post("Night walk", "Grace Park", "So many stars up there.", 35, "night"),
)
PEOPLE = {
    "Ben Ortiz": "Repairs radios",
    "Mira Sol": "Travels light",
    "Grace Park": "Teacher",
    "Dan Okafor": "Trains and cats",
    "Finn Baker": "Bakes, of course",
}

Network(APP, "Facebook", POSTS, PEOPLE).install()
