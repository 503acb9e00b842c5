"""Anthropic computer use: content blocks that use the tool ``computer``."""
