"""A real Linux desktop on a display of its own: Xvfb, openbox, and whatever applications a task starts.

Every episode has its own display, home folder, D-Bus, settings and clipboard. Actions are mouse and keyboard events
(XTEST), screens are what the display shows, and validators read files, windows and settings from outside of it.
"""
