"""Plans of tasks: read, checked, and followed by looking for places alone (docs/guides/tasks.md#plans)."""
