"""The feature-selection analyst beside plain loops, and the experiment's way of running her beside the analyst."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.experiments import feature_selection as experiment
from tests.cases import for_each
from thresholdout.simulation import FeatureSelectionAnalyst, NaiveReuse, interview
from thresholdout.simulation.simulated_session import Part

SIZES = [0, 1, 3, 10]


def slow(train: Part, holdout: Part, world: Part) -> list[tuple[float, float]]:
    """Return the accuracies on holdout and world, by loops over records and attributes."""

    def mean_product(part: Part, column: int) -> float:
        total = 0.0
        for x, y in zip(part.features[:, column], part.labels, strict=True):
            total += min(max(float(x * y), -4.0), 4.0)
        return total / len(part)

    cut = 1 / len(train) ** 0.5
    kept = []
    for column in range(train.features.shape[1]):
        t, h = mean_product(train, column), mean_product(holdout, column)
        if t * h > 0 and abs(t) >= cut and abs(h) >= cut:
            kept.append((-abs(t), column, 1 if t > 0 else -1))
    kept.sort()

    def accuracy(part: Part, size: int) -> float:
        right = 0
        for row, label in zip(part.features, part.labels, strict=True):
            total = sum(sign * float(row[column]) for _, column, sign in kept[:size])
            right += (1 if total >= 0 else -1) == label
        return right / len(part)

    return [(accuracy(holdout, size), accuracy(world, size)) for size in SIZES]


def normal(rng: np.random.Generator, n: int = 80, d: int = 60) -> Part:
    labels = rng.choice([-1, 1], n)
    features = rng.normal(size=(n, d))
    features[:, :5] += 0.6 * labels[:, None]
    return Part(features, labels)


@for_each("seed", range(4))
def test_the_analyst_is_the_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    train, holdout, world = (normal(rng) for _ in range(3))
    session = interview(
        FeatureSelectionAnalyst(SIZES), NaiveReuse(), train, holdout, rng, lambda q: float(np.mean(q(world)))
    )
    assert session.answered == 60 + len(SIZES)
    found = [(x.holdout, x.truth) for x in session.history[60:]]
    np.testing.assert_allclose(found, slow(train, holdout, world), rtol=1e-12)


def test_an_attribute_that_the_holdout_denies_is_left_out() -> None:
    analyst = FeatureSelectionAnalyst([4])
    train = np.array([0.5, 0.5, 0.04, 0.3, -0.4])
    answers = np.array([0.5, -0.5, 0.5, 0.04, -0.1])
    columns, signs = analyst.select(train, answers, 0.05)
    assert columns.tolist() == [0, 4]
    assert signs.tolist() == [1.0, -1.0]


class Remembering(experiment.Drawn):
    """Remembers every attribute that was drawn for the two parts."""

    def attributes(self, columns: NDArray[np.intp], labels: NDArray[np.float32]) -> NDArray[np.float32]:
        rows = super().attributes(columns, labels)
        if not hasattr(self, "seen"):
            self.seen: list[NDArray[np.float32]] = []
        self.seen.append(rows.copy())
        return rows


def test_the_experiment_draws_rows_as_the_analyst_sees_columns() -> None:
    n, d = 400, 300
    data = Remembering(np.random.default_rng(8), True, n, d)
    blocks = -(-d // experiment.BLOCK)
    parts = [np.concatenate(data.seen[part : 2 * blocks : 2]).T.astype(float) for part in (0, 1)]
    train, holdout = (Part(x, data.labels[name]) for x, name in zip(parts, ("train", "holdout"), strict=True))
    rng = np.random.default_rng(0)
    session = interview(FeatureSelectionAnalyst(experiment.SIZES), NaiveReuse(), train, holdout, rng, truth=0.5)
    columns, signs = FeatureSelectionAnalyst(experiment.SIZES).select(data.train, data.holdout, n**-0.5)
    reported = data.accuracies("holdout", columns, signs)
    assert reported == pytest.approx([x.holdout for x in session.history[d:]], abs=1.5 / n)  # sums of floats near 0
    assert data.accuracies("train", columns, signs) == pytest.approx(
        [x.train for x in session.history[d:]], abs=1.5 / n
    )
    assert data.train[:20].mean() > 0.15  # 6/sqrt(400) = 0.3, in mean
    assert abs(data.train[20:].mean()) < 0.02
