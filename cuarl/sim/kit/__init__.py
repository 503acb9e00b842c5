"""The widget kit: what a page is made of, how it is laid out, and how it is drawn. Knows nothing of a device."""
