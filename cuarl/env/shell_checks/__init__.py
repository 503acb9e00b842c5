"""What a task reads from an Android device's shell: settings, packages, files and dumpsys, for any transport."""
