"""vLLM beside the engine in process: one model, the same episodes (``python -m benchmarks.against_vllm``)."""
