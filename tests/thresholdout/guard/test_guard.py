import copy
import gc
import math
import os
import pickle
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

from graphs import Groups, MarkovChain
from tests.cases import for_each
from tests.thresholdout.guards import N, data, make
from thresholdout import BudgetExhausted, Claims, SparseVector, Thresholdout
from thresholdout.errors import (
    InputError,
    InputTypeError,
    LedgerMismatch,
    SharingError,
)
from thresholdout.ledger import MemoryLedger
from thresholdout.mechanisms import (
    ClaimsParameters,
)
from thresholdout.noise.sources import SeededNoise
from thresholdout.scoring.metrics import log_loss, squared_error


def test_agreement_is_answered_from_training_and_costs_nothing() -> None:
    guard = make()
    values = np.arange(N) % 4 == 0
    answer = guard.ask(values, values)
    assert (answer.value, answer.source, answer.query, answer.remaining) == (0.25, "train", 1, 3)
    assert float(answer) == 0.25
    assert guard.status.answers_left == 3


def test_disagreement_is_answered_from_the_holdout_within_the_half_width() -> None:
    guard = make()
    answer = guard.ask(np.ones(N), np.arange(N) % 4 == 0, name="overfitted")
    assert answer.source == "holdout"
    assert answer.remaining == guard.status.answers_left == 2
    assert answer.name == "overfitted"
    assert abs(answer.value - 0.25) <= answer.half_width
    lower, upper = answer.interval
    assert 0 <= lower <= answer.value <= upper <= 1


def test_refuses_when_the_budget_is_spent_and_nothing_changes() -> None:
    guard = make(mechanism=Claims(holdout_answers=2))
    for _ in range(2):
        assert guard.ask(1.0, np.zeros(N)).source == "holdout"
    before = guard.history
    for _ in range(3):
        with pytest.raises(BudgetExhausted, match="All 2 answers") as caught:
            guard.ask(0.0, np.zeros(N))
        assert (caught.value.what, caught.value.spent, caught.value.limit) == ("budget", 2, 2)
    assert guard.status.answers_left == 0
    assert guard.history.equals(before)


def test_refuses_after_the_declared_number_of_queries() -> None:
    guard = make(queries=3)
    for _ in range(3):
        guard.ask(0.5, np.arange(N) % 2)
    with pytest.raises(BudgetExhausted, match="All 3 queries") as caught:
        guard.ask(0.5, np.arange(N) % 2)
    assert caught.value.what == "queries"


def test_other_ranges_scale_answers_and_half_widths() -> None:
    unit, wide = make(random_state=3), make(random_state=3)
    values = (np.arange(N) % 4 == 0).astype(float)
    one = unit.ask(0.9, values)
    other = wide.ask(10 + 0.9 * 40, 10 + 40.0 * values, bounds=(10, 50))
    assert one.source == other.source == "holdout"
    assert other.value == pytest.approx(10 + 40 * one.value)
    assert other.half_width == pytest.approx(40 * one.half_width)
    assert (other.lower, other.upper) == (10, 50)


def test_a_repeated_key_gives_the_same_answer_and_costs_nothing() -> None:
    guard = make()
    first = guard.ask(1.0, np.zeros(N), key="k")
    again = guard.ask(1.0, np.zeros(N), key="k")
    assert (again.value, again.query, again.remaining) == (first.value, first.query, first.remaining)
    assert again.repeated
    assert not first.repeated
    assert guard.status.answers_left == 2
    with pytest.raises(InputError, match="key"):
        guard.ask(0.5, np.zeros(N), key="k")
    for _ in range(2):
        guard.ask(1.0, np.zeros(N))
    assert guard.ask(1.0, np.zeros(N), key="k").value == first.value  # also when the budget is spent


def test_a_callable_is_applied_to_both_parts() -> None:
    guard = make()
    answer = guard.ask(lambda X, y: (X[:, 0] > 0) == y)
    X, y = data(1)
    assert answer.source == "train"
    assert answer.value == ((X[:, 0] > 0) == y).mean()


def test_an_error_on_the_holdout_does_not_show_it() -> None:
    guard = make()
    secret = data(0)[0][17, 0]

    def query(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if X[17, 0] == secret:
            raise RuntimeError(f"the record is {X[17, 0]}")
        return np.asarray(y)

    with pytest.raises(InputError, match="failed on the holdout") as caught:
        guard.ask(query)
    shown = "".join(traceback.format_exception(caught.value))
    assert str(secret) not in shown
    assert "RuntimeError" not in shown  # one letter, whatever failed
    assert guard.status.answers_left == 2
    (row,) = guard.history.to_dict("records")
    assert (row["source"], row["value"], row["low"], row["high"]) == ("failed", row["train"], 0.0, 1.0)


@for_each(
    "mechanism",
    [Claims(holdout_answers=3), "ladder"],
)
def test_a_failure_on_the_holdout_is_charged_like_an_answer_and_is_not_an_answer(mechanism: object) -> None:
    """Otherwise crashes would tell about the holdout for free."""
    guard = make(mechanism=mechanism, queries=4, sampling="iid")
    first = data(0)[0][0, 0]

    def query(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if X[0, 0] == first:
            raise KeyError("no such category")
        return np.asarray(y)

    for attempt in range(3):
        before = guard.status.answers_left
        with pytest.raises(InputError, match="failed on the holdout"):
            guard.ask(query, key=f"query {attempt}")
        assert before is not None
        assert (guard.status.answers_left or 0) < before
    with pytest.raises(InputError, match="a query that failed on the holdout and was charged"):
        guard.ask(lambda X, y: np.asarray(y), key="query 0")
    assert list(guard.history["source"]) == ["failed"] * 3
    if isinstance(mechanism, Claims):
        assert guard.status.exhausted == "budget"
    else:
        guard.ask(lambda X, y: np.asarray(y))
    if mechanism == "ladder":  # the first score that there is opens the ladder
        assert guard.history["value"].iloc[-1] == pytest.approx(data(0)[1].mean(), abs=0.02)


def test_nothing_is_computed_on_the_holdout_for_a_guard_that_answers_no_more() -> None:
    guard = make(queries=1)
    before = guard.status.exhausted
    guard.ask(lambda X, y: np.asarray(y))
    assert (before, guard.status.exhausted) == (None, "queries")
    seen = []

    def query(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        seen.append(X[0, 0])
        return np.asarray(y)

    with pytest.raises(BudgetExhausted):
        guard.ask(query)
    assert seen == [data(1)[0][0, 0]]


def test_values_computed_on_the_holdout_are_clipped_to_the_range() -> None:
    """A function of each record alone; a refusal would depend on all of them."""
    guard = make(queries=2)
    last, centre = data(0)[0][-1, 0], data(0)[0][:, 0]
    expected = np.clip(np.where(centre > 1, np.nan_to_num(centre, nan=0.0), centre), 0, 1).mean()

    def query(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        values = X[:, 0].copy() if X[-1, 0] == last else np.full(len(X), 0.3)
        if X[-1, 0] == last:
            values[X[:, 0] < -1] = np.nan
        return values

    answer = guard.ask(query)
    assert answer.source == "holdout"
    assert abs(answer.value - expected) <= answer.half_width


@pytest.mark.slow
@for_each(
    ("train", "holdout", "bounds", "message"),
    [
        (np.full(N, 0.5), np.full(N - 1, 0.5), (0, 1), "holdout_values must be .*; got 1999 values"),
        (np.full(N - 1, 0.5), np.full(N, 0.5), (0, 1), "train_values must be .*; got 1999 values"),
        (0.5, np.full(N, np.nan), (0, 1), "holdout_values must be .*nan at position 0"),
        (np.full(N, 1.5), np.full(N, 0.5), (0, 1), "train_values must be .*1.5 at position 0"),
        (1.5, np.full(N, 0.5), (0, 1), "train_values must be .*1.5"),
        (math.nan, np.full(N, 0.5), (0, 1), "train_values must be .*nan"),
        (0.5, None, (0, 1), "holdout_values is missing: pass"),
        (0.5, np.full(N, 0.5), (1, 0), "bounds"),
        (np.mean, np.full(N, 0.5), (0, 1), "holdout_values must be None beside a callable"),
    ],
)
def test_bad_queries_spend_nothing(train: object, holdout: object, bounds: tuple[float, float], message: str) -> None:
    noise = SeededNoise(0)
    guard = make(random_state=noise)
    with pytest.raises(InputError, match=message):
        guard.ask(train, holdout, bounds=bounds)
    assert guard.history.empty
    untouched = SeededNoise(0)
    untouched_guard = make(random_state=untouched)
    assert guard.ask(1.0, np.zeros(N)).value == untouched_guard.ask(1.0, np.zeros(N)).value


def test_score_is_the_metric_on_the_training_part_when_they_agree() -> None:
    guard = make(mechanism=SparseVector(0.1, 0.0005, budget=3))  # differs with probability below 1e-9
    X, y = data(1)
    model = LogisticRegression().fit(X, y)
    answer = guard.score(model, cv="training")
    assert answer.value == model.score(X, y)
    assert answer.name == "accuracy"
    loss = guard.score(model, log_loss(5.0), cv="training")
    assert 0.6 < loss.value < 0.75
    assert 0.1 < loss.half_width <= 5 * guard.certificate.half_width(2, 0, "train") * (1 + 1e-9)
    with pytest.raises(InputError, match="clip"):
        guard.score(model, "squared_error", cv="training")
    assert guard.score(model, squared_error(1.0), cv="training").upper == 1.0
    assert len(guard.history) == 3


def test_intervals_of_scores_contain_what_new_records_show() -> None:
    """An accuracy by exact binomial limits, a loss by bets."""
    guard = make(queries=None, mechanism=None)
    model = LogisticRegression().fit(*data(1))
    X, y = data(99, 400_000)
    right, probability = model.predict(X) == y, model.predict_proba(X)[:, 1]
    losses = -np.log(np.where(y == 1, probability, 1 - probability))
    scores = (("accuracy", 1.0, right), (log_loss(5.0), 5.0, np.minimum(losses, 5.0)))
    for metric, width, fresh in scores:
        answer = guard.score(model, metric, cv="training")
        low, high = answer.interval
        assert low < fresh.mean() < high
        assert answer.half_width < 3 * width * math.sqrt(math.log(40) / (2 * N))  # a fixed mean's, by Hoeffding
        assert (answer.lower, answer.upper) == (0.0, width)
    assert guard.history["half_width"].iloc[1] < 0.05  # losses vary by 0.1 or less, in a range of 5


def test_cross_validated_training_values_spend_less() -> None:
    X, y = data(1, 200)
    X = np.hstack([X, np.random.default_rng(5).normal(size=(200, 150))])
    holdout = np.hstack([data(0)[0], np.random.default_rng(6).normal(size=(N, 150))]), data(0)[1]
    guard = Thresholdout(holdout, train=(X, y), queries=50, mechanism=Claims(holdout_answers=3))
    model = LogisticRegression(C=1e3, max_iter=3000).fit(X, y)
    assert guard.score(model, cv=5).source == "train"
    assert guard.score(model, cv="training").source == "holdout"  # fits its training records perfectly


def test_history_shows_nothing_secret() -> None:
    guard = make()
    secret = np.arange(N) % 7 == 0
    guard.ask(0.5, np.arange(N) % 2, name="b")
    guard.ask(1.0, secret, name="a")
    history = guard.history
    assert list(history["source"]) == ["train", "holdout"]
    assert list(history["remaining"]) == [3, 2]
    assert not np.isin(secret.mean(), history.select_dtypes("float").to_numpy())
    assert {"query", "name", "train", "value", "half_width"} <= set(history.columns)


def test_the_representation_shows_no_data() -> None:
    guard = make()
    assert "2000 independent records" in repr(guard)
    assert "simulation" not in repr(guard)
    assert "simulation only" in repr(make(random_state=0))


def test_a_guard_is_not_copied() -> None:
    guard = make()
    assert copy.copy(guard) is guard
    assert copy.deepcopy(guard) is guard
    assert clone(guard, safe=False) is guard
    assert pickle.loads(pickle.dumps(guard)) is guard


def test_a_forked_process_cannot_spend_a_budget_in_memory() -> None:
    guard = make()
    reader, writer = os.pipe()
    if os.fork() == 0:  # pragma: no branch
        try:
            guard.ask(1.0, np.zeros(N))
            os.write(writer, b"answered")
        except SharingError:
            os.write(writer, b"refused")
        finally:
            os._exit(0)
    assert os.read(reader, 20) == b"refused"
    assert guard.status.answers_left == 3


@pytest.mark.slow
def test_a_guard_goes_on_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    first = make(ledger=path)
    answers = [first.ask(0.5, np.arange(N) % 2), first.ask(1.0, np.zeros(N), key="a")]
    told = first.status.information_released
    del first
    gc.collect()
    second = make(ledger=path)
    assert second.status.answers_left == 2
    assert second.status.information_released == told
    assert list(second.history["value"]) == [a.value for a in answers]
    assert second.ask(1.0, np.zeros(N), key="a").value == answers[1].value
    assert second.ask(0.5, np.arange(N) % 2).query == 3
    assert second.parameters == make().parameters


@pytest.mark.slow
@for_each(
    "changes",
    [
        {"mechanism": Claims(holdout_answers=4)},
        {"queries": 51},
        {"confidence": 0.9},
        {"dependence": Groups(np.arange(N) // 2)},
        {"mechanism": SparseVector(0.1, 0.01, budget=3, grid=0.125)},
        {"random_state": 0},
    ],
)
def test_a_file_is_not_opened_with_another_declaration(tmp_path: Path, changes: dict[str, object]) -> None:
    path = tmp_path / "guard.db"
    make(ledger=path)
    before = path.read_bytes()
    with pytest.raises(LedgerMismatch, match="declared with"):
        make(ledger=path, **changes)
    assert path.read_bytes() == before


def test_a_file_is_not_opened_with_other_data(tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    make(ledger=path)
    with pytest.raises(LedgerMismatch, match="another holdout"):
        Thresholdout(data(7), train=data(1), queries=50, mechanism=Claims(holdout_answers=3), ledger=path)
    X, y = data(0)
    same = X.tolist(), y.astype(float)
    assert Thresholdout(same, train=data(1), queries=50, mechanism=Claims(holdout_answers=3), ledger=path).history.empty


def test_several_guards_may_share_a_ledger_object() -> None:
    with MemoryLedger() as ledger:
        make(ledger=ledger).ask(1.0, np.zeros(N))
        other = Thresholdout(data(7), queries=50, mechanism=Claims(holdout_answers=3), ledger=ledger)
        assert other.status.answers_left == 3
        assert make(ledger=ledger).status.answers_left == 2


def test_plot_shows_answers_and_sources() -> None:
    guard = make()
    guard.ask(0.5, np.arange(N) % 2)
    guard.ask(1.0, np.zeros(N))
    axes = guard.report().plot()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["interval", "training value", "answer, from train", "answer, from holdout"]


MECHANISMS = [
    "claims",
    "ladder",
]


@pytest.mark.slow
@for_each("mechanism", MECHANISMS, ids=str)
@for_each("dependence", [None, Groups(np.arange(N) // 4)], ids=["independent", "groups"])
def test_every_mechanism_answers_within_its_half_width_and_goes_on(
    tmp_path: Path, mechanism: object, dependence: Groups | None
) -> None:
    def reopened() -> Thresholdout:
        return make(
            queries=12, mechanism=mechanism, dependence=dependence, sampling="iid", ledger=tmp_path / "guard.db"
        )

    guard, best = reopened(), 0.0
    for k in range(1, 7):
        truth = 1 - k / 10
        best = max(best, truth)
        answer = guard.ask(truth, np.arange(N) % 10 >= k, key=str(k))
        assert abs(answer.value - (best if answer.about == "best" else truth)) <= answer.half_width < 1
        assert answer.half_width <= guard.certificate.tolerance + 2 * math.ulp(1.0)  # its ends are rounded outwards
        assert (answer.about == "best") == (mechanism == "ladder")
    again = reopened()
    assert again.status.answers_left == guard.status.answers_left
    assert again.parameters == guard.parameters
    assert again.history.equals(guard.history)
    assert again.ask(0.4, np.arange(N) % 10 >= 6, key="6").repeated
    assert again.ask(0.5, np.arange(N) % 2).query == 7


@pytest.mark.slow
def test_a_mechanism_knows_the_dependence_and_the_confidence() -> None:
    chain = MarkovChain([[0.9, 0.1], [0.1, 0.9]], n=N)
    ladder = make(mechanism="ladder", dependence=chain, confidence=0.9).parameters
    assert ladder.inflation == chain.variance_inflation()  # type: ignore[attr-defined]
    assert ladder.confidence == 0.9  # type: ignore[attr-defined]
    claims = make(mechanism=ClaimsParameters(inflation=1.0, n_train=N), dependence=chain, confidence=0.9)
    assert claims.parameters.inflation == chain.variance_inflation()  # type: ignore[attr-defined]
    assert claims.parameters.confidence == 0.9  # type: ignore[attr-defined]
    assert claims.status.error_budget_left == pytest.approx(0.1)
    assert claims.certificate.route == "claims"


def test_nobody_else_can_change_the_holdout() -> None:
    X, y = data(0)
    guard = Thresholdout((X, y), train=data(1), queries=50, mechanism=Claims(holdout_answers=3))
    before = guard.ask(lambda X, y: X[:, 0] > 1).value
    X[:, 0] = 5.0  # the caller's own array

    def spoil(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        X[:, 0] += 5.0
        return np.asarray(y)

    with pytest.raises(InputError, match="raises ValueError on the training part") as caught:
        guard.ask(spoil)
    assert "read-only" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="read-only"):
        spoil(*guard.train)
    frames = tuple(pd.DataFrame(data(seed)[0], columns=list("abc")) for seed in (0, 1))
    framed = Thresholdout(
        (frames[0], y), train=(frames[1], data(1)[1]), queries=50, mechanism=Claims(holdout_answers=3)
    )

    def write(frame: pd.DataFrame, y: np.ndarray) -> np.ndarray:
        frame["a"] = 5.0
        return np.asarray(y)

    framed.ask(write)
    assert framed.ask(lambda frame, y: frame["b"] > 1).source == "train"
    assert framed._records.holdout[0]["a"].max() < 5.0
    assert guard.ask(lambda X, y: X[:, 0] > 1).value == before
    assert np.array_equal(guard._records.holdout[0], data(0)[0])


def test_errors_about_holdout_values_computed_here_show_nothing() -> None:
    guard = make()
    secret = data(0)[0][:, 0]

    def query(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.array([f"{v}!" for v in X[:, 0]]) if X[0, 0] == secret[0] else np.zeros(N)

    with pytest.raises(InputError, match="failed on the holdout") as caught:
        guard.ask(query)
    assert f"{secret[0]}" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(InputError, match="failed on the holdout"):
        guard.ask(lambda X, y: np.zeros(N - (X[0, 0] == secret[0])))
    assert caught.value.__cause__ is caught.value.__context__ is None or caught.value.__suppress_context__


@for_each("bounds", [(1e16, 1e16 + 2), (1.7e18, 1.7e18 + 1000), (1e15, 1e15 + 1)])
def test_ranges_that_floats_do_not_resolve_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="Subtract an offset"):
        make().ask(bounds[0], np.full(N, bounds[0]), bounds=bounds)


def test_a_range_far_from_zero_pays_for_its_rounding() -> None:
    lower, upper = 1e9, 1e9 + 1
    near, far = make(random_state=0), make(random_state=0)
    one = near.ask(1.0, np.zeros(N))
    other = far.ask(upper, np.full(N, lower), bounds=(lower, upper))
    assert other.half_width >= one.half_width + math.ulp(upper)
    assert other.half_width == pytest.approx(one.half_width, abs=1e-6)


@pytest.mark.slow
def test_any_number_of_answers_from_the_holdout_never_raises() -> None:
    guard = make(mechanism=SparseVector(1e-6, 1e-9, budget=None, grid=1 / 64), queries=None, random_state=1)
    sources = {guard.ask(0.9, np.arange(N) % 2).source for _ in range(1500)}
    assert sources == {"holdout"}
    assert (guard.history["low"].min(), guard.history["high"].max()) == (0.0, 1.0)


def test_a_key_names_one_query_with_its_range() -> None:
    guard = make()
    guard.ask(0.25, np.arange(N) % 4 == 0, key="a")
    with pytest.raises(InputError, match="key"):
        guard.ask(0.25, np.arange(N) % 4 == 0, key="a", bounds=(0, 10))


@for_each(("holdout", "error"), [([data(0)[0], data(0)[1]], InputTypeError), ({"X": data(0)[0]}, InputTypeError)])
def test_a_list_or_a_dict_of_arrays_is_no_tuple(holdout: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="tuple"):
        Thresholdout(holdout)


def test_wrong_estimators_spend_nothing() -> None:
    guard = make()
    X, y = data(1)
    with pytest.raises(InputError, match="none is one of the labels"):
        guard.score(LinearRegression().fit(X, y), "accuracy", cv="training")
    with pytest.raises(InputTypeError, match=r"labels of the guard.s type"):
        guard.score(LogisticRegression().fit(X, np.array(["a", "b"])[y]), "accuracy", cv="training")
    assert guard.history.empty


def test_statistics_that_are_no_means() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(2 * N, 2)), rng.integers(0, 2, size=2 * N)
    X[:, 0] += y
    guard = Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), queries=10, mechanism=Claims(holdout_answers=1))
    model = LogisticRegression().fit(X[N:], y[N:])
    answer = guard.score(model, "roc_auc", cv="training")
    assert answer.value == pytest.approx(roc_auc_score(y[N:], model.decision_function(X[N:])))
    assert abs(answer.value - 0.7602) <= answer.half_width  # Phi(1/sqrt 2), the truth for unit normals one apart
    assert answer.half_width > norm.ppf(0.975) * 0.24 * math.sqrt(2 / N)  # that of one query, fixed in advance
    assert guard.status.information_released is not None
    assert (
        0 < guard.status.information_released - math.log(2) < math.log(2)
    )  # a half, for truths that are given the labels
    told = guard.status.information_released
    assert guard.score(model, "f1", cv="training").name == "f1"
    assert guard.status.information_released - told < math.log(2)  # both are paid once
    noisy = Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), queries=10, mechanism="ladder")
    with pytest.raises(InputError, match="mechanism='claims'"):
        noisy.score(model, "roc_auc", cv="training")
    assert noisy.history.empty


def test_a_statistic_that_the_labels_of_the_holdout_do_not_have_is_charged() -> None:
    """That they are of one class would be told for nothing otherwise."""
    X, _ = data(0)
    for settings in (
        {},
        {"queries": 50, "mechanism": Claims(holdout_answers=3)},
        {"mechanism": Claims(max_half_width=0.4)},
    ):
        guard = Thresholdout((X, np.zeros(N, dtype=int)), train=data(1), **settings)
        model = LogisticRegression().fit(*data(1))
        with pytest.raises(InputError, match="failed on the holdout") as caught:
            guard.score(model, "roc_auc", cv="training")
        assert "one class" not in "".join(traceback.format_exception(caught.value))
        assert guard.history["source"].tolist() == ["failed"]
        if guard.status.information_released is not None:
            assert guard.status.information_released == pytest.approx(20 * math.log(2), rel=1e-9)
