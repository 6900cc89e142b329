"""A judge that draws, and candidates that all have one truth: whatever is kept breaks the climb.

`rejection` says how many broken climbs reject a gate; a valid one is rejected with probability at most 1e-9. The twin
draws several times for a candidate and takes the best draw.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.sizes import sizes
from tests.statistical.rejection import too_many
from thresholdout import Thresholdout
from thresholdout.integrations import GuardedCandidates
from thresholdout.integrations.candidates import Part

pytestmark = pytest.mark.statistical

BETA = 0.25
N = 200


def broken(rng: np.random.Generator, draws: int) -> bool:
    """Propose candidates that look better on the training part, and are as good as the first one."""
    records = np.arange(2.0 * N)
    labels = np.zeros(N)
    guard = Thresholdout(
        (records[:N, None], labels), train=(records[N:, None], labels), confidence=1.0 - BETA, sampling="iid"
    )

    def evaluate(candidate: str, part: Part) -> NDArray[np.bool_]:
        if part == "train":
            return np.asarray(np.arange(N) % 10 < 4 + 2 * len(candidate))
        found = [rng.random(N) < 0.5 for _ in range(draws if candidate else 1)]
        return max(found, key=np.count_nonzero)

    climb = GuardedCandidates(guard, evaluate)
    climb.propose("")
    return any(climb.propose(candidate) for candidate in ("a", "aa", "aaa"))


@sizes("climbs", 60, 1000)
def test_candidates_of_one_truth_are_seldom_kept(climbs: int) -> None:
    rng = np.random.default_rng(0)
    assert not too_many((broken(rng, 1) for _ in range(climbs)), climbs, BETA)


@sizes("climbs", 60, 1000)
def test_the_best_of_several_draws_is_kept_too_often(climbs: int) -> None:
    rng = np.random.default_rng(0)
    assert too_many((broken(rng, 100) for _ in range(climbs)), climbs, BETA)
