"""The project's experiments: ``python -m benchmarks.experiments`` regenerates every picture, table and number."""

from __future__ import annotations


def main() -> None:
    """Run all experiments in their quick size."""
    from benchmarks.experiments.__main__ import main as run

    run([])
