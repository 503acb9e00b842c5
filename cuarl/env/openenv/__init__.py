"""OpenEnv: servers of environments, spoken to over a WebSocket, and how cuarl's own are written (docs/guides/openenv.md)."""
