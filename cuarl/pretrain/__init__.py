"""How the shipped base is made: a tiny model, taught on simulated screens (``cuarl model build``)."""
