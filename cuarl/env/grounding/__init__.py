"""Pictures with one thing to point at in each: how well a policy finds what it is told of."""
