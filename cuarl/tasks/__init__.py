"""Tasks: values, sources, filters, checks."""
