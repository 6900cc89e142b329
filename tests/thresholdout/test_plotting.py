"""Pictures of histories: by name where there are few, over the queries otherwise."""

import io
import math
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest

from tests.cases import for_each
from tests.thresholdout.notebook.shown import HARM, shown
from thresholdout import Claims, Thresholdout
from thresholdout.plotting import (
    greater_is_better,
    kinds,
    may_be_best,
    orders,
    plot_history,
    row_names,
    short_names,
    verdict,
)
from thresholdout.scoring.metrics import METRIC_NAMES, Metric, absolute_error, squared_error
from thresholdout.scoring.statistics import (
    Statistic,
    fbeta,
    get_score,
    median_absolute_error,
    r2,
    root_mean_squared_error,
)
from thresholdout.scoring.statistics.scorers import BY_NAME


def history(count: int, *, apart: int = 0, **columns: Any) -> pd.DataFrame:
    """Return answers 0.5, 0.501, ... with intervals of 0.1 to both sides, the first ones far below."""
    values = [0.5 + 0.001 * k - (0.4 if k < apart else 0.0) for k in range(count)]
    frame = pd.DataFrame({"query": range(1, count + 1), "value": values, "train": values})
    named = {"name": "accuracy", "candidate": [f"model {k}" for k in range(count)], "source": "train"}
    return frame.assign(
        low=frame["value"] - 0.1, high=frame["value"] + 0.1, lower=0.0, upper=1.0, **{**named, **columns}
    )


def labels(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def drawn(ax: Any) -> dict[str, int]:
    """Return how many things each entry of the legend stands for."""
    return {line.get_label(): len(line.get_segments()) for line in ax.collections if hasattr(line, "get_segments")} | {
        line.get_label(): len(line.get_xdata()) for line in ax.lines
    }


def test_the_best_is_at_the_top_and_its_ties_are_marked() -> None:
    ax = plot_history(history(8, apart=3))
    assert labels(ax) == [f"model {k}" for k in (7, 6, 5, 4, 3, 2, 1, 0)]
    assert drawn(ax)["may be the best"] == 5
    assert drawn(ax)["certified worse than another"] == 3
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_the_best_of_losses_is_the_lowest() -> None:
    assert labels(plot_history(history(8), lowest_is_best=True))[0] == "model 0"
    guard = Thresholdout(range(500), mechanism=Claims(noise=0.0))
    for name in ("brier_score", "zero_one_loss"):
        guard.ask(0.1 if name == "brier_score" else 0.3, [0.1 if name == "brier_score" else 0.3] * 500, name=name)
    assert labels(guard.report().plot()) == ["brier_score", "zero_one_loss"]


def compared(pair: str, low: float, high: float, name: str = "accuracy, difference", **columns: Any) -> pd.DataFrame:
    """Return the record of one comparison."""
    row = {"query": 99, "name": name, "candidate": pair, "value": (low + high) / 2, "train": 0.0, "source": "train"}
    return pd.DataFrame([{**row, "low": low, "high": high, "lower": -1.0, "upper": 1.0, **columns}])


def beaten(record: pd.DataFrame, scores: pd.DataFrame | None = None, *, lowest_is_best: bool = False) -> list[str]:
    """Return the candidates of eight ties that another one is certified to be better than."""
    scores = history(8) if scores is None else scores
    settled = orders(pd.concat([scores, record], ignore_index=True))
    best = may_be_best(scores, settled, lowest_is_best=lowest_is_best)
    return [name for name, one in zip(scores["candidate"], best, strict=True) if not one]


@for_each(
    "record",
    [
        compared("model 3 against model 5", 0.01, 0.03),
        compared("model 5 against model 3", -0.03, -0.01),
        compared("model 3 against model 5", 0.51, 0.6, "accuracy, win rate", lower=0.0),
    ],
)
def test_a_settled_comparison_settles_the_order_of_scores(record: pd.DataFrame) -> None:
    assert beaten(record) == ["model 5"]
    picture = drawn(plot_history(pd.concat([history(8), record], ignore_index=True)))
    assert picture["certified worse than another, if equal names are equal models"] == 1


def test_answers_about_labels_that_were_corrected_meanwhile_have_no_order() -> None:
    """Even where their intervals are disjoint: each is about the labels of its time."""
    apart = history(2).assign(low=[0.1, 0.8], high=[0.2, 0.9])
    assert beaten(compared("a against b", 0.0, 0.1), apart) == ["model 0"]
    note = compared("", 0.0, 0.0, "labels were corrected", source="note")
    assert beaten(note, apart) == []
    assert orders(pd.concat([apart, note], ignore_index=True)) is None


def test_a_candidate_with_the_name_of_a_comparison_is_none() -> None:
    record = compared("argue against the claim", 0.7, 0.9, "accuracy", lower=0.0)
    assert orders(record) == []
    drawn(plot_history(pd.concat([history(8), record], ignore_index=True)))


def test_names_may_be_nested_deeply() -> None:
    names = ["f(" * 3000 + inside + ")" * 3000 for inside in ("x", "y")]
    assert len(set(short_names(names))) == 2


def test_an_interval_without_numbers_settles_nothing() -> None:
    assert verdict("accuracy, difference", math.nan, math.nan) == "not settled"


@for_each(
    "record",
    [
        compared("model 3 against model 5", 0.0, 0.03),  # its interval contains 0
        compared("model 3 against model 5", 0.4, 0.6, "accuracy, win rate", lower=0.0),
        compared("model 3 against model 5", 0.01, 0.03, "profit, difference"),  # nobody knows the better end
        compared("model 3 against model 5", 0.01, 0.03, "zero_one_loss, difference"),  # another metric
        compared("model 3 against a fourth", 0.01, 0.03),
        compared("a fourth against model 5", 0.01, 0.03),
        compared("model 3 against model 5", 0.01, 0.03, lower=-0.4, upper=0.4),  # of the records that differ
        compared("model 3 and model 5", 0.01, 0.03),
        pd.concat([compared("model 3 against model 5", 0.01, 0.03), compared("", 0.0, 0.0, "labels", source="note")]),
    ],
)
def test_no_other_comparison_settles_an_order(record: pd.DataFrame) -> None:
    assert beaten(record) == []


def test_a_comparison_of_a_name_that_two_answers_have_settles_nothing() -> None:
    scores = history(3, candidate=["a", "b", "b"])
    assert beaten(compared("a against b", 0.01, 0.03), scores) == []
    weighted = history(3, candidate=["a", "b", "c"]).assign(upper=2.0)
    assert beaten(compared("a against b", 0.01, 0.03), weighted) == []


def test_a_lower_loss_is_better() -> None:
    scores = history(3, name="brier_score", candidate=["a", "b", "c"])
    record = compared("a against b", 0.01, 0.03, "brier_score, difference")
    assert beaten(record, scores, lowest_is_best=True) == ["a"]
    apart = history(8, apart=3, name="brier_score")
    assert beaten(record, apart, lowest_is_best=True) == [f"model {k}" for k in range(3, 8)]


def test_comparisons_are_drawn_with_their_verdicts_around_zero() -> None:
    ends = {"a against b": (0.01, 0.05), "c against b": (-0.05, -0.01), "d against b": (-0.01, 0.01)}
    record = pd.concat([compared(pair, *some) for pair, some in ends.items()], ignore_index=True)
    ax = plot_history(record)
    assert {label: count for label, count in drawn(ax).items() if label in ("better", "worse", "not settled")} == {
        "better": 1,
        "worse": 1,
        "not settled": 1,
    }
    assert [list(line.get_xdata()) for line in ax.lines if line.get_linestyle() == "--"] == [[0.0, 0.0]]


def test_names_of_predictions_have_their_metric_behind_them() -> None:
    """As `PredictionGuard` titles its queries; a pair of brackets around no metric belongs to the name."""
    asked = pd.DataFrame({"query": [1, 2, 3], "name": ["first (accuracy)", "second (accuracy)", "rows (old)"]})
    asked = asked.assign(candidate="")
    assert kinds(asked) == ["accuracy", "accuracy", ""]
    assert row_names(asked[:2]) == ["first", "second"]
    assert row_names(asked) == ["first (accuracy)", "second (accuracy)", "rows (old)"]


def test_pictures_know_the_directions_of_all_scores() -> None:
    named: list[Metric | Statistic] = [get_score(name) for name in {*METRIC_NAMES, *BY_NAME}]
    clipped: list[Metric | Statistic] = [
        squared_error(4.0),
        absolute_error(2.0),
        r2(4.0),
        root_mean_squared_error(2.0),
        fbeta(2.0),
        median_absolute_error(2.0),
    ]
    for score in [*named, *clipped]:
        assert greater_is_better(score.name) is score.greater_is_better, score.name
        assert greater_is_better(f"{score.name} where x > 1") is score.greater_is_better
    assert greater_is_better("profit") is None


@pytest.mark.slow
def test_sixty_names_have_room() -> None:
    ax = plot_history(history(60))
    assert len(labels(ax)) == 60
    figure = ax.figure
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert all(lower.y1 <= upper.y0 for upper, lower in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0
    legend = ax.get_legend().get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1


@for_each("asked", [history(61), history(8, candidate=""), history(1)])
def test_many_and_nameless_answers_are_drawn_over_the_queries(asked: pd.DataFrame) -> None:
    assert plot_history(asked).get_xlabel() == "query"
    kind = "accuracy" if asked["candidate"].iloc[0] else "answer"
    assert plot_history(asked, names=True).get_xlabel() == kind


def test_another_range_is_left_out_and_said() -> None:
    asked = history(8)
    asked.loc[7, "lower"] = -1.0
    assert plot_history(asked).get_xlabel() == "accuracy (1 of another kind left out)"


def test_equal_names_get_the_numbers_of_their_queries() -> None:
    assert labels(plot_history(history(3, candidate=["a", "a", "b"]))) == ["b", "a #2", "a #1"]
    assert labels(plot_history(history(2, candidate="", name=["", "accuracy"]))) == ["accuracy", "query #1"]
    two = history(2, candidate="", name=["recall", "accuracy"])
    assert sorted(labels(plot_history(two, names=True))) == ["accuracy", "recall"]


def test_metrics_of_one_range_are_not_drawn_on_one_axis() -> None:
    """Of accuracy and its loss, both from 0 to 1, the "best" would be the worst."""
    asked = history(8, name=["accuracy"] * 5 + ["zero_one_loss"] * 3)
    ax = plot_history(asked)
    assert ax.get_xlabel() == "accuracy (3 of another kind left out)"
    assert len(labels(ax)) == 5


def test_long_names_are_cut_where_they_do_not_differ() -> None:
    long = [
        f"Pipeline(steps=[scaler, LogisticRegression(max_iter=1000, solver='lbfgs', C={c}, tol=0.0001)])"
        for c in (1, 20)
    ]
    shown = labels(plot_history(history(3, candidate=[*long, "tree"])))
    assert len(set(shown)) == 3
    assert all(len(label) <= 56 for label in shown)
    assert any("C=1," in label for label in shown)
    assert any("C=20," in label for label in shown)
    assert "tree" in shown


def test_names_are_what_differs_between_candidates_of_one_class() -> None:
    trees = [f"Tree(ccp=(0, {k}), max_depth={k}, random_state=0)" for k in (2, 4, 8)]
    assert short_names(trees) == [f"ccp=(0, {k}), max_depth={k}" for k in (2, 4, 8)]
    assert short_names(["Tree(a=1, b=2)", "Tree(b=2)", "Tree(b=2) #3"]) == ["a=1", "Tree()", "Tree() #3"]
    assert short_names(["Tree(a=1)", "Forest(a=1)"]) == ["Tree(a=1)", "Forest(a=1)"]
    assert short_names(["Tree(a=1)"]) == ["Tree(a=1)"]
    mixed = ["Tree(a=1, seed=0)", "Tree(a=2, seed=0)", "Forest(a=1, seed=0)", "mean"]
    assert short_names(mixed) == ["Tree(a=1)", "Tree(a=2)", "Forest(a=1, seed=0)", "mean"]
    pipes = [f"Pipeline(Scaler, Ridge(alpha={k}, tol=0.1))" for k in (1, 2)]
    assert short_names(pipes) == ["Ridge(alpha=1)", "Ridge(alpha=2)"]
    assert short_names([*pipes, "Tree(a=1)"]) == ["Pipeline(Ridge(alpha=1))", "Pipeline(Ridge(alpha=2))", "Tree(a=1)"]
    assert short_names(["Tree(a=1, b=2) against Tree(b=2)"]) == ["a=1 against Tree()"]


def test_in_a_leaderboard_nothing_is_called_a_training_value() -> None:
    ax = plot_history(history(8), beside="what was expected")
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "what was expected" in said
    assert "training value" not in said


@pytest.mark.slow
def test_names_are_no_formulas_and_stay_short() -> None:
    ax = plot_history(history(2, candidate=["cost $x^$ \n\x1b[31m", "b" * 500]))
    assert len(labels(ax)[0]) == 56
    ax.figure.savefig(io.BytesIO())
    guard = shown()["guard"]
    assert any(label.startswith(HARM[:20]) for label in labels(guard.report().plot()))
    guard.report().plot().figure.savefig(io.BytesIO())
