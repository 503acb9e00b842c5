"""Episodes, groups, rewards."""
