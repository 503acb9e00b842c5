"""Other people's Gymnasium environments as cuarl's (docs/gymnasium.md)."""
