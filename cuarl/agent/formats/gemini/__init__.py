"""Gemini computer use: function calls of its predefined tools."""
