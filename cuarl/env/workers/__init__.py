"""Processes that run somebody else's blocking environment, so that one which hangs or crashes can be ended."""
