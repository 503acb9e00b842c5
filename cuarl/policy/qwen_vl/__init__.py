"""Qwen-VL models, taken apart so that every prompt and picture is encoded once."""
