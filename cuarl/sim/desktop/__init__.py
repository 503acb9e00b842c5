"""The simulated Linux desktop: windows, a panel, and apps over a typed tree of files and settings.

It is built from the same kit, effects and renderer as the phone, and keeps its rules: a frozen ``DesktopWorld``, a pure
``step(world, action)``, a pure ``view(world)``, and elements that can be read off the view.
"""
