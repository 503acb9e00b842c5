"""The simulated phone and desktop behind the environment seam."""
