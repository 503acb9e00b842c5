"""A simulated phone: its state, its apps, what a finger does, and how tasks are solved on it."""
