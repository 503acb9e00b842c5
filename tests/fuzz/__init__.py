"""Servers asked by hypothesis for what no client should ask: ``python -m tests.fuzz 3000 [SERVER …]``."""
