"""Other people's Gymnasium environments as cuarl's (docs/guides/gymnasium.md)."""
