"""Frozen linear layers whose weights are kept in four bits (QLoRA, arXiv:2305.14314)."""
