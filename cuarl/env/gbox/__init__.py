"""GBox cloud boxes (Android and Linux) as environments."""
