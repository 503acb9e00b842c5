"""Evaluation with honest statistics."""
