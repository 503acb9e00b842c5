"""Runs of other trainers, which report them to the monitor in the format of the seeds' training monitor."""
