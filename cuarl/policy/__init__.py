"""Policies: who answers the prompts."""
