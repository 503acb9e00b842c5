"""BrowserGym: its action strings in cuarl's actions and back."""
