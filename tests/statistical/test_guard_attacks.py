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
from thresholdout import InputError

pytestmark = pytest.mark.statistical

RUNS = 40
LIMIT = int(binom.isf(1e-9, RUNS, 1 - CONFIDENCE))
CHAIN = [name for name in models() if name.startswith("chain")]
GROUPS = [name for name in models() if name.startswith("groups")]


REFUSED = [("splitting", GROUPS[0]), ("splitting", CHAIN[0])]  # its parts are of independent records, or of many groups
SERVED = [(mechanism, kind) for mechanism in MECHANISMS for kind in models() if (mechanism, kind) not in REFUSED]


@pytest.mark.parametrize(("mechanism", "kind"), SERVED, ids=str)
def test_half_widths_hold(mechanism: Any, kind: str) -> None:
    found = runs(kind, mechanism, RUNS)
    assert sum(run.broken for run in found) <= LIMIT
    assert max(run.answers for run in found) >= 1


@pytest.mark.parametrize(("mechanism", "kind"), REFUSED, ids=str)
def test_mechanisms_that_do_not_serve_are_refused(mechanism: Any, kind: str) -> None:
    with pytest.raises(InputError, match=r"mechanism|queries"):
        runs(kind, mechanism, 1)


def test_groups_taken_for_independent_records_are_rejected() -> None:
    found = runs(GROUPS[0], "gaussian", RUNS, assumed=Independent(RECORDS))
    assert sum(run.broken for run in found) > LIMIT
