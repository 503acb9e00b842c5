"""Qwen2.5-VL: the calls of Qwen3-VL, with points in pixels of the picture that the model saw."""
