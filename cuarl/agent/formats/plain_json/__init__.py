"""Plain JSON for any model: one object, relative coordinates."""
