"""Instagram: pictures from people whom one follows."""

from __future__ import annotations

from cuarl.sim.phone.registry import AppModule
from cuarl.sim.phone.social import Network, Post

APP = AppModule("instagram", home="instagram/feed")

POSTS = (
    Post("Dunes", "Mira Sol", "Two hours from the road.", 128, "dunes"),
    Post("Old town", "Jon Vale", "Lights on.", 86, "city"),
    Post("Evening", "Mira Sol", "The sea is quiet today.", 240, "sunset"),
    Post("First flower", "Lena Fox", "It made it through the winter.", 57, "flower"),
    Post("Waves", "Tom Reed", "Cold, but worth it.", 131, "waves"),
)
PEOPLE = {
    "Mira Sol": "Travels light",
    "Jon Vale": "Streets at night",
    "Lena Fox": "Garden and balcony",
    "Tom Reed": "Always near water",
    "Ada Meyer": "Ships and trains",
}

Network(APP, "Instagram", POSTS, PEOPLE).install()
