"""Stand-ins for services, served on this machine over simulated devices: ``cuarl local``."""
