"""A climb of texts whose values are known: the longer a text, the more records it has right."""

from pathlib import Path
from typing import Any

import numpy as np

from thresholdout.integrations import GuardedCandidates, guard_of_examples

EXAMPLES: dict[str, list[int]] = {"train": list(range(1000)), "holdout": list(range(1000, 3000))}
SECRET = "the label of record 1007 is 1"


def right(text: str, part: str) -> list[bool]:
    """Return 1 for a tenth of the records with each letter, up to all."""
    return [k % 10 < len(text) for k in EXAMPLES[part]]


class Evaluator:
    """An evaluator that counts its calls, and fails for texts that say so."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def __call__(self, candidate: Any, part: str) -> Any:
        self.calls.append((candidate, part))
        if f"raise on {part}" in candidate:
            raise RuntimeError(SECRET)
        if "random" in candidate:
            return np.random.default_rng(len(self.calls)).random(len(EXAMPLES[part])) < 0.95
        return right(candidate, part)


def made(evaluate: Any = right, ledger: Path | None = None, name: str = "climb", **settings: Any) -> GuardedCandidates:
    """Return a climb over the examples; what begins with a letter of `Thresholdout` goes there."""
    declared = {key: settings.pop(key) for key in ("queries", "mechanism") if key in settings}
    guard = guard_of_examples(**EXAMPLES, sampling="iid", ledger=ledger, **declared)
    return GuardedCandidates(guard, evaluate, name=name, **settings)
