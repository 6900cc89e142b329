"""DeepFool for linear models, and pairs of data sets for an audit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import softmax

from tests.cases import for_each
from thresholdout.errors import InputError
from thresholdout.privacy.auditing import make_neighbour
from thresholdout.privacy.auditing.neighbours import deepfool

Floats = NDArray[np.float64]


def test_deepfool_is_the_nearest_point_of_another_class() -> None:
    """It ends on a border, and no way in one of many random directions is shorter."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(20_000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for _ in range(10):
        coef, intercept, x = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)
        way = deepfool(coef, intercept, x)
        scores = coef @ x + intercept
        predicted = int(scores.argmax())
        moved = np.sort(coef @ (x + way) + intercept)
        assert moved[-1] == pytest.approx(moved[-2], abs=1e-12)
        assert int((coef @ (x + 1.001 * way) + intercept).argmax()) != predicted
        gaps = np.delete(scores[predicted] - scores, predicted)
        closing = directions @ np.delete(coef - coef[predicted], predicted, axis=0).T
        shortest = float((gaps / np.where(closing > 0, closing, np.inf))[closing > 0].min())
        length = float(np.linalg.norm(way))
        assert length <= shortest * (1 + 1e-9)
        assert length >= shortest * 0.98


def blobs(seed: int) -> tuple[Floats, NDArray[np.int64], Floats, Floats]:
    """Three classes on a plane, and three linear models of them that differ a little."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    labels = rng.integers(0, 3, 120)
    points = centres[labels] + 0.5 * rng.normal(size=(120, 2))
    coef = centres + 0.1 * rng.normal(size=(3, 3, 2))
    return points, labels, coef, 0.1 * rng.normal(size=(3, 3))


@for_each("probability", [None, 0.02])
def test_all_models_change_their_mind(probability: float | None) -> None:
    X, y, coef, intercept = blobs(1)
    pair = make_neighbour(X, y, coef, intercept, probability=probability)
    before = softmax(coef @ pair.x0 + intercept, axis=1)
    after = softmax(coef @ pair.x_star + intercept, axis=1)
    assert (before.argmax(axis=1) == pair.label).all()
    assert (after.argmax(axis=1) != pair.label).all()
    assert probability is None or (after[:, pair.label] < probability).all()
    assert pair.distance == pytest.approx(np.linalg.norm(pair.x_star - pair.x0))
    # one record is another one, with the same label
    changed = np.flatnonzero((pair.first[0] != pair.second[0]).any(axis=1))
    assert changed.tolist() == [pair.index]
    assert (pair.first[1] == pair.second[1]).all()
    assert (pair.first[0] == X).all()
    assert (pair.second[0][pair.index] == pair.x_star).all()


@pytest.mark.slow
def test_the_record_that_moves_least_is_taken() -> None:
    X, y, coef, intercept = blobs(2)
    best = make_neighbour(X, y, coef, intercept)
    others = []
    for index in range(len(X)):
        order = np.append(index, np.delete(np.arange(len(X)), index))
        try:
            found = make_neighbour(X[order], y[order], coef, intercept, candidates=1)
        except InputError:
            continue
        others.append(found.distance)
    assert make_neighbour(X, y, coef, intercept, candidates=120).distance == pytest.approx(min(others))
    assert best.distance >= min(others) - 1e-12


def test_two_of_the_four_printed_features_are_the_others() -> None:
    """Defect E11: the new record keeps the old label, so y* = y0 and p(y*|x) = p(y0|x) at both points."""
    X, y, coef, intercept = blobs(3)
    pair = make_neighbour(X, y, coef, intercept)
    old, new = pair.first[1][pair.index], pair.second[1][pair.index]
    features = np.array(
        [
            [softmax(model @ x + offset)[label] for x in (pair.x_star, pair.x0) for label in (new, old)]
            for model, offset in zip(coef, intercept, strict=True)
        ]
    )
    assert features.shape == (3, 4)
    assert len({tuple(column) for column in features.T}) == 2


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"X": np.zeros(5)}, "X"),
    ({"X": np.full((120, 2), np.nan)}, "X"),
    ({"y": np.zeros(120)}, "y"),
    ({"y": np.zeros(119, dtype=int)}, "y"),
    ({"y": np.full(120, 3)}, "y"),
    ({"y": np.full(120, -1)}, "y"),
    ({"coef": np.zeros((3, 2))}, "coef"),
    ({"coef": np.zeros((3, 1, 2)), "intercept": np.zeros((3, 1))}, "coef"),
    ({"coef": np.zeros((0, 3, 2)), "intercept": np.zeros((0, 3))}, "coef"),
    ({"intercept": np.zeros(3)}, "coef"),
    ({"intercept": np.full((3, 3), np.inf)}, "coef"),
    ({"probability": 0.0}, "probability"),
    ({"candidates": 0}, "candidates"),
]


@for_each(("change", "name"), REFUSED, ids=[f"{name}-{k}" for k, (_, name) in enumerate(REFUSED)])
def test_refusals(change: dict[str, Any], name: str) -> None:
    X, y, coef, intercept = blobs(4)
    arguments: dict[str, Any] = {"X": X, "y": y, "coef": coef, "intercept": intercept, **change}
    with pytest.raises(InputError, match=name):
        make_neighbour(**arguments)


def test_models_that_are_never_right() -> None:
    X, _, coef, intercept = blobs(5)
    with pytest.raises(InputError, match="no record to move among 0"):
        make_neighbour(X, np.full(120, 0), coef, intercept - 100.0 * np.array([1.0, 0.0, 0.0]))


def test_a_model_that_cannot_be_fooled() -> None:
    X, y, coef, intercept = blobs(6)
    coef[1], intercept[1] = 0.0, [100.0, 0.0, 0.0]
    with pytest.raises(InputError, match=r"no record to move among [1-9]"):
        make_neighbour(X, y, coef, intercept)


def test_a_classifier_that_ignores_x() -> None:
    with pytest.raises(InputError, match="equal coefficients"):
        deepfool(np.ones((3, 2)), [0.0, 1.0, 2.0], [0.0, 0.0])
    with pytest.raises(InputError, match="x"):
        deepfool(np.eye(2), [0.0, 0.0], [0.0, np.nan])
