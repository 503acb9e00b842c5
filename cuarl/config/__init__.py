"""Experiment configuration: schema, files, overrides, presets."""
