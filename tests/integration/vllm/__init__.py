"""The real vLLM, its CPU build in an environment of its own (``make vllm``)."""
