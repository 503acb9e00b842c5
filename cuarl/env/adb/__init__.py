"""Android phones and emulators through adb (docs/guides/android.md)."""
