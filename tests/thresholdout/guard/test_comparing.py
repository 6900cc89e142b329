"""Comparisons through a guard: what two models agree on cancels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from graphs import Groups, MovingWindow
from tests.cases import for_each
from thresholdout import BudgetExhausted, Claims, InputError, LedgerMismatch, SeededNoise, SparseVector, Thresholdout
from thresholdout.guard.answer import Answer
from thresholdout.guard.comparison import Comparison
from thresholdout.mechanisms import ClaimsMechanism, ClaimsParameters, Known
from thresholdout.mechanisms.claims.lists import cell_nats, ends_nats
from thresholdout.mechanisms.claims.predictor import Prediction
from thresholdout.scoring import metrics

N = 2000


class Told:
    """A model whose predictions are a column of the records."""

    classes_ = np.array([0, 1])

    def __init__(self, column: int) -> None:
        self.column = column

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        return X[:, self.column].astype(int)


def records(gain: float, seed: int = 0, more: int = 1, **declared: Any) -> Thresholdout:
    """Return a guard of records with labels 1: two models that disagree on 8 %, the second better by `gain`."""
    rng = np.random.default_rng(seed)
    u = rng.random((1 + more) * N)
    first, second = u >= (0.08 + gain) / 2, u < 1.0 - (0.08 - gain) / 2
    X = np.stack([first, second, np.arange(u.size)], axis=1).astype(float)
    y = np.ones(u.size, dtype=int)
    settings = {"random_state": seed, **declared}
    return Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), **settings)


class Fails(Told):
    """It fails on the holdout."""

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        if len(X) == N:
            raise ValueError("labels: 0 1 1 0")
        return super().predict(X)


class Probable:
    """It gives the second column of its probabilities 0.8, always."""

    def __init__(self, classes: list[int]) -> None:
        self.classes_ = np.array(classes)

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.tile([0.2, 0.8], (len(X), 1))


class Moody(Told):
    """From the third time on, it says the opposite."""

    calls = 0

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        self.calls += 1
        return super().predict(X) if self.calls < 3 else 1 - super().predict(X)


class Reuses(Told):
    """All of its kind return one array, and write to it."""

    said = np.zeros(N, dtype=int)

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        self.said[:] = super().predict(X)
        return self.said


def test_a_better_model_is_found_and_named() -> None:
    guard = records(0.05)
    found = guard.compare(Told(1), Told(0), cv="training")
    assert found.verdict == "better"
    assert found.interval[0] <= 0.05 <= found.interval[1]
    assert found.settling is None
    assert guard.compare(Told(0), Told(1), cv="training").verdict == "worse"
    assert guard.compare(Told(1), Told(0), "zero_one_loss", cv="training").verdict == "better"  # a smaller loss
    width = found.interval[1] - found.interval[0]
    score = guard.score(Told(1), cv="training")
    assert width < 0.08 < 2 * 0.5  # of values from -1 to 1, of which 92 % are 0
    assert len(guard.history) == 4
    assert score.value > 0.9


def test_what_is_not_settled_says_how_many_records_would_settle_it() -> None:
    found = records(0.01).compare(Told(1), Told(0), cv="training")
    assert found.verdict == "not settled"
    assert found.interval[0] <= 0.0 <= found.interval[1]
    assert found.settling is None or found.settling > N


def test_equal_models_are_not_settled() -> None:
    found = records(0.01).compare(Told(1), Told(1), cv="training")
    assert found.verdict == "not settled"
    assert found.value == pytest.approx(0.0, abs=1e-3)


def test_scores_and_differences_do_not_learn_from_each_other() -> None:
    guard, other = records(0.05), records(0.05)
    for _ in range(5):
        guard.score(Told(0), "zero_one_loss", cv="training")
    alone = other.compare(Told(1), Told(0), cv="training")
    assert guard.compare(Told(1), Told(0), cv="training").value == pytest.approx(alone.value, abs=1e-12)


def test_refuses_what_is_no_mean_and_other_mechanisms() -> None:
    with pytest.raises(InputError, match="a metric that is a mean over records"):
        records(0.0).compare(Told(1), Told(0), "f1", cv="training")
    X, y = np.arange(8.0 * N)[:, None], np.ones(8 * N, dtype=int)
    half = 4 * N
    ladder = Thresholdout((X[:half], y[:half]), train=(X[half:], y[half:]), queries=5, mechanism="ladder")
    with pytest.raises(InputError, match="'claims' for a comparison; got a ladder"):
        ladder.compare(Told(0), Told(0), cv="training")


class TestLists:
    def test_all_are_compared_at_once_as_narrowly_as_a_list(self) -> None:
        guard = records(0.05, more=2)
        better, same = guard.compare_all({"second": Told(1), "first": Told(0)}, Told(0), reserve=0, cv="training")
        assert (better.candidate, better.verdict, same.verdict) == ("second", "better", "not settled")
        assert better.interval[0] <= 0.05 <= better.interval[1]
        assert better.interval[1] - better.interval[0] < 2 * 0.03
        assert guard.history[["name", "candidate", "list", "source"]].to_numpy().tolist() == [
            ["accuracy, difference", "second", 1, "holdout"],
            ["accuracy, difference", "first", 1, "holdout"],
        ]
        with pytest.raises(BudgetExhausted):
            guard.compare(Told(0), Told(1), cv="training")

    def test_what_a_list_told_is_paid_with_less_than_nine_nats_each(self) -> None:
        guard = records(0.05, more=2)
        guard.compare_all([Told(1)] * 5, Told(0), cv="training")
        assert guard.status.information_released is not None
        assert guard.status.information_released < math.log(5) + 5 * 9.0
        assert guard.compare(Told(1), Told(0), cv="training").interval[0] < 0.05

    def test_keys_bring_the_same_answers_for_nothing(self, tmp_path: Path) -> None:
        guard = records(0.05, ledger=tmp_path / "guard.db")
        first = guard.compare_all([Told(1), Told(0)], Told(0), keys=["1", "2"], cv="training")
        before = guard.status.error_budget_left
        again = guard.compare_all([Told(1), Told(0)], Told(0), keys=["1", "2"], cv="training")
        assert [found.interval for found in again] == [found.interval for found in first]
        assert [found.answer.repeated for found in again] == [True, True]
        one = guard.compare(Told(1), Told(0), key="3", cv="training")
        other = guard.compare(Told(1), Told(0), key="3", cv="training")
        assert (one.value, one.interval, one.verdict, one.settling) == (
            other.value,
            other.interval,
            other.verdict,
            other.settling,
        )
        assert other.answer.repeated
        assert guard.status.error_budget_left is not None
        assert before is not None
        assert guard.status.error_budget_left < before
        assert len(guard.history) == 3

    def test_a_failure_is_charged_once_and_shows_nothing(self) -> None:
        guard = records(0.05, more=2)
        with pytest.raises(InputError) as caught:
            guard.compare_all([Told(1), Fails(1)], Told(0), cv="training")
        assert "labels" not in str(caught.value)
        assert caught.value.__context__ is None
        assert guard.history["source"].tolist() == ["failed"]
        with pytest.raises(InputError, match="failed on the holdout"):
            guard.compare(Told(1), Fails(0), cv="training")
        assert len(guard.history) == 2

    def test_refuses_what_is_no_list(self) -> None:
        guard = records(0.05)
        with pytest.raises(InputError, match="models"):
            guard.compare_all(Told(1), Told(0), cv="training")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="an empty list"):
            guard.compare_all([], Told(0), cv="training")
        with pytest.raises(InputError, match=r"keys must be .*; got a list of 1"):
            guard.compare_all([Told(1), Told(0)], Told(0), keys=["1"], cv="training")
        with pytest.raises(InputError, match="reserve"):
            guard.compare_all([Told(1)], Told(0), reserve=1.0, cv="training")
        assert guard.status.information_released == pytest.approx(0.0, abs=1e-9)


@for_each("steps", [1, 7, 40])
@for_each("mean", [0.0, 0.3, 0.5, 0.97])
def test_codes_of_both_ends_sum_to_at_most_one(steps: int, mean: float) -> None:
    for deviation, reach, doubt in ((0.01, 0.02, 0.1), (0.3, 0.4, 2.0), (1e-6, 1.0, 1e-6)):
        made = Prediction(mean, deviation, (0.0, 0.0), 1e-5, 1.0, mean)
        expected = mean - reach, mean + reach
        total = math.fsum(
            math.exp(-ends_nats(low, high, made, steps, expected, doubt))
            for low in range(steps + 1)
            for high in range(low, steps + 1)
        )
        assert total <= 1.0
        lower = math.fsum(math.exp(-cell_nats(value, made, steps)) for value in range(steps + 1))
        assert 0.9 < lower <= 1.0


class TestWins:
    def test_a_win_rate_settles_what_a_difference_does_not(self) -> None:
        guard = records(0.03, sampling="iid")
        found = guard.compare(Told(1), Told(0), about="win_rate", cv="training")
        share = (0.08 + 0.03) / 0.16
        assert found.verdict == "better"
        assert found.interval[0] <= share <= found.interval[1]
        assert records(0.03).compare(Told(1), Told(0), cv="training").verdict == "not settled"
        losses = records(0.03, sampling="iid").compare(
            Told(1), Told(0), "zero_one_loss", about="win_rate", cv="training"
        )
        assert losses.interval == found.interval  # wins are those of the better loss
        assert guard.compare(Told(0), Told(1), about="win_rate", cv="training").verdict == "worse"
        assert guard.history["name"].tolist()[0] == "accuracy, win rate"

    def test_a_list_of_shares_has_exact_limits(self) -> None:
        guard = records(0.03, sampling="iid")
        found, same = guard.compare_all(
            [Told(1), Told(1)], Told(0), about="win_rate", reserve=0, cv="training", keys=["one", "other"]
        )
        holdout = guard._records.holdout[0]
        wins = int(np.count_nonzero(holdout[:, 1] > holdout[:, 0]))
        losses = int(np.count_nonzero(holdout[:, 1] < holdout[:, 0]))
        low, high = beta.ppf(0.0125, wins, losses + 1), beta.ppf(1 - 0.0125, wins + 1, losses)
        assert found.interval == same.interval
        assert low - 1 / 64 < found.interval[0] <= low
        assert high <= found.interval[1] < high + 1 / 64

    def test_nothing_shows_how_many_records_differ(self) -> None:
        """Holdouts with other numbers of such records, and the same outcomes: the same answer, state and history."""
        shown = set()
        for differ in (80, 90, 100):
            X = np.zeros((3 * N, 3))
            y = np.ones(3 * N, dtype=int)
            X[:, 2] = np.arange(3 * N)
            X[: differ * 6 // 10, 1] = 1.0
            X[differ * 6 // 10 : differ, 0] = 1.0
            X[N : N + 110, 1], X[N + 110 : N + 180, 0] = 1.0, 1.0
            X[differ:N, :2] = X[N + 180 :, :2] = 1.0
            guard = Thresholdout(
                (X[:N], y[:N]), train=(X[N:], y[N:]), random_state=3, sampling="iid", mechanism=Claims(noise=0.0)
            )
            found = guard.compare(Told(1), Told(0), about="win_rate", cv="training")
            assert found.answer.source == "train"
            shown.add(
                (
                    found.value,
                    found.interval,
                    found.settling,
                    guard.status.information_released,
                    guard._engine.state(),
                )
            )
        assert len(shown) == 1

    def test_refusals_name_the_call_that_works(self) -> None:
        guard = records(0.03)
        with pytest.raises(InputError, match=r"'difference' for sampling='independent'") as caught:
            guard.compare(Told(1), Told(0), about="win_rate", cv="training")
        assert "sampling='iid'" in str(caught.value)
        assert guard.compare(Told(1), Told(0), cv="training").about == "difference"
        groups = records(0.03, sampling="iid", dependence=Groups(np.arange(N) // 2))
        with pytest.raises(InputError, match=r"'difference' for records that are not independent"):
            groups.compare(Told(1), Told(0), about="win_rate", cv="training")
        assert groups.compare(Told(1), Told(0), cv="training").about == "difference"
        one_law = records(0.03, sampling="iid")
        with pytest.raises(InputError, match=r"A win rate needs a metric such as 'accuracy'"):
            one_law.compare(Told(1), Told(0), halves(), about="win_rate", cv="training")
        assert one_law.compare(Told(1), Told(0), halves(), cv="training").verdict
        with pytest.raises(InputError, match=r"about must be .*; got 'share'"):
            one_law.compare(Told(1), Told(0), about="share", cv="training")  # type: ignore[arg-type]
        assert len(one_law.history) == 1

    def test_values_that_are_neither_on_the_holdout_alone_are_charged(self) -> None:
        guard = records(0.03, sampling="iid", more=2)
        metric = halves(lambda output: len(output) == N)
        with pytest.raises(InputError, match="failed on the holdout"):
            guard.compare(Told(1), Told(0), metric, about="win_rate", cv="training")
        assert guard.history["source"].tolist() == ["failed"]


def halves(where: Any = lambda output: True) -> metrics.Metric:
    """Return a metric whose values are a half or less."""
    return metrics.Metric(
        "halves", "predict", lambda y, output, _: (output == y) * (0.5 if where(output) else 1.0), (0.0, 1.0), True
    )


@for_each("interval", [(-0.1, 0.0), (0.0, 0.1), (0.0, 0.0)])
def test_nothing_settles_a_difference_of_nothing(interval: tuple[float, float]) -> None:
    found = Comparison.of(Answer(0.0, interval, "train", 1, None, -1.0, 1.0), 1000)
    assert (found.verdict, found.settling) == ("not settled", None)


class TestGivenTheFeatures:
    def test_a_session_is_declared_and_says_so(self, tmp_path: Path) -> None:
        guard = records(0.03, sampling="fixed_features", ledger=tmp_path / "guard.db")
        assert guard._declared.sampling == "fixed_features"
        assert "given the features of all of them" in guard.certificate.about
        assert "given the features" not in records(0.03).certificate.about
        found = guard.compare(Told(1), Told(0), cv="training")
        assert found.verdict == "better"
        holdout = guard._records.holdout[0]
        differ = float(np.mean(holdout[:, 0] != holdout[:, 1]))
        assert (found.answer.lower, found.answer.upper) == (-differ, differ)  # the share may be shown
        other = records(0.03).compare(Told(1), Told(0), cv="training")
        assert found.interval[1] - found.interval[0] < other.interval[1] - other.interval[0]
        with pytest.raises(LedgerMismatch, match="sampling = 'fixed_features'"):
            records(0.03, ledger=tmp_path / "guard.db")
        assert (
            records(0.03, sampling="fixed_features", ledger=tmp_path / "guard.db").certificate.about
            == guard.certificate.about
        )

    def test_models_that_agree_cost_nearly_nothing(self) -> None:
        guard = records(0.03, sampling="fixed_features")
        found = guard.compare(Told(1), Told(1), cv="training")
        assert found.verdict == "not settled"
        assert max(map(abs, found.interval)) <= 1 / N + 1e-12
        assert guard.status.information_released is not None
        assert guard.status.information_released < 1e-5

    @for_each("metric", ["accuracy", "zero_one_loss"])
    def test_intervals_hold_and_lists_too(self, metric: str) -> None:
        guard = records(0.03, sampling="fixed_features", more=2)
        sign = 1 if metric == "accuracy" else -1
        first, second = guard.compare_all([Told(1), Told(0)], Told(0), metric, cv="training")
        holdout = guard._records.holdout[0]
        truth = sign * float(np.mean(holdout[:, 1] - holdout[:, 0]))  # labels are certain given the features
        assert first.verdict == "better"
        assert first.interval[0] <= truth <= first.interval[1]
        assert second.verdict == "not settled"

    @for_each("sampling", ["independent", "fixed_features"])
    def test_records_without_a_value_count_as_ties(self, sampling: Any) -> None:
        def right(y: NDArray[Any], told: NDArray[Any], classes: object) -> NDArray[np.float64]:
            return np.full(N, np.nan) if len(y) == N else (told == y).astype(float)

        metric = metrics.Metric("right", "predict", right, (0.0, 1.0), True, reads_classes=False)
        found = records(0.03, sampling=sampling, more=2).compare(Told(1), Told(0), metric, cv="training")
        assert found.interval[0] <= 0.0 <= found.interval[1]
        assert found.answer.source == "holdout"

    def test_outputs_of_another_shape_are_refused_for_nothing(self) -> None:
        class Short(Told):
            def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
                return super().predict(X)[: N - 1] if len(X) == N else super().predict(X)

        guard = records(0.03, sampling="fixed_features", more=2)
        with pytest.raises(InputError, match=r"outputs of shapes \(1999,\) and \(2000,\)"):
            guard.compare(Short(1), Told(0), cv="training")
        assert guard.history.empty
        assert guard.compare(Told(1), Told(0), cv="training").verdict == "better"

    def test_probabilities_of_other_classes_say_something_else(self) -> None:
        """The same numbers in columns of which the classes are swapped: one model's losses are small, the other's not.

        Labels are certain given the features, so the truth is the holdout's own difference: 0.04 less 0.64.
        """
        right, swapped = Probable([0, 1]), Probable([1, 0])
        found = records(0.03, sampling="fixed_features").compare(right, swapped, "brier_score", cv="training")
        assert found.interval[0] <= 0.2**2 - 0.8**2 <= found.interval[1]
        assert found.verdict == "better"
        alike = records(0.03, sampling="fixed_features").compare(right, Probable([0, 1]), "brier_score", cv="training")
        assert max(map(abs, alike.interval)) <= 1 / N + 1e-12

    def test_predictions_of_models_that_know_other_classes_are_what_they_are(self) -> None:
        guard = records(0.03, sampling="fixed_features")
        other = Told(1)
        other.classes_ = np.array([0, 1, 2])
        assert max(map(abs, guard.compare(other, Told(1), cv="training").interval)) <= 1 / N + 1e-12

    def test_a_metric_of_ones_own_that_reads_classes_is_compared_everywhere(self) -> None:
        def known(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
            assert classes is not None
            return np.full(len(y), len(classes) == 2)

        other = Told(1)
        other.classes_ = np.array([0, 1, 2])
        metric = metrics.Metric("known", "predict", known, (0.0, 1.0), True)
        found = records(0.03, sampling="fixed_features").compare(
            Told(1), other, metric, cv="training", key="own metric"
        )
        assert found.interval[0] <= 1.0 <= found.interval[1] + 1e-12
        assert found.verdict == "better"

    def test_losses_of_0_and_1_in_a_wider_range_are_no_coins(self) -> None:
        """On 8 % of the records one of two losses is 1: a quarter of their range. The smaller set is the sharper one.

        A coin for each would have a deviation of sqrt(15) times that of these losses.
        """
        metric = metrics.squared_error(4.0)
        found = records(0.03, sampling="fixed_features").compare(Told(1), Told(0), metric, cv="training")
        plain = records(0.03).compare(Told(1), Told(0), metric, cv="training")
        assert found.interval[1] - found.interval[0] < plain.interval[1] - plain.interval[0]

    def test_at_most_is_in_units_of_the_same_range(self) -> None:
        """The difference is known to 0.03, and that is half as much in units of its range from -1 to 1."""
        most = 0.016
        guard = records(0.03, sampling="fixed_features", mechanism=Claims(max_half_width=most))
        found = guard.compare(Told(1), Told(0), cv="training")
        assert 0.5 * found.answer.half_width <= most
        with pytest.raises(BudgetExhausted):
            records(0.03, sampling="fixed_features", mechanism=Claims(max_half_width=0.002)).compare(
                Told(1), Told(0), cv="training"
            )
        with pytest.raises(BudgetExhausted):
            records(0.03, mechanism=Claims(max_half_width=0.002)).compare(Told(1), Told(0), cv="training")

    def test_what_a_model_said_first_is_what_is_compared(self) -> None:
        """A model that says something else each time is what it said when asked: here the other model, with any label.

        Otherwise it would differ on records that are no part of the comparison.
        """
        moody = Moody(1)
        found = records(0.03, sampling="fixed_features").compare(moody, Told(1), cv="training", key="moody")
        assert moody.calls == 2  # about the training part, and about the holdout's features
        assert max(map(abs, found.interval)) <= 1 / N + 1e-12

    def test_what_models_say_is_kept_though_they_write_to_it(self) -> None:
        guard = records(0.03, sampling="fixed_features")
        holdout = guard._records.holdout[0]
        found = guard.compare(Reuses(1), Reuses(0), cv="training")
        assert found.interval[0] <= float(np.mean(holdout[:, 1] - holdout[:, 0])) <= found.interval[1]
        assert found.verdict == "better"

    def test_groups_count_as_often_as_they_differ(self) -> None:
        whole = np.arange(N) // 2
        found = records(0.03, sampling="fixed_features", dependence=Groups(whole)).compare(
            Told(1), Told(0), cv="training"
        )
        plain = records(0.03, sampling="fixed_features").compare(Told(1), Told(0), cv="training")
        assert found.interval[1] - found.interval[0] > plain.interval[1] - plain.interval[0]

    def test_what_needs_one_law_or_random_features_is_refused(self) -> None:
        for dependence in (MovingWindow(N, 3),):
            with pytest.raises(InputError, match="'fixed_features' needs independent records or groups") as caught:
                records(0.03, sampling="fixed_features", dependence=dependence)
            assert caught.value.argument == "sampling"
        with pytest.raises(InputError, match="Pass mechanism='claims' or 'ladder'"):
            records(0.03, sampling="fixed_features", mechanism=SparseVector(0.1, 0.01, budget=2), queries=5)
        with pytest.raises(InputError, match=r"unless the holdout is a pair \(X, y\)"):
            Thresholdout(np.arange(50.0), sampling="fixed_features")
        for wrong in ("labels", 3):
            with pytest.raises(InputError, match="sampling must be"):
                records(0.03, sampling=wrong)
        guard = records(0.03, sampling="fixed_features", mechanism=Claims(noise=0.0))
        with pytest.raises(InputError, match="a mean over records, such as 'accuracy'"):
            guard.score(Told(1), "balanced_accuracy", cv="training")
        with pytest.raises(InputError, match="'difference' for sampling='independent'"):
            guard.compare(Told(1), Told(0), about="win_rate", cv="training")
        assert guard.history.empty
        assert guard.score(Told(1), "accuracy", cv="training").value > 0.9
        assert guard.compare(Told(1), Told(0), cv="training").verdict == "better"


@pytest.mark.statistical
def test_true_differences_are_covered() -> None:
    """600 sessions of 5 comparisons of 300 records: at most 5 % broken, by an exact limit at 1e-9; a quarter fails."""
    broken = narrow = 0
    for seed in range(600):
        rng, noise = np.random.default_rng(seed), SeededNoise(seed)
        mechanism = ClaimsMechanism(ClaimsParameters(), 300)
        state, wrong, short = mechanism.start(noise), False, False
        for _ in range(5):
            gain = rng.uniform(-0.05, 0.05)
            z = rng.choice([-1.0, 0.0, 1.0], size=300, p=[(0.1 - gain) / 2, 0.9, (0.1 + gain) / 2])
            known = Known(variance=0.025, difference=True)
            reading = mechanism.read(z, 300, (-1.0, 1.0), "values", known)
            train = gain + rng.normal(0.0, 0.02)
            state, outcome = mechanism.step(state, (train + 1) / 2, reading, noise)
            assert outcome.interval is not None
            low, high = (2 * end - 1 for end in outcome.interval)
            wrong |= not low <= gain <= high
            short |= abs(gain - (low + high) / 2) > (high - low) / 8
        broken, narrow = broken + wrong, narrow + short
    assert beta.ppf(1e-9, max(broken, 1), 601 - broken) <= 0.05
    assert beta.ppf(1e-9, max(narrow, 1), 601 - narrow) > 0.05


def test_large_integers_are_not_taken_for_the_floats_next_to_them() -> None:
    """2**53 as an integer is not 2**53 + 1, and as a float it is: models that say one and the other differ."""
    large = 2**53
    y = np.where(np.arange(1000) % 3 > 0, large + 1, 5)
    X = np.column_stack([np.arange(1000), y])

    class Says:
        classes_ = np.array([5])

        def __init__(self, kind: type) -> None:
            self.kind = kind

        def fit(self, X: object, y: object) -> Says:
            return self

        def predict(self, X: NDArray[np.int64]) -> NDArray[Any]:
            return np.where(X[:, 1] == 5, 5, large).astype(self.kind)

    guard = Thresholdout((X[:500], y[:500]), train=(X[500:], y[500:]), sampling="fixed_features", random_state=1)
    found = guard.compare(Says(int), Says(float), "accuracy", cv="training")
    low, high = found.interval
    assert low <= -np.mean(y[:500] != 5) <= high
