"""Agents: from task and screen to one action."""
