"""Environments: the devices that agents act on."""
