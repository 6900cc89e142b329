"""KFoldGuard: folds, values, baselines, and what is refused."""

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from graphs import DependencyGraph, Groups, Independent, MarkovChain, MovingWindow
from tests.cases import for_each
from thresholdout import BudgetExhausted, Claims, Thresholdout
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.cli import main
from thresholdout.errors import InputError, InputTypeError, LedgerMismatch
from thresholdout.guard.fold_assignment import fold_model, make_folds
from thresholdout.guard.holdout import origin
from thresholdout.guard.kfold import KFoldGuard
from thresholdout.limits.entropy import entropy_lower
from thresholdout.mechanisms import ClaimsParameters, FoldClaimsParameters
from thresholdout.scoring.metrics import Metric, accuracy, brier_score, squared_error, top_k_accuracy

X, Y = load_digits(return_X_y=True)
SPLITS = list(KFold(3, shuffle=True, random_state=0).split(X))


def make(**changes: Any) -> KFoldGuard:
    settings: dict[str, Any] = {
        "cv": 3,
        "queries": 20,
        "mechanism": Claims(holdout_answers=4),
        "random_state": 0,
        **changes,
    }
    return KFoldGuard((X, Y, settings.pop("groups", None)), **settings)


def values_of(guard: KFoldGuard, estimator: Any, metric: Any) -> Any:
    return guard._values(estimator, metric, X, Y, None)


def test_values_are_those_of_cross_val_predict() -> None:
    guard = make()
    from thresholdout.scoring.metrics import accuracy

    right = cross_val_predict(GaussianNB(), X, Y, cv=SPLITS) == Y
    assert np.array_equal(values_of(guard, GaussianNB(), accuracy()), right)
    probabilities = cross_val_predict(GaussianNB(), X, Y, cv=SPLITS, method="predict_proba")
    expected = ((probabilities - np.eye(10)[Y]) ** 2).sum(axis=1) / 2
    assert values_of(guard, GaussianNB(), brier_score()) == pytest.approx(expected, abs=1e-12)
    clipped = np.minimum((cross_val_predict(LinearRegression(), X, Y, cv=SPLITS) - Y) ** 2, 4.0)
    assert values_of(guard, LinearRegression(), squared_error(4.0)) == pytest.approx(clipped, abs=1e-9)


def test_classes_that_a_fold_does_not_train_have_probability_0() -> None:
    features, labels = np.zeros((6, 1)), np.array(["a", "a", "a", "b", "b", "c"])
    guard = KFoldGuard(
        (np.arange(6.0)[:, None], labels), cv=PredefinedSplit([0, 0, 1, 1, 0, 0]), queries=1, mechanism="ladder"
    )
    values = guard._values(DummyClassifier(strategy="prior"), brier_score(), features, labels, None)
    # Fold 0 is judged by a model of one a and one b; fold 1 by one of two a, one b and one c.
    first = {"a": 0.25, "b": 0.25, "c": (0.25 + 0.25 + 1) / 2}
    second = {"a": (0.25 + 0.0625 + 0.0625) / 2, "b": (0.25 + 0.5625 + 0.0625) / 2}
    expected = [first["a"], first["a"], second["a"], second["b"], first["b"], first["c"]]
    assert list(values) == pytest.approx(expected)


def test_values_of_a_fold_do_not_depend_on_what_other_folds_know() -> None:
    """A class that only this fold has is known to all other models; one that ends the order would win equal ranks."""
    features, labels = np.zeros((8, 1)), np.array([0, 0, 1, 0, 0, 0, 2, 2])
    guard = KFoldGuard((features, labels), cv=PredefinedSplit([0, 0, 0, 0, 1, 1, 1, 1]))
    most_frequent = DummyClassifier(strategy="most_frequent")
    found = guard._values(most_frequent, top_k_accuracy(2), features, labels, None)
    first = most_frequent.fit(features[4:], labels[4:]).predict_proba(features[:4])  # of the classes 0 and 2
    second = most_frequent.fit(features[:4], labels[:4]).predict_proba(features[4:])  # of the classes 0 and 1
    assert first.tolist()[0] == second.tolist()[0] == [1.0, 0.0]
    assert found.tolist() == [True, True, False, True, True, True, False, False]


class Spilling(DummyClassifier):  # type: ignore[misc]
    """Of the first fold it returns too many predictions, with the labels it was fitted to; of the second too few."""

    def fit(self, X: Any, y: Any) -> "Spilling":
        self.known_ = np.asarray(y)
        super().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        guessed = np.zeros(len(X), dtype=np.int64)
        return np.concatenate([guessed, self.known_]) if X[0, 0] < 50 else guessed[:0]


class Changing(DummyClassifier):  # type: ignore[misc]
    """It predicts whole numbers in one fold and others in the other one."""

    def predict(self, X: Any) -> Any:
        return np.full(len(X), 2**60, dtype=np.int64 if X[0, 0] < 50 else np.float64)


@for_each(("learner", "unit"), [(Spilling(), 1), (Changing(), 2**60)])
def test_predictions_of_one_fold_do_not_move_or_change_those_of_another(learner: Any, unit: int) -> None:
    """Put together, fold 2 would be right about labels that its other model was fitted to, or that are only near."""
    features = np.arange(100.0)[:, None]
    labels = np.arange(100) // 7 % 2 * unit if unit == 1 else unit + np.arange(100) // 7 % 2
    guard = KFoldGuard((features, labels), cv=PredefinedSplit(np.arange(100) // 50))
    before = guard.status.error_budget_left
    with pytest.raises(InputError, match="an error on the folds"):
        guard.score(learner)
    assert before is not None
    assert guard.status.error_budget_left is not None
    assert guard.status.error_budget_left < before * 2.0**-20


@pytest.mark.slow
def test_an_answer_repeats_what_was_expected_or_is_near_the_average() -> None:
    guard = make(queries=10)
    average = (cross_val_predict(GaussianNB(), X, Y, cv=SPLITS) == Y).mean()
    near = guard.score(GaussianNB(), "accuracy", expected=round(average, 2))
    assert near.value == pytest.approx(round(average, 2))
    assert (near.source, guard.status.answers_left) == ("train", 4)
    assert near.interval[0] < average < near.interval[1]
    far = guard.score(GaussianNB(), "accuracy", expected=0.1)
    assert (far.source, guard.status.answers_left) == ("holdout", 3)
    assert abs(far.value - average) < 0.1
    follows = guard.score(GaussianNB(), "accuracy", n_jobs=2)  # by default the last answer about the metric
    assert guard.history["train"].iloc[-1] == far.value == pytest.approx(follows.value)
    first = guard.score(GaussianNB(), "brier_score")
    assert guard.history["train"].iloc[-1] == 0.5  # the middle of the range before the first answer
    assert first.source == "holdout"  # where nothing was expected, the average is told
    assert 0.0 < guard.status.error_budget_left < 0.05  # type: ignore[operator]
    assert guard.status.information_released == pytest.approx(np.log(0.05 / guard.status.error_budget_left))  # type: ignore[operator]
    assert [answer.query for answer in guard.answers] == [1, 2, 3, 4]
    assert guard.answers[0] == near


def test_certificates_rest_on_the_inflation_alone() -> None:
    guard = make(queries=10)
    assert guard.certificate.route == "fold claims"
    assert guard.certificate.routes["applies"].drop("fold claims").eq(False).all()
    assert guard.dependence.variance_inflation() == pytest.approx(3.0, rel=1e-9)
    assert guard.parameters == FoldClaimsParameters(599.0, guard.dependence.variance_inflation(), 0.95, 10, 4)
    ladder = make(mechanism="ladder", queries=10)
    assert ladder.certificate.route == "ladder"
    assert ladder.score(GaussianNB()).about == "best"


def test_one_last_query_has_the_limits_of_the_theorem() -> None:
    """Exactly: the slope is fixed for an average of 0.85, and each side has half of 0.05."""
    guard = make(queries=1, mechanism=None)
    average = float((cross_val_predict(GaussianNB(), X, Y, cv=SPLITS) == Y).mean())
    answer = guard.score(GaussianNB())
    assert answer.value == pytest.approx(average, abs=1e-6)
    depth = np.log(40) / 599

    def lower(mean: float) -> float:
        best = entropy_lower(0.85, 599.0, -np.log(40))
        slope = np.log(0.85 * (1 - best) / (best * 0.15))
        return float((np.exp(slope * mean - depth) - 1) / (np.exp(slope) - 1))

    assert answer.interval == pytest.approx((lower(average), 1 - lower(1 - average)), abs=1e-5)
    assert guard.status.exhausted == "queries"


def test_claims_about_fixed_truths_are_not_certified_for_folds_nor_those_about_folds_elsewhere() -> None:
    model = make().dependence
    fixed = certify_parameters(model, ClaimsParameters(inflation=3.0001))
    assert fixed.route == "none"
    assert "functions of the records" in str(fixed.routes.loc["claims", "why_not"])
    assert certify_parameters(Independent(1797), FoldClaimsParameters(599.0, 3.0001)).route == "none"
    assert certify_parameters(model, FoldClaimsParameters(599.0, 3.0001)).route == "fold claims"
    for careless in (FoldClaimsParameters(1797.0, 3.0001), FoldClaimsParameters(599.0, 1.0)):
        assert "the mechanism was given" in str(
            certify_parameters(model, careless).routes.loc["fold claims", "why_not"]
        )
    with pytest.raises(InputError, match="KFoldGuard"):
        Thresholdout((X, Y), mechanism=FoldClaimsParameters(599.0, 3.0001))


def test_groups_stay_together_and_count() -> None:
    groups = np.arange(1797) // 9
    guard = make(groups=groups, cv=2, queries=2, mechanism=Claims(holdout_answers=1))
    assert list(guard.folds.columns) == ["records", "groups", "train", "inflation"]
    assert guard.folds["groups"].sum() == 200
    assert guard.folds["records"].sum() == 1797
    assert (guard.folds["train"] == 1797 - guard.folds["records"]).all()
    assert guard.folds["inflation"].between(8.9, 9.0).all()
    assert guard.dependence.variance_inflation() == pytest.approx(18.0, rel=0.01)
    by_model = make(dependence=Groups(groups), cv=2, queries=2, mechanism=Claims(holdout_answers=1))
    assert by_model.dependence.fingerprint() == guard.dependence.fingerprint()
    by_hand = make(groups=groups, cv=GroupKFold(2), queries=2, mechanism=Claims(holdout_answers=1))
    assert by_hand.folds["groups"].tolist() == [100, 100]


def test_a_dependence_model_needs_folds_that_are_unions_of_its_groups() -> None:
    pairs = Groups(np.arange(100) // 2)
    blocks = np.arange(100) // 10
    folds = make_folds(100, 5, groups=blocks, dependence=pairs)
    assert fold_model(100, folds, blocks, pairs).squares().tolist() == [40] * 5  # ten pairs in each fold
    for cv in (
        KFold(5, shuffle=True, random_state=0),
        [(np.arange(51, 100), np.arange(51)), (np.arange(51), np.arange(51, 100))],
    ):
        with pytest.raises(InputError, match="trains on groups that it tests"):
            make_folds(100, cv, dependence=pairs)
    with pytest.raises(InputError, match="divide a group of the dependence model"):
        make_folds(100, 5, groups=np.arange(100), dependence=pairs)
    for model in (MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=100), MovingWindow(100, 3)):
        with pytest.raises(InputError, match="folds depend on each other"):
            make_folds(100, 5, dependence=model)
    import networkx as nx

    edges = nx.Graph([(0, 1), (2, 3)])
    edges.add_nodes_from(range(100))
    with pytest.raises(InputError, match="several components"):
        make_folds(100, 5, dependence=DependencyGraph(edges))
    assert len(make_folds(100, 5, dependence=MovingWindow(100, 0))) == 5
    assert len(make_folds(100, 5, dependence=Independent(100))) == 5


@for_each(
    ("cv", "expected"),
    [
        (StratifiedKFold(3), "uses no labels"),
        (StratifiedGroupKFold(3), "uses no labels"),
        (RepeatedKFold(n_splits=3), "partition"),
        (ShuffleSplit(3), "partition"),
        (TimeSeriesSplit(3), "partition"),
        (1, "from 2 to 1797"),
        (1798, "from 2 to 1797"),
        (True, "a number of folds"),
        ("five", "a number of folds"),
        ([(np.arange(5), np.arange(1797))], "at least two"),
        (
            [(np.arange(900), np.arange(900)), (np.arange(900), np.arange(900, 1797))],
            "trains on records that it tests",
        ),
        ([(np.arange(0), np.arange(900)), (np.arange(900), np.arange(900, 1797))], "records on both sides"),
        ([(np.array([0.5]), np.arange(900)), (np.arange(900), np.arange(900, 1797))], "positions"),
        (LeaveOneGroupOut(), "uses no labels"),
    ],
)
def test_folds_that_are_refused(cv: Any, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        make(cv=cv)


def test_a_splitter_sees_neither_records_nor_labels() -> None:
    class Curious:
        seen: tuple[Any, Any] = (None, None)

        def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
            self.seen = (X, y)
            return KFold(2).split(X)

    curious = Curious()
    make(cv=curious, queries=5)
    assert np.ptp(curious.seen[0]) == 0.0
    assert curious.seen[1] is None


class Broken(GaussianNB):  # type: ignore[misc]
    def fit(self, X: Any, y: Any) -> "Broken":
        raise RuntimeError(f"the first label is {y[0]}")


class Short(GaussianNB):  # type: ignore[misc]
    """It leaves the last prediction out."""

    def predict(self, X: Any) -> Any:
        return super().predict(X)[:-1]


class Partial(DummyClassifier):  # type: ignore[misc]
    """It is fitted to later records only, predicts no multiples of 7, and has NaN for multiples of 5."""

    def fit(self, X: Any, y: Any) -> "Partial":
        if X[0, 0] < 50.0:
            raise RuntimeError("too early")
        super().fit(X, y)
        return self

    def predict_proba(self, X: Any) -> Any:
        if (X[:, 0] % 7 == 0).any():
            raise ValueError(f"a record: {X[0, 0]}")
        found = np.tile([0.75, 0.25], (len(X), 1))
        found[X[:, 0] % 5 == 0] = np.nan
        return found

    def predict(self, X: Any) -> Any:
        return self.predict_proba(X)[:, 1] * 4.0


@for_each(("metric", "value", "worst"), [(brier_score(), 0.5625, 1.0), (accuracy(), 1.0, 0.0)])
def test_what_cannot_be_fitted_or_predicted_has_the_worst_value(metric: Metric, value: float, worst: float) -> None:
    """Whatever else is in its fold: a record's value is a function of it and the other folds."""
    labels = np.ones(100)
    labels[[49, 99]] = 0.0  # the models know both
    for places in (
        np.arange(100.0),
        np.where(np.arange(100) % 50 < 25, np.arange(100.0), 1.0 + np.arange(100) // 50 * 50),
    ):
        guard = KFoldGuard((places[:, None], labels), cv=PredefinedSplit(np.arange(100) // 50))
        found = guard._values(Partial(), metric, places[:, None], labels, None)
        told = (places % 5 != 0) & (places % 7 != 0) & (np.arange(100) < 50)  # by the model of the later records
        expected = np.where(
            told, np.where(labels == 1.0, value, 0.0625 if metric.name == "brier_score" else 0.0), worst
        )
        assert found.tolist() == expected.tolist()


@for_each("report", ["all", "best"])
def test_models_that_fail_leave_a_list_its_answers(report: Any) -> None:
    guard = make(queries=20, mechanism=None)
    answers = guard.score_all([GaussianNB(), Broken()], report=report)
    average = (cross_val_predict(GaussianNB(), X, Y, cv=SPLITS) == Y).mean()
    assert answers[0].interval[0] < average < answers[0].interval[1]
    assert (answers[0].interval[0] > 0.5, answers[-1].interval[0] == 0.0) == (True, report == "all")
    assert "failed" not in set(guard.history["source"])
    assert guard.status.exhausted is None
    later = guard.score(GaussianNB(var_smoothing=1e-3), expected=0.85)
    assert later.half_width < 0.2
    assert guard.score(Broken(), "zero_one_loss").interval[1] == 1.0


def test_values_of_a_fold_are_one_for_each_record() -> None:
    """A metric that returns a fold's mean would make its records depend on each other."""
    mean = Metric("mean", "predict_proba", lambda y, told, classes: np.asarray(told[:, 1].mean()), (0.0, 1.0), True)
    guard = make()
    with pytest.raises(InputError, match="could show records"):
        guard.score(GaussianNB(), mean)


def test_refusals_come_before_charges_and_failures_are_charged_without_their_message() -> None:
    guard = make()
    refused: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
        (GaussianNB(), "roc_auc", {}, InputError, "a mean over records"),
        (GaussianNB(), "accuracy", {"expected": 1.5}, InputError, r"expected must be a number in \[0, 1\].*; got 1.5"),
        (GaussianNB(), "accuracy", {"expected": float("nan")}, InputError, "expected"),
        (SVC(), "brier_score", {}, InputTypeError, "without predict_proba"),
        (GaussianNB, "accuracy", {}, InputTypeError, "estimator"),
        (FrozenEstimator(GaussianNB().fit(X, Y)), "accuracy", {}, InputError, "frozen"),
        (make_pipeline(FrozenEstimator(GaussianNB().fit(X, Y))), "accuracy", {}, InputError, "frozen"),
        (VotingClassifier([("a", FrozenEstimator(GaussianNB().fit(X, Y)))]), "accuracy", {}, InputError, "frozen"),
        (Holding([{"b": FrozenEstimator(GaussianNB().fit(X, Y))}]), "accuracy", {}, InputError, "frozen"),
    ]
    for estimator, metric, changes, error, expected in refused:
        with pytest.raises(error, match=expected):
            guard.score(estimator, metric, **changes)
    assert guard.history.empty
    with pytest.raises(InputError, match="could show records") as caught:
        guard.score(Short())
    assert "predictions" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert guard.status.answers_left == 3
    assert guard.answers == []
    guard.score(GaussianNB())
    assert guard.history["train"].iloc[-1] == 0.5  # a failure is no last answer


def test_a_key_is_answered_once_and_fits_nothing_then(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ledger": tmp_path / "guard.db", "random_state": None}
    first = make(**settings).score(GaussianNB(), key="naive")
    guard = make(**settings)
    again = guard.score(Broken(), key="naive")
    assert again.repeated
    assert again.value == first.value
    assert len(guard.history) == 1
    with pytest.raises(InputError, match="key"):
        guard.score(GaussianNB(), "zero_one_loss", key="naive")


def test_an_estimator_is_known_again_by_its_parameters(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ledger": tmp_path / "guard.db", "random_state": None}
    guard = make(**settings)
    first = guard.score(GaussianNB())
    fitted = GaussianNB().fit(X[:100], Y[:100])  # a clone is fitted, which knows nothing of this
    again = make(**settings).score(fitted)
    assert again.repeated
    assert (again.value, again.interval) == (first.value, first.interval)
    assert not guard.score(GaussianNB(var_smoothing=1e-3)).repeated
    assert not guard.score(GaussianNB(), "zero_one_loss").repeated
    assert not guard.score(GaussianNB(), expected=0.8).repeated  # another query: more is said of it
    assert not guard.score(GaussianNB(), key="once more").repeated
    assert len(guard.history) == 5


def test_a_list_is_narrower_than_its_queries_one_by_one_and_known_again() -> None:
    smoothings = [1e-9, 1e-6, 1e-4, 1e-2, 1e-3]
    models = {f"smoothing {one:g}": GaussianNB(var_smoothing=one) for one in smoothings}
    guard = make(queries=20, mechanism=None)
    together = guard.score_all([*models.values(), models["smoothing 1e-09"]])
    assert [answer.repeated for answer in together] == [False] * 5 + [True]
    assert guard.status.asked == 5
    averages = [(cross_val_predict(model, X, Y, cv=SPLITS) == Y).mean() for model in models.values()]
    for answer, average in zip(together, averages, strict=False):
        assert answer.interval[0] < average < answer.interval[1]
        assert answer.value == pytest.approx(average, abs=0.02)
    assert guard.score(models["smoothing 1e-06"]).repeated  # by the same content
    alone = make(queries=20, mechanism=None)
    one_by_one = [alone.score(model) for model in models.values()]
    assert max(one.half_width for one in together) < min(one.half_width for one in one_by_one)
    best = make(queries=20, mechanism=None)
    (told,) = best.score_all(models, report="best")
    assert told.candidate == list(models)[int(np.argmax(averages))]
    assert best.status.asked == 1
    left, after_all = best.status.error_budget_left, guard.status.error_budget_left
    assert left is not None
    assert after_all is not None
    assert left > after_all
    assert best.score_all(models, report="best")[0].repeated
    with pytest.raises(InputError, match="one for each model"):
        guard.score_all(models, expected=[0.8])
    with pytest.raises(BudgetExhausted):
        guard.score_all([GaussianNB(var_smoothing=10.0**k) for k in range(16)])
    with pytest.raises(InputError, match="'claims' for a list of queries; got a ladder"):
        make(mechanism="ladder").score_all(models)
    before = guard.status
    with pytest.raises(InputError, match="could show records"):
        guard.score_all([Short(), GaussianNB(var_smoothing=1.0)])
    assert guard.status.asked == before.asked + 1  # charged once
    with pytest.raises(InputError, match="failed"):
        guard.score_all([Short(), GaussianNB(var_smoothing=1.0)])
    assert guard.status.asked == before.asked + 1


def test_a_width_can_be_declared() -> None:
    guard = make(mechanism=Claims(max_half_width=0.07), queries=10)
    assert guard.score(GaussianNB(), expected=0.9).half_width < 0.09
    before = guard.status
    with pytest.raises(BudgetExhausted, match="max_half_width"):
        guard.score(GaussianNB(), expected=0.5)
    assert guard.status == before
    with pytest.raises(InputError, match="alone for out-of-fold averages"):
        make(mechanism=Claims(epsilon=1.0))


@pytest.mark.slow
def test_a_report_says_what_a_guard_of_folds_does(tmp_path: Path) -> None:
    guard = make(ledger=tmp_path / "guard.db", random_state=None)
    assert "each answer's own interval contains the truth" in guard.certificate.statement
    guard.score(GaussianNB())
    page = tmp_path / "report.html"
    result = CliRunner().invoke(main, ["guard", "report", str(tmp_path / "guard.db"), "--output", str(page)])
    assert result.exit_code == 0, result.output
    assert "tells in which cell of the range it lies" in page.read_text()


def test_the_same_records_in_a_ledger_share_one_budget(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ledger": tmp_path / "guard.db", "random_state": None, "queries": 3}
    make(**settings).score(GaussianNB(), expected=0.1)
    second = make(**settings)
    assert (len(second.history), second.status.answers_left) == (1, 3 if second.answers[0].source == "holdout" else 4)
    with pytest.raises(LedgerMismatch):
        make(**settings, cv=KFold(3, shuffle=True, random_state=1))  # other folds
    with pytest.raises(LedgerMismatch):
        Thresholdout((X, Y), queries=3, mechanism=Claims(holdout_answers=4), ledger=settings["ledger"])
    second.score(GaussianNB())
    second.score(GaussianNB(var_smoothing=1e-3))
    assert second.status.exhausted == "queries"
    with pytest.raises(BudgetExhausted):
        second.score(Broken())  # nothing is fitted any more
    assert second.status.answers_left is not None


def test_searches_inside_are_fitted_anew_in_every_fold() -> None:
    guard = make(queries=5)
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 6]}, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = guard.score(search, expected=0.78)
    assert answer.half_width < 0.5


def test_folds_tell_nothing_about_labels() -> None:
    shuffled = np.random.default_rng(1).permutation(Y)
    other = KFoldGuard((X, shuffled), cv=3, queries=20, mechanism=Claims(holdout_answers=4), random_state=0)
    pd.testing.assert_frame_equal(make().folds, other.folds)


def test_copies_and_pickles_are_the_guard_itself() -> None:
    guard = make()
    assert copy.copy(guard) is copy.deepcopy(guard) is pickle.loads(pickle.dumps(guard)) is guard
    assert X[3:9].tobytes() not in pickle.dumps(guard)
    assert repr(guard) == (
        "<KFoldGuard: 1797 out-of-fold values in 3 folds of 599, of independent records; "
        "4 answers from the records left>"
    )
    with pytest.raises(InputError, match="mechanism"):
        make(mechanism="leaderboard")
    assert origin(guard, X) == "holdout"


class Holding(DummyClassifier):  # type: ignore[misc]
    """Has an estimator somewhere in a parameter."""

    def __init__(self, parts: Any = None) -> None:
        super().__init__()
        self.parts = parts


class Chatty(GaussianNB):  # type: ignore[misc]
    """Warns of a record."""

    def predict(self, X: Any) -> Any:
        warnings.warn(f"the first record is {X[0]}", UserWarning, stacklevel=2)
        return super().predict(X)


def test_warnings_that_could_show_records_are_silent() -> None:
    guard = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert guard.score(Chatty()).query == 1
    assert caught == []


def elsewhere(guard: Any, smoothing: float) -> tuple[Any, ...]:
    answer = guard.score(GaussianNB(var_smoothing=smoothing), key=f"smoothing {smoothing}")
    return (
        type(guard).__name__,
        answer,
        origin(guard, X, Y),
        guard.n,
        guard.status.exhausted,
        len(guard.folds),
        repr(guard),
    )


@pytest.mark.slow
def test_other_processes_ask_the_one_guard() -> None:
    guard = make()
    found = Parallel(n_jobs=2)(delayed(elsewhere)(guard, s) for s in (1e-9, 1e-2, 1e-9, 1e-2))
    assert {one[0] for one in found} == {"_RemoteKFoldGuard"}
    assert len(guard.history) == 2
    assert sorted({one[1].value for one in found}) == sorted({answer.value for answer in guard.answers})
    assert {one[2:6] for one in found} == {("holdout", 1797, None, 3)}
    assert all("; in process" in one[6] for one in found)
    here, there = guard.score(GaussianNB(), key="smoothing 1e-09"), found[0][1]
    assert (here.value, here.query) == (there.value, there.query)
