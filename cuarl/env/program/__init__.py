"""Agent programs of one's own: each runs for an episode, asks a model that is served to it, and tells the verdict."""
