"""The parts of ``python -m benchmarks.price``."""
