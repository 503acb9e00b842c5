"""Qwen3-VL: calls of ``mobile_use`` and ``computer_use``."""
