"""Runs put together: from a configuration to training, rollouts, evaluations and published checkpoints."""
