"""The final check: what it covers, exactly; what is left for it; and that nothing is answered afterwards."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta, binom

from graphs import Groups
from tests.cases import for_each
from tests.sizes import corners, sizes
from thresholdout import BudgetExhausted, Claims, InputError, SeededNoise, Thresholdout
from thresholdout.errors import InputTypeError, LedgerMismatch
from thresholdout.mechanisms import ClaimsMechanism, ClaimsParameters, FinalCheck, Known
from thresholdout.mechanisms.claims.final import final_interval
from thresholdout.mechanisms.claims.interval import MeanTest, ones

BINARY = Known(binary=True)
N = 400


def half_length(score: float, n: int, level: float = 0.05) -> float:
    k = score * n
    return float(beta.ppf(1 - level / 2, k + 1, n - k) - beta.ppf(level / 2, k, n - k + 1)) / 2


def missed(n: int, risk: float, guess: Callable[[int], float]) -> float:
    """Return the largest probability, over truths, that the interval of a final check misses the truth."""
    limits = [final_interval(MeanTest(n, k, ones(n)), math.log(risk), guess(k)) for k in range(n + 1)]
    ends = sorted({end + shift for low, high in limits for end in (low, high) for shift in (-1e-9, 1e-9)})
    worst = 0.0
    for truth in (end for end in ends if 0.0 < end < 1.0):
        outside = [low > truth or high < truth for low, high in limits]
        worst = max(worst, float(binom.pmf(np.flatnonzero(outside), n, truth).sum()))
    return worst


@pytest.mark.parametrize("n", corners([3, 12, 40], 1))
@for_each("risk", [0.3, 0.05])
def test_every_truth_is_missed_with_at_most_the_risk(n: int, risk: float) -> None:
    found = [missed(n, risk, lambda k, g=guess: g) for guess in (0.02, 0.3, 0.5, 0.77, 0.95)]  # type: ignore[misc]
    assert max(found) <= risk
    assert n < 12 or max(found) > 0.75 * risk


def test_a_guess_that_has_seen_the_records_is_caught() -> None:
    """The twin: both sides then have nearly all of the risk."""
    assert missed(40, 0.3, lambda k: k / 40) > 0.3


def test_different_laws_are_covered_as_well() -> None:
    """All laws of three independent records on a grid, by enumeration."""
    n, risk = 3, 0.4
    for guess in (0.2, 0.6):
        limits = [final_interval(MeanTest(n, k, ones(n)), math.log(risk), guess) for k in range(n + 1)]
        for law in itertools.product(np.linspace(0, 1, 11), repeat=n):
            chance = np.array([1.0])
            for p in law:
                chance = np.convolve(chance, [1 - p, p])
            outside = [low > np.mean(law) + 1e-12 or high < np.mean(law) - 1e-12 for low, high in limits]
            assert chance[outside].sum() <= risk + 1e-12


def worst_session(truth: float, depth: int, reset: bool) -> float:
    """Return the largest probability that something false is said, over all analysts who ask about one attribute.

    Without noise the holdout's count decides everything, so counts are followed, in the sets that look the same.
    """
    n, noise = 6, SeededNoise(0)
    mechanism = ClaimsMechanism(ClaimsParameters(confidence=0.7, noise=0.0, final_check=True), n)
    start = mechanism.start(noise)
    weights = [float(binom.pmf(k, n, truth)) for k in range(n + 1)]
    readings = [mechanism.read(np.arange(n) < k, n, (0.0, 1.0), "values", BINARY) for k in range(n + 1)]

    @lru_cache(None)
    def answered(text: str, train: float, count: int, final: bool) -> tuple[str, tuple[float, float]]:
        ask = mechanism.final if final else mechanism.step
        state = mechanism.restore(text)
        state = replace(state, log_error_budget=start.log_error_budget) if final and reset else state
        after, outcome = ask(state, train, readings[count], noise)
        assert outcome.interval is not None
        return after.to_text(), outcome.interval

    def worst(state: str, counts: Sequence[int], left: int) -> float:
        best = 0.0
        for train in (0.1, 0.5, 0.8):
            total = 0.0
            groups: dict[tuple[str, float, float], list[int]] = {}
            for count in counts:
                after, (low, high) = answered(state, train, count, left == 0)
                if not low <= truth <= high:
                    total += weights[count]
                elif left:
                    groups.setdefault((after, low, high), []).append(count)
            total += sum(worst(after, same, left - 1) for (after, _, _), same in groups.items())
            best = max(best, total)
        return best

    return worst(start.to_text(), range(n + 1), depth)


@sizes("laws", 5, 13)
def test_sessions_with_a_final_check_are_covered_by_enumeration(laws: int) -> None:
    """All analysts with two queries and a final check at 1 - 0.7; the twin gives the final check all of the risk."""
    truths = np.linspace(0.05, 0.95, laws)
    assert 0.15 < max(worst_session(truth, 2, reset=False) for truth in truths) <= 0.3
    assert max(worst_session(truth, 2, reset=True) for truth in truths) > 0.3


def session(n: int, queries: int, seed: int, declared: bool) -> tuple[float, float, int]:
    """Return the final check's width over an exact interval's, the share of the budget before it, and outcomes."""
    rng, noise = np.random.default_rng(seed), SeededNoise(seed)
    mechanism = ClaimsMechanism(ClaimsParameters(queries=queries if declared else None, final_check=True), n)
    state, difficulty, asked = mechanism.start(noise), rng.normal(size=2 * n), []
    start = state.log_error_budget
    for _ in range(queries):
        truth = 0.93 - abs(rng.normal(0, 0.03))
        right = math.sqrt(0.7) * difficulty + math.sqrt(0.3) * rng.normal(size=2 * n) < ndtri(truth)
        reading = mechanism.read(right[:n], n, (0.0, 1.0), "values", BINARY)
        state, outcome = mechanism.step(state, float(right[n:].mean()), reading, noise)
        asked.append((outcome.value, right))
    right = max(asked, key=lambda pair: pair[0])[1]
    reading = mechanism.read(right[:n], n, (0.0, 1.0), "values", BINARY)
    after, outcome = mechanism.final(state, float(right[n:].mean()), reading, noise)
    assert mechanism.refusal(after) is not None
    assert outcome.interval is not None
    ratio = (outcome.interval[1] - outcome.interval[0]) / 2 / half_length(float(right[:n].mean()), n)
    return ratio, math.exp(state.log_error_budget - start), state.outcomes


@pytest.mark.slow
@pytest.mark.parametrize(("queries", "declared"), corners([(20, True), (20, False), (100, True)], 0, 1))
def test_it_is_as_narrow_as_one_look(queries: int, declared: bool) -> None:
    found = [session(1000, queries, seed, declared) for seed in range(100, 112)]
    promised = FinalCheck(ClaimsParameters(queries=queries if declared else None, final_check=True), 1000).share
    assert promised > 0.7
    for _, share, outcomes in found:
        assert outcomes > 0 or share >= promised - 1e-9
    assert np.median([ratio for ratio, _, _ in found]) < 1.0
    assert sum(outcomes > 0 for _, _, outcomes in found) <= 4  # a twentieth is foreseen


class Constant:
    classes_ = np.array([0, 1])

    def __init__(self, label: int) -> None:
        self.label = label

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.full(len(X), self.label)


def labelled(**changes: object) -> Thresholdout:
    y = (np.arange(N + 100) % 10 < 7).astype(int)
    X = np.arange(float(N + 100))[:, None]
    return Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), **changes)  # type: ignore[arg-type]


def test_it_is_the_last_query_and_asked_again_it_is_free(tmp_path: Path) -> None:
    guard = labelled(final_check=True, queries=1, mechanism=Claims(holdout_answers=1), ledger=tmp_path / "guard.db")
    guard.score(Constant(0), cv="training")
    with pytest.raises(BudgetExhausted):
        guard.score(Constant(1), cv="training")
    foreseen = guard.status.final_half_width(0.7)
    answer = guard.final_check(Constant(1), key="last", cv="training")
    assert answer.value == 0.7
    assert answer.half_width == pytest.approx(foreseen, rel=0.05)
    assert answer.half_width < 1.05 * half_length(0.7, N)
    assert guard.status.final_half_width(0.7) == 1.0
    assert guard.status.exhausted == "final_check"
    assert "closed by the final check" in repr(guard)
    again = labelled(final_check=True, queries=1, mechanism=Claims(holdout_answers=1), ledger=tmp_path / "guard.db")
    assert again.final_check(Constant(1), key="last", cv="training").repeated
    with pytest.raises(BudgetExhausted, match="The final check closed this guard after 2 queries"):
        again.final_check(Constant(0), cv="training")
    assert again.score(Constant(0), cv="training").repeated
    with pytest.raises(BudgetExhausted, match="The final check closed this guard after 2 queries"):
        again.score(Constant(1), cv="training")
    with pytest.raises(LedgerMismatch, match="final_check"):
        labelled(queries=1, mechanism=Claims(holdout_answers=1), ledger=tmp_path / "guard.db")


def test_a_key_of_an_earlier_query_is_not_that_of_a_final_check() -> None:
    """The earlier answer, which is wider, would be given again, and queries would go on."""
    guard = labelled(final_check=True, queries=5)
    earlier = guard.score(Constant(1), key="one", cv="training")
    with pytest.raises(InputError, match="key must be the key of this query"):
        guard.final_check(Constant(1), key="one", cv="training")
    last = guard.final_check(Constant(1), key="another key", cv="training")
    assert last.half_width < 0.9 * earlier.half_width
    assert guard.history["name"].tolist() == ["accuracy", "accuracy, final check"]
    with pytest.raises(InputError, match=r"key must be .*; got 'another key', the key of 'accuracy, final check'"):
        guard.score(Constant(1), key="another key", cv="training")


class FailsOnTheHoldout(Constant):
    def __init__(self, error: type[BaseException]) -> None:
        super().__init__(1)
        self.error = error

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        if X[0, 0] < N:
            raise self.error
        return super().predict(X)


@pytest.mark.slow
@for_each(("error", "shown"), [(ValueError, InputError), (KeyboardInterrupt, KeyboardInterrupt)])
@for_each(("limit", "declared"), [("queries", {"queries": 1}), ("budget", {"mechanism": Claims(holdout_answers=1)})])
def test_one_that_fails_is_charged_also_where_declared_numbers_are_used_up(
    error: type[BaseException], shown: type[BaseException], limit: str, declared: dict[str, object], tmp_path: Path
) -> None:
    """*raised* leaves 2^-20 of the risk, by PROOFS.md, B3; for nothing, it would tell any bit of the holdout."""
    guard = labelled(final_check=True, ledger=tmp_path / "guard.db", **declared)
    guard.ask(0.1, np.ones(N), binary=True)
    assert guard.status.exhausted == limit
    before = guard.status.error_budget_left
    assert before is not None
    for failures in (1, 2):
        with pytest.raises(shown, match="charged as an answer from the holdout"):
            guard.final_check(FailsOnTheHoldout(error), cv="training", key=f"{failures}")
        assert guard.status.error_budget_left == pytest.approx(before * 2.0 ** (-20 * failures), rel=1e-9)
        assert list(guard.history["source"][1:]) == ["failed"] * failures
    again = labelled(final_check=True, ledger=tmp_path / "guard.db", **declared)
    answer = again.final_check(Constant(1), cv="training")
    assert answer.half_width > 1.5 * half_length(0.7, N)


def test_any_guard_that_makes_claims_has_one() -> None:
    guard = labelled()
    assert guard.final_check(Constant(1), cv="training").half_width < 1.02 * half_length(0.7, N)
    assert labelled().final_check(Constant(1), "zero_one_loss", cv="training").value == pytest.approx(0.3)
    grouped = labelled(dependence=Groups(np.arange(N) // 2))
    low, high = grouped.final_check(Constant(1), cv="training").interval
    assert low < 0.7 < high


@pytest.mark.statistical
def test_values_that_are_no_counts_are_covered() -> None:
    """250 final checks of means of beta variables: at most 5 % miss, by an exact limit at 1e-9."""
    rng, noise, n, wrong = np.random.default_rng(2), SeededNoise(2), 50, 0
    mechanism = ClaimsMechanism(ClaimsParameters(), n)
    start = mechanism.start(noise)
    for _ in range(250):
        truth = float(rng.choice([0.1, 0.5, 0.9]))
        values = rng.beta(3 * truth, 3 * (1 - truth), n)
        reading = mechanism.read(values, n, (0.0, 1.0), "values", Known(variance=0.03))
        _, outcome = mechanism.final(start, truth + rng.normal(0, 0.03) if truth == 0.5 else truth, reading, noise)
        assert outcome.interval is not None
        wrong += not outcome.interval[0] <= truth <= outcome.interval[1]
    assert beta.ppf(1e-9, max(wrong, 1), 251 - wrong) <= 0.05


def test_the_certificate_says_what_is_left_for_it() -> None:
    certificate = labelled(final_check=True, queries=20).certificate
    assert certificate.final is not None
    share = math.exp(20 * math.log1p(-0.3 / 20 - 2.0**-19))
    assert certificate.final.share == pytest.approx(share, abs=1e-9)
    assert f"{math.floor(100 * share) / 100} of the error budget is left for a final check" in certificate.statement
    width = certificate.final.half_width(0.7)
    assert width == pytest.approx(half_length(0.7, N), rel=0.07)
    assert labelled().certificate.final is None


def test_what_has_no_final_check_is_refused_and_what_the_message_names_works() -> None:
    with pytest.raises(InputError, match="final_check must be False for other mechanisms than 'claims'"):
        labelled(final_check=True, mechanism="ladder", queries=5)
    assert labelled(final_check=True, mechanism="claims", queries=5).certificate.final is not None
    with pytest.raises(InputError, match="'claims' for a final check; got a ladder"):
        labelled(mechanism="ladder", queries=5).final_check(Constant(1), cv="training")
    with pytest.raises(InputTypeError, match="final_check"):
        labelled(final_check="yes")
    with pytest.raises(InputError, match="expected"):
        labelled().status.final_half_width(95)
