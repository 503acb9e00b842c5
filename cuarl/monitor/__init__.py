"""Watching runs."""
