"""Promises kept: the strongest attacks against every mechanism.

At confidence 0.9 a session has an answer whose interval is without the truth with probability at most 0.1. `rejection`
says how many broken sessions reject a mechanism, a valid one with probability at most 1e-9.
Mechanisms that an attacker would break are refused, with a message that names what serves; a guard that forgets that
queries depend on answers, and answers from parts of records that are falsely declared to have one law, are rejected.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pandas as pd
import pytest

from graphs import DependenceModel, Independent
from tests.sizes import corners
from tests.statistical.attackers import ATTACKERS, CONFIDENCE, Unaccounted
from tests.statistical.rejection import RATE, Kept, too_many
from thresholdout import Claims, InputError, PlanError, Thresholdout
from thresholdout.ledger import MemoryLedger
from thresholdout.mechanisms import ClaimsParameters
from thresholdout.planning.algorithm_1 import algorithm_1
from thresholdout.service.prediction_guard import PredictionGuard

pytestmark = pytest.mark.statistical

SESSIONS = 40
BETA = 1 - CONFIDENCE


def private(model: DependenceModel, queries: int) -> Any:
    """Plan the sparse vector, whose answers are private, with the largest budget that can be certified."""
    for budget in (min(queries, 8), 4, 2):
        with suppress(PlanError):
            return algorithm_1(model, queries=queries, budget=budget, confidence=CONFIDENCE)
    return algorithm_1(model, queries=queries, budget=1, confidence=CONFIDENCE)


WHOLE: dict[str, Any] = {
    "default": None,
    "claims, any number of queries": ClaimsParameters(),
    "claims without noise": Claims(noise=0.0),
    "algorithm 1": private,
    "ladder": "ladder",
}
REFUSED = {("searched candidates", "ladder")}
SERVED = [(a, m) for a in ATTACKERS for m in WHOLE if (a, m) not in REFUSED]
ABOUT_ANSWERS = ("lucky answers", "harvested failures")


class Opened:
    """Opens guards with one mechanism; what is planned is planned once."""

    def __init__(self, mechanism: Any) -> None:
        self._mechanism = mechanism
        self._planned: dict[tuple[int, int], Any] = {}

    def __call__(
        self,
        holdout: Any,
        *,
        queries: int,
        seed: int,
        train: Any = None,
        dependence: DependenceModel | None = None,
    ) -> Thresholdout:
        """Open one."""
        n = len(holdout[0]) if isinstance(holdout, tuple) else len(holdout)
        use = (n, queries)
        if callable(self._mechanism) and use not in self._planned:
            self._planned[use] = self._mechanism(dependence or Independent(n), queries)
        guard = Thresholdout(
            holdout,
            train=train,
            dependence=dependence,
            queries=queries,
            mechanism=self._planned.get(use, self._mechanism),
            confidence=CONFIDENCE,
            random_state=seed,
        )
        self._planned[use] = guard.parameters
        return guard

    def serve(self, train: pd.DataFrame, holdout: pd.DataFrame, *, queries: int) -> PredictionGuard:
        """Open one that is asked by id; a service takes no declaration."""
        use = (len(holdout), queries)
        if callable(self._mechanism) and use not in self._planned:
            self._planned[use] = self._mechanism(Independent(len(holdout)), queries)
        service = PredictionGuard.create(
            MemoryLedger(),
            train,
            holdout,
            label="y",
            queries=queries,
            mechanism=self._planned.get(use, self._mechanism),
            confidence=CONFIDENCE,
        )
        self._planned[use] = service.guard.parameters
        return service


class Careless:
    """Opens guards that forget that queries depend on answers."""

    def __call__(
        self,
        holdout: Any,
        *,
        queries: int,
        seed: int,
        train: Any = None,
        dependence: DependenceModel | None = None,
    ) -> Unaccounted:
        """Open one."""
        return Unaccounted(len(holdout), queries)

    def serve(self, train: pd.DataFrame, holdout: pd.DataFrame, *, queries: int) -> PredictionGuard:
        """Refuse: it is attacked through its answers only."""
        raise AssertionError("this guard is attacked through its answers only")


def broken(attacker: str, opened: Any) -> Iterator[bool]:
    """Say of one session after the other, all of which get answers, whether it is broken."""
    for seed in count():
        session = ATTACKERS[attacker](opened, seed)
        assert session.answers >= 1
        yield session.broken


@pytest.mark.parametrize(("attacker", "mechanism"), corners(SERVED, *range(0, len(SERVED), 5)))
def test_every_mechanism_survives(attacker: str, mechanism: str) -> None:
    assert not too_many(broken(attacker, Opened(WHOLE[mechanism])), SESSIONS, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("attacker", ABOUT_ANSWERS)
def test_claims_survive_many_sessions(attacker: str) -> None:
    """Those of each mechanism, and of all three: four counts, which share the error rate."""
    many, mechanisms = 130, ["default", "claims, any number of queries", "claims without noise"]
    found = [Kept(broken(attacker, Opened(WHOLE[mechanism]))) for mechanism in mechanisms]
    for one in found:
        assert not too_many((one[k] for k in range(many)), many, BETA, RATE / 4)
    assert not too_many((one[k] for k in range(many) for one in found), 3 * many, BETA, RATE / 4)


def test_a_ladder_is_refused_by_searches() -> None:
    for attacker, mechanism in REFUSED:
        with pytest.raises(InputError, match=r"guard must be .*; got a ladder"):
            ATTACKERS[attacker](Opened(WHOLE[mechanism]), 0)


@pytest.mark.parametrize("attacker", ABOUT_ANSWERS)
def test_a_guard_that_forgets_adaptivity_is_rejected(attacker: str) -> None:
    assert too_many(broken(attacker, Careless()), SESSIONS, BETA)
