"""The contest with TRL: the same episodes and the same update on both sides, timed (``python -m benchmarks.peers``)."""
