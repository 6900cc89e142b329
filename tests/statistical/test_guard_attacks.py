"""The majority attack on whole guards: every mechanism, on independent, grouped and chained records.

At confidence 0.9 a run is broken with probability at most 0.1. More than ``binom.isf(1e-9, runs, 0.1)`` broken runs
reject a guard, a valid one with probability at most 1e-9. Guards that take groups for independent records must be
rejected.
"""

from typing import Any

import pytest
from scipy.stats import binom

from benchmarks.attacks import CONFIDENCE, MECHANISMS, RECORDS, models, runs
from graphs import Independent
from tests.sizes import sizes

pytestmark = pytest.mark.statistical

FEW, RUNS = 16, 40
CHAIN = [name for name in models() if name.startswith("chain")]
GROUPS = [name for name in models() if name.startswith("groups")]


def limit(count: int) -> int:
    return int(binom.isf(1e-9, count, 1 - CONFIDENCE))


SERVED = [(mechanism, kind) for mechanism in MECHANISMS for kind in models()]


@pytest.mark.parametrize(
    ("mechanism", "kind", "count"),
    [
        pytest.param(mechanism, kind, count, marks=[] if count == FEW else [pytest.mark.slow])
        for mechanism, kind in SERVED
        for count in ((FEW, RUNS) if kind in GROUPS else (RUNS,))
    ],
    ids=str,
)
def test_half_widths_hold(mechanism: Any, kind: str, count: int) -> None:
    found = runs(kind, mechanism, count)
    assert sum(run.broken for run in found) <= limit(count)
    assert max(run.answers for run in found) >= 1


@sizes("count", FEW, RUNS)
def test_groups_taken_for_independent_records_are_rejected(count: int) -> None:
    found = runs(GROUPS[0], "ladder", count, assumed=Independent(RECORDS))
    assert sum(run.broken for run in found) > limit(count)
