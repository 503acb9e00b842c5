"""An OpenAI-compatible server over any policy, which records what it samples token by token."""
