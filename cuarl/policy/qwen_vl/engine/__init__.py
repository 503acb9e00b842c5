"""Sampling on an accelerator: paged keys and values, one captured graph a token, weights fused and merged.

``engine.Engine`` answers jobs; ``fits.fits`` says whether a policy can have one. The same code runs on a CPU in tests,
without capture and with plain attention.
"""
