"""Web pages in Chromium: MiniWoB++ and any page by its address, acted on by mouse and keyboard alone."""
