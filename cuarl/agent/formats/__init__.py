"""One module per model family: prompt text, parser, coordinates."""
