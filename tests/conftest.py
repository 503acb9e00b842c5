"""What holds for all tests."""

from __future__ import annotations

import os

# before anything imports torch, and for the processes that tests start: the models of tests are so small that a second
# thread only takes a processor from the tests that run beside
os.environ.setdefault("OMP_NUM_THREADS", "1")
