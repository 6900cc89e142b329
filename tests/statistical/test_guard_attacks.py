"""The majority attack on whole guards: every mechanism, on independent, grouped and chained records.

At confidence 0.9 a run is broken with probability at most 0.1. `rejection` says how many broken runs reject a guard, a
valid one with probability at most 1e-9. Guards that take groups for independent records must be rejected.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.attacks import CONFIDENCE, MECHANISMS, RECORDS, models, runs
from graphs import DependenceModel, Independent
from tests.sizes import sizes
from tests.statistical.rejection import too_many

pytestmark = pytest.mark.statistical

FEW, RUNS = 16, 40
CHAIN = [name for name in models() if name.startswith("chain")]
GROUPS = [name for name in models() if name.startswith("groups")]


def broken(kind: str, mechanism: Any, count: int, assumed: DependenceModel | None = None) -> bool:
    """Return whether more runs are broken than those of a valid guard; all have answers."""

    def one_by_one() -> Iterator[bool]:
        for run in runs(kind, mechanism, count, assumed=assumed):
            assert run.answers >= 1
            yield run.broken

    return too_many(one_by_one(), count, 1 - CONFIDENCE)


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
    assert not broken(kind, mechanism, count)


@sizes("count", FEW, RUNS)
def test_groups_taken_for_independent_records_are_rejected(count: int) -> None:
    assert broken(GROUPS[0], "ladder", count, assumed=Independent(RECORDS))
