"""Adapters: made, put on a model, folded into it, written and read."""
