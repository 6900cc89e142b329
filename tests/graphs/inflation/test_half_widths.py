"""Half-widths of one mean: against the formula in high precision, and against exact laws of means and of noise."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from graphs import DependenceModel, GaussianField, Groups, Independent, MarkovChain, MovingWindow, Panel
from graphs.errors import ArgumentError
from graphs.estimation import diagnose
from graphs.fitted_limits import FittedLimits
from graphs.inflation.half_widths import answer_half_width, mean_half_width, records_within
from tests.cases import for_each

MODELS = [
    Independent(800),
    Groups([k // 7 for k in range(800)]),
    MovingWindow(500, 3),
    MarkovChain([[0.9, 0.1], [0.2, 0.8]], 600),
    Panel(GaussianField.ar(0.5, 20), 30),
]


@for_each("confidence", [0.5, 0.9, 0.95, 1 - 1e-12])
@for_each("model", MODELS, ids=lambda model: type(model).__name__)
def test_it_is_the_formula_rounded_up(model: DependenceModel, confidence: float) -> None:
    with mpmath.workdps(40):
        beta = 1 - mpmath.mpf(confidence)
        exact = mpmath.sqrt(mpmath.mpf(model.variance_inflation()) * mpmath.log(2 / beta) / (2 * model.n))
        found = model.half_width(confidence)
        assert exact <= found <= exact * (1 + mpmath.mpf(10) ** -5 if confidence > 0.999 else 1 + mpmath.mpf(10) ** -13)
        assert found <= 1 < 2 * found or found < 0.5


@for_each("size", [1, 4, 25])
@for_each("score", [0.5, 0.93])
def test_it_holds_for_groups_of_copies_and_for_noise(size: int, score: float) -> None:
    groups = 1000 // size
    model = Groups([k // size for k in range(1000)])
    width, budget = model.half_width(0.9), 0.2 / size
    counts = np.arange(groups + 1)
    law, errors = binom.pmf(counts, groups, score), counts / groups - score
    assert law[np.abs(errors) > width].sum() <= 0.1
    noisy = answer_half_width(model.n, model.variance_inflation(), budget, 0.9)
    scale = 1.0 / (model.n * budget)
    above, below = (np.where(d > 0, 0.5 * np.exp(-np.abs(d) / scale), 1 - 0.5 * np.exp(-np.abs(d) / scale)) for d in (
        noisy - errors, noisy + errors
    ))  # fmt: skip
    assert float(law @ (above + below)) <= 0.1
    assert noisy > width


@for_each("model", MODELS, ids=lambda model: type(model).__name__)
def test_so_many_records_reach_it_and_one_less_does_not(model: DependenceModel) -> None:
    for width in (0.02, 0.05, 0.2):
        count = model.records_for(width)
        inflation = model.variance_inflation()
        assert mean_half_width(int(count), inflation, 0.95) <= width * (1 + 1e-12)
        assert mean_half_width(int(count) - 1, inflation, 0.95) > width * (1 - 1e-12)


def test_limits_that_may_fail_are_counted() -> None:
    field = GaussianField.ar(0.7, 100).fitted(FittedLimits("series", 500, 0.01))
    assert field.half_width(0.95) == pytest.approx(field.within_limits().half_width(0.96), rel=1e-12)
    assert field.records_for(0.1, 0.95) == field.within_limits().records_for(0.1, 0.96)
    assert field.half_width(0.99) == 1.0
    assert field.records_for(0.1, 0.995) == math.inf
    assert Groups([0] * 5).records_for(0.1) == math.inf
    assert records_within(0.5, 1, 1.0, 0.95) == 8  # ln(40) / 0.5 is 7.4


def test_tables_of_routes_say_what_each_is_worth() -> None:
    model = MarkovChain([[0.9, 0.1], [0.2, 0.8]], 600)
    inflations = model.explain_inflation(confidence=0.9)
    for _, row in inflations.dropna(subset="inflation").iterrows():
        assert row["half_width"] == mean_half_width(600, row["inflation"], 0.9)
    assert inflations["half_width"].isna().equals(inflations["inflation"].isna())
    assert inflations["half_width"].min() == model.half_width(0.9)
    budgets = model.explain(0.5, confidence=0.9)
    for _, row in budgets.dropna(subset="budget").iterrows():
        assert row["half_width"] == answer_half_width(600, model.variance_inflation(), row["budget"], 0.9)
    assert budgets["half_width"].isna().equals(budgets["budget"].isna())


def test_a_diagnosis_tells_the_width_for_my_holdout() -> None:
    rng = np.random.default_rng(1)
    firms = np.repeat(np.arange(20), 5)
    values = rng.standard_normal(20)[firms] + 0.5 * rng.standard_normal(100)
    here, there = (diagnose(values, groups=firms, permutations=99, records=count) for count in (None, 2500))
    assert here.records == 100
    assert here.costs().loc["groups", "half_width"] == Groups(firms).half_width()
    larger = Groups(np.repeat(np.arange(500), 5))
    costs = there.costs().loc["groups"]
    assert costs["half_width"] == pytest.approx(larger.half_width(), rel=1e-12)
    noisy = answer_half_width(2500, 5.0, larger.budget(0.5), 0.95)
    assert costs["noisy_half_width"] == pytest.approx(noisy, rel=1e-12)
    assert "one query about 2,500 records fixed in advance is answered to ±0.061 instead of ±0.028" in there.words
    assert f"±{math.ceil(1000 * noisy) / 1000} instead of" in there.words
    assert there.model.fingerprint() == here.model.fingerprint()


@for_each("confidence", [0, 1, 95, "0.95", True, math.nan])
def test_other_confidences_are_refused(confidence: object) -> None:
    model = Independent(3)
    for call in (
        lambda: model.half_width(confidence),  # type: ignore[arg-type]
        lambda: model.records_for(0.1, confidence),  # type: ignore[arg-type]
        lambda: model.explain(0.5, confidence=confidence),  # type: ignore[arg-type]
        lambda: model.explain_inflation(confidence=confidence),  # type: ignore[arg-type]
    ):
        with pytest.raises(ArgumentError, match="confidence must be a number between 0 and 1"):
            call()


@for_each("width", [0, 1, -0.1, "0.1", math.nan])
def test_other_half_widths_are_refused(width: object) -> None:
    with pytest.raises(ArgumentError, match="half_width must be"):
        Independent(3).records_for(width)  # type: ignore[arg-type]
