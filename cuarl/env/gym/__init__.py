"""A gym server's executions as environments, acted in by cuarl itself or by gbox-mini-agent (docs/guides/gym.md)."""
