"""Episodes on many cores and machines: workers run environments and agents, one collector asks and records for all."""
