"""Targets described in words, for a second model to point at."""
