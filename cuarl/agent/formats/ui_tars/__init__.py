"""UI-TARS: a thought and an action that reads like a call of Python."""
