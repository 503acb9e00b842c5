"""Simulated devices as a library: pure worlds, steps and pictures, without the environment seam."""
