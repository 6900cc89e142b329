"""All recorded cases, by name."""

from tests.recorded.cases import (
    accounting,
    certificates,
    graph_models,
    guards,
    learning,
    limits,
    minibatches,
    plans,
    searches,
)
from tests.recorded.cases.registry import Case, Cases

__all__ = ["CASES", "Case"]

CASES = Cases()
for part in (graph_models, certificates, plans, accounting, minibatches, learning, limits, guards, searches):
    for name, function in part.CASES.items():
        CASES.add(name, function)
