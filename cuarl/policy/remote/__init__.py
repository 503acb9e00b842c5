"""Models behind a server: chat completions, and the Tinker service."""
