"""Sampling on an accelerator: paged keys and values, one captured graph a token, weights fused and merged.

``engine.Engine`` answers jobs; ``engine_for`` says whether a policy has one. The same code runs on a CPU in tests, without
capture and with plain attention.
"""
