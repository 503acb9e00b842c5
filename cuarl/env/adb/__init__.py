"""Android phones and emulators through adb (docs/android.md)."""
