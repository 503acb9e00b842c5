"""Draws tasks: what the phone offers, put into goals, each with a device of its own."""
