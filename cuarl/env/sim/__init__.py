"""A simulated phone and desktop, drawn in process."""
