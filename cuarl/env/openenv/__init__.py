"""OpenEnv: servers of environments, spoken to over a WebSocket, and how cuarl's own are written.

See docs/guides/openenv.md.
"""
