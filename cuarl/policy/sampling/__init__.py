"""Samplers over a policy in this process."""
