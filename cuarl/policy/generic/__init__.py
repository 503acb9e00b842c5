"""Any model that transformers can run, by its own forward pass."""
