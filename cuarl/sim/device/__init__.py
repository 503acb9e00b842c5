"""What simulated phones and desktops share: typed trees, memories of what was worked out, rejected actions."""
