"""All recorded cases, by name."""

from tests.recorded.cases import (
    accounting,
    certificates,
    graph_models,
    guard_kinds,
    guards,
    learning,
    limits,
    minibatches,
    plans,
    posteriors,
    searches,
)
from tests.recorded.cases.registry import Case, Cases

__all__ = ["CASES", "Case"]

CASES = Cases()
for part in (
    graph_models,
    certificates,
    plans,
    accounting,
    minibatches,
    learning,
    limits,
    guards,
    searches,
    posteriors,
    guard_kinds,
):
    for name, function in part.CASES.items():
        CASES.add(name, function)
