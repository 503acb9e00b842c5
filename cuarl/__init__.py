"""Train computer-use agents with reinforcement learning."""

__version__ = "0.1.0"
