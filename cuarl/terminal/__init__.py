"""What a terminal or a pipe is shown: tables, progress, the log file, episodes and tasks in words."""
