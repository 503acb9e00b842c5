"""Contracts of other frameworks, spoken without depending on them."""
