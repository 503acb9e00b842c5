"""Batches, advantages, losses, the learner and its loop."""
