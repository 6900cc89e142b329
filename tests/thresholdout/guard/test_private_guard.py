"""Private claims: the exact law of what is told, its epsilon, the program that has this law, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from graphs import Groups
from graphs.numerics.rounding import shown_above
from tests.cases import for_each
from tests.oracles.noise_doubles import LaplaceOnly
from tests.oracles.private_claims import SmallClaims
from tests.sizes import sizes
from thresholdout import BudgetExhausted, Claims, InputError, SeededNoise, Thresholdout
from thresholdout.errors import LedgerMismatch
from thresholdout.mechanisms import ClaimsMechanism, ClaimsParameters, Known
from thresholdout.mechanisms.claims.interval import UNITS, MeanTest
from thresholdout.mechanisms.claims.query_claims import private_noise
from thresholdout.model_selection import GuardedSearchCV

BINARY = Known(binary=True)
OUTCOMES = ("confirmed", "above", "below")


class TestLaw:
    """On integer scales; ``moved`` is how far one record moves a value, and a test has twice the noise of a phase."""

    @staticmethod
    def claim(phase: float, moved: int, outcomes: int, open_phase: bool) -> float:
        return outcomes * 2 * moved / phase + open_phase * moved / phase

    @sizes("transcripts", 75, 400)
    @for_each("phase", [2.0, 5.0])
    def test_no_transcript_exceeds_the_claim(self, phase: float, transcripts: int) -> None:
        rng, moved, worst = np.random.default_rng(7), 3, 0.0
        law = SmallClaims(phase, 2 * phase)
        for _ in range(transcripts):
            length = int(rng.integers(1, 10))
            values = rng.integers(0, 30, length)
            nearby = values + rng.choice([-moved, 0, moved], length)
            claims = [
                (int(value) - int(a), int(value) + int(b))
                for value, a, b in zip(
                    rng.integers(0, 30, length), rng.integers(0, 9, length), rng.integers(0, 9, length), strict=True
                )
            ]
            outcomes = rng.choice(OUTCOMES, length, p=[0.7, 0.15, 0.15]).tolist()
            ratio = law.log_transcript(values.tolist(), claims, outcomes) - law.log_transcript(
                nearby.tolist(), claims, outcomes
            )
            others = sum(outcome != "confirmed" for outcome in outcomes)
            worst = max(worst, abs(ratio) / self.claim(phase, moved, others, outcomes[-1] == "confirmed"))
        assert 0.3 < worst <= 1 + 1e-9

    def test_the_claim_is_nearly_attained_so_half_the_noise_is_caught(self) -> None:
        moved, phase, many = 3, 5.0, 10**12
        found = []
        for scale in (phase, phase / 2):
            law = SmallClaims(scale, 2 * scale)
            hi = int(6 * phase)
            found.append(law.log_phase(many, -hi, -hi + moved) - law.log_phase(many, -hi + moved, -hi))
        claim = self.claim(phase, moved, 1, False)
        assert 0.99 * claim <= found[0] <= claim * (1 + 1e-9)
        assert found[1] > 1.9 * claim

    def test_reused_test_noise_is_caught(self) -> None:
        """One gamma for all tests: after a claim that passed with a larger gap, a smaller one cannot fail."""
        law = SmallClaims(3.0, 6.0)
        assert law.log_reused([0, 1]) > -20.0
        assert law.log_reused([1, 0]) == -math.inf
        fresh = [law.log_transcript(values, [(-99, 0)] * 2, ["confirmed", "above"]) for values in ([0, 1], [1, 0])]
        assert abs(fresh[0] - fresh[1]) <= self.claim(3.0, 1, 1, False)


class Recording(LaplaceOnly):
    """Noise with a written record of the scales that it was asked for."""

    for_release = False

    def __init__(self, seed: int) -> None:
        self._noise = SeededNoise(seed)
        self.drawn: list[tuple[Fraction, int]] = []

    def laplace(self, scale: Fraction) -> int:
        self.drawn.append((Fraction(scale), self._noise.laplace(scale)))
        return self.drawn[-1][1]

    def uniform(self, bits: int, size: int) -> NDArray[np.uint64]:
        return self._noise.uniform(bits, size)


@for_each("binary", [True, False])
def test_the_program_has_the_law_of_the_formula(binary: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each outcome is the formula's, with one delta for a phase, fresh noise in every half, and the declared scales."""
    tested: list[tuple[int, int, int, int, tuple[int, int, int], str]] = []
    plain = MeanTest.outcome

    def outcome(self: MeanTest, lo: int, hi: int, log_level: float, scales: Any, noise: tuple[int, int, int]) -> Any:
        found = plain(self, lo, hi, log_level, scales, noise)
        tested.append((self.steps, self._value, lo, hi, noise, found))
        return found

    monkeypatch.setattr(MeanTest, "outcome", outcome)
    n, rng = 500, np.random.default_rng(3)
    mechanism = ClaimsMechanism(ClaimsParameters(epsilon=8.0, budget=6), n)
    declared = private_noise(mechanism.parameters, n)
    assert declared is not None
    assert mechanism.epsilon(n) <= 8.0
    seen = set()
    for seed in range(12):
        noise = Recording(seed)
        state, phases, tested[:] = mechanism.start(noise), 0, []
        while mechanism.refusal(state) is None and state.asked < 12:
            train = float(rng.random())
            values: Any = rng.random(n) < 0.5 if binary else rng.random(n)
            reading = mechanism.read(values, n, (0.0, 1.0), "values", BINARY if binary else Known(variance=0.08))
            state, _ = mechanism.step(state, train, reading, noise)
        draws = iter(noise.drawn)
        scale, delta = next(draws)
        for steps, value, lo, hi, (edge, upper, lower), found in tested:
            assert scale == declared.scale
            assert (edge, [upper, lower]) == (
                delta,
                [drawn for s, drawn in (next(draws), next(draws)) if s == 2 * scale],
            )
            assert steps == n if binary else steps >= 64 * n
            above = hi < steps and Fraction(value - hi, steps) + Fraction(upper, UNITS) > Fraction(edge, UNITS)
            below = lo > 0 and Fraction(lo - value, steps) + Fraction(lower, UNITS) > Fraction(edge, UNITS)
            assert found == ("above" if above else "below" if below else "confirmed")
            seen.add(found)
            if found != "confirmed":
                phases += 1
                scale, delta = next(draws)
        assert next(draws, None) is None
        assert phases == state.outcomes <= declared.outcomes == 12
    assert seen == set(OUTCOMES)


def test_one_record_moves_a_value_by_at_most_what_is_counted() -> None:
    rng = np.random.default_rng(0)
    for n in (10, 33, 1000):
        parameters = ClaimsParameters(epsilon=100.0, budget=1)
        declared = private_noise(parameters, n)
        assert declared is not None
        assert declared.epsilon <= 100.0
        assert declared.epsilon == pytest.approx(2 * declared.moved * declared.outcomes / declared.scale)
        steps, mechanism = declared.steps(1, n), ClaimsMechanism(parameters, n)
        for _ in range(200):
            values = rng.random(n)
            before = mechanism.read(values, n, (0.0, 1.0), "values").on_grid(steps)
            values[rng.integers(n)] = rng.choice([0.0, 1.0, rng.random()])
            after = mechanism.read(values, n, (0.0, 1.0), "values").on_grid(steps)
            assert abs(after - before) * UNITS <= declared.moved * steps
        assert declared.moved >= UNITS / n  # for counts
        assert declared.moved <= 1.02 * UNITS / n + 1


class Silent(LaplaceOnly):
    """Every test passes."""

    for_release = False

    def __init__(self, scale: int) -> None:
        self._scale = scale

    def laplace(self, scale: Fraction) -> int:
        return -UNITS * 4 if scale == 2 * self._scale else 0


def test_what_is_told_is_a_function_of_the_outcomes() -> None:
    n = 400
    mechanism = ClaimsMechanism(ClaimsParameters(epsilon=20.0, budget=2), n)
    declared = private_noise(mechanism.parameters, n)
    assert declared is not None
    noise, sessions = Silent(declared.scale), []
    for share in (0.1, 0.5, 0.97):
        state, told = mechanism.start(noise), []
        for train in (0.8, 0.7, 0.9):
            values = mechanism.read(np.arange(n) < share * n, n, (0.0, 1.0), "values", BINARY)
            state, outcome = mechanism.step(state, train, values, noise)
            told.append((outcome, state.to_text()))
        sessions.append(told)
    assert sessions[0] == sessions[1] == sessions[2]


@pytest.mark.statistical
def test_truths_are_covered() -> None:
    """200 sessions of 6 queries, training values that mislead: at most 5 % are broken, by an exact limit at 1e-9."""
    rng, n, broken = np.random.default_rng(5), 300, 0
    mechanism = ClaimsMechanism(ClaimsParameters(epsilon=10.0, budget=4), n)
    for seed in range(200):
        noise = SeededNoise(seed)
        state, wrong = mechanism.start(noise), False
        for _ in range(6):
            if mechanism.refusal(state) is not None:
                break
            truth = float(rng.choice([0.5, 0.9]))
            reading = mechanism.read(rng.random(n) < truth, n, (0.0, 1.0), "values", BINARY)
            state, outcome = mechanism.step(state, float(np.clip(truth + rng.normal(0, 0.2), 0, 1)), reading, noise)
            assert outcome.interval is not None
            wrong |= not outcome.interval[0] <= truth <= outcome.interval[1]
        broken += wrong
    assert beta.ppf(1e-9, max(broken, 1), 201 - broken) <= 0.05


N = 4000
Y = (np.arange(N + 2000) % 10 < 7).astype(int)
X = np.arange(float(N + 2000))[:, None]


class Constant:
    classes_ = np.array([0, 1])

    def __init__(self, label: int, fails: bool = False) -> None:
        self.label, self.fails = label, fails

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.fails and len(X) == N:
            raise ValueError("labels")
        return np.full(len(X), self.label)


def private(**changes: Any) -> Thresholdout:
    settings: dict[str, Any] = {"mechanism": Claims(epsilon=2.0, holdout_answers=2), "random_state": 0}
    return Thresholdout((X[:N], Y[:N]), train=(X[N:], Y[N:]), **{**settings, **changes})


def test_the_certificate_states_the_epsilon_until_a_query_fails(tmp_path: Path) -> None:
    guard = private(ledger=tmp_path / "guard.db")
    assert guard.status.epsilon is not None
    assert 1.999 < guard.status.epsilon <= 2.0
    assert guard.certificate.epsilon == guard.status.epsilon
    assert "differentially private under replacing one record, with epsilon 2 " in guard.certificate.statement
    assert "epsilon 2 for all answers" in repr(guard)
    low, high = guard.score(Constant(1), cv="training").interval
    assert low < 0.7 < high
    with pytest.raises(LedgerMismatch, match=r"mechanism = Claims\(.*epsilon=2\.0"):
        private(ledger=tmp_path / "guard.db", mechanism=Claims(epsilon=3.0))
    with pytest.raises(InputError, match="failed on the holdout"):
        guard.score(Constant(1, fails=True), cv="training")
    again = private(ledger=tmp_path / "guard.db")
    for one in (guard, again):
        assert one.status.epsilon == math.inf
        assert one.certificate.statement.startswith("The answers are not private any more")
    assert Thresholdout((X[:N], Y[:N]), train=(X[N:], Y[N:])).status.epsilon is None


def test_an_epsilon_in_words_is_rounded_up() -> None:
    """To the nearest, 1.2349 would be said to be 1.23, which is less than what is proved."""
    guard = private(mechanism=Claims(epsilon=1.2349, holdout_answers=1))
    assert guard.status.epsilon is not None
    assert guard.status.epsilon > 1.2348
    assert "epsilon 1.24 for all answers" in repr(guard)
    assert "with epsilon 1.24 (" in guard.certificate.statement
    assert [shown_above(number) for number in (2.0, 0.1, 1e-9, 123456.0, math.inf)] == [
        "2",
        "0.1",
        "1e-09",
        "1.24e+05",
        "inf",
    ]


def test_it_answers_no_more_when_its_epsilon_is_spent() -> None:
    guard = private(mechanism=Claims(epsilon=2.0))
    declared = private_noise(guard.parameters, N)  # type: ignore[arg-type]
    assert declared is not None
    asked = iter(range(100))

    def mislead() -> None:
        for k in asked:
            guard.ask(float(k % 2), np.arange(N) < N / 2, binary=True)

    with pytest.raises(BudgetExhausted, match="The epsilon of this guard's answers is exhausted") as refused:
        mislead()
    assert refused.value.what == "epsilon"
    assert 2 < len(guard.history) < 100  # at most four of ten outcomes each
    assert guard.history["high"].sub(guard.history["low"]).le(1.0).all()


def test_what_is_not_covered_is_refused_and_what_the_message_names_works() -> None:
    guard, models = private(), [Constant(0), Constant(1)]
    for ask in (
        lambda: guard.score_all(models, cv="training"),
        lambda: guard.score_all(models, report="best", cv="training"),
        lambda: guard.ask_all([(0.5, np.arange(N) < 9)]),
        lambda: guard.final_check(models[0], cv="training"),
        lambda: guard.score(models[0], "balanced_accuracy", cv="training"),
        lambda: guard.compare(models[0], models[1], cv="training"),
        lambda: guard.compare_all(models, models[1], cv="training"),
        lambda: guard.gate(models[0]),
    ):
        with pytest.raises(InputError, match=r"epsilon must be None for .* guard.ask and guard.score"):
            ask()
    assert guard.history.empty
    assert guard.score(models[0], cv="training").interval[0] < 0.3 < guard.score(models[0], cv="training").interval[1]
    for changes in ({"final_check": True}, {"sampling": "fixed_features"}):
        with pytest.raises(InputError, match="epsilon must be None beside final_check=True or"):
            private(**changes)
    assert private().status.epsilon is not None
    for value in (0.0, -1.0, math.nan):
        with pytest.raises(InputError, match="epsilon"):
            Claims(epsilon=value)


def test_too_few_records_are_refused_with_the_epsilon_that_works() -> None:
    with pytest.raises(InputError, match=r"at least 0.0") as refused:
        private(mechanism=Claims(epsilon=0.01, holdout_answers=3))
    least = float(str(refused.value).split("at least ")[1].split(";")[0])
    assert private(mechanism=Claims(epsilon=least, holdout_answers=3)).status.epsilon == pytest.approx(least, rel=1e-3)


@for_each("n", [50, 100, 150, 1000, 7777])
def test_the_epsilon_that_a_refusal_names_is_accepted_and_nearly_the_smallest(n: int) -> None:
    """The scale is at most an eighth of the range."""
    with pytest.raises(InputError) as refused:
        private_noise(ClaimsParameters(epsilon=1e-9), n)
    least = float(str(refused.value).split("at least ")[1].split(";")[0])
    found = private_noise(ClaimsParameters(epsilon=least), n)
    assert found is not None
    assert 0.99 * UNITS <= 8 * found.scale <= UNITS
    with pytest.raises(InputError, match="at least"):
        private_noise(ClaimsParameters(epsilon=0.985 * least), n)


def test_groups_and_losses_are_answered() -> None:
    guard = private(dependence=Groups(np.arange(N) // 2), mechanism=Claims(epsilon=4.0))
    low, high = guard.score(Constant(1), cv="training").interval
    assert low < 0.7 < high
    shares = np.linspace(0, 1, N)
    low, high = guard.ask(np.linspace(0, 1, 2000), shares).interval
    assert low < 0.5 < high


def test_a_guarded_search_asks_one_after_another() -> None:
    from sklearn.model_selection import GridSearchCV
    from sklearn.tree import DecisionTreeClassifier

    guard = private(mechanism=Claims(epsilon=2.0, holdout_answers=8))  # cross-validation says .5, the holdout .7
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]}, cv=2)
    assert len(GuardedSearchCV(search, guard).fit(X[N:], Y[N:]).answers_) == 2
    with pytest.raises(InputError, match="'all' for a guard"):
        GuardedSearchCV(search, guard, report="best").fit(X[N:], Y[N:])
