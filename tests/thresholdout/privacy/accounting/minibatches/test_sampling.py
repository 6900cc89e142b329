import itertools

import numpy as np
import pytest

from benchmarks.papers.minibatch_variance import minibatch_variance
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting import sample_minibatch
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import rate

VALUES = [1, -2, 0.5, 3, 4, -1.5, 2, 0]


def test_worked_variances() -> None:
    found = minibatch_variance(VALUES, 3)
    assert found["poisson"] == pytest.approx(0.950520833333333, rel=1e-14)
    assert found["wor"] == pytest.approx(0.904017857142857, rel=1e-14)
    assert found["wr"] == pytest.approx(1.265625, rel=1e-14)
    a, n = np.array(VALUES), 8
    share = a.mean() ** 2 / (a**2).mean()
    assert found["wor/poisson"] == pytest.approx((1 - share) / (1 - 1 / n))
    assert found["wr/poisson"] == pytest.approx((1 - share) / (1 - 3 / n))


@pytest.mark.statistical
@pytest.mark.parametrize("scheme", ["poisson", "wor", "wr"])
def test_simulated_variances(scheme: str) -> None:
    """100,000 batches; the standard error of a variance is 0.5 %: 2 % is 4 of them, at a fixed seed."""
    rng = np.random.default_rng(1)
    a, size, count = np.array(VALUES, dtype=float), 3, 100_000
    if scheme == "wr":
        means = a[rng.integers(0, 8, (count, size))].sum(1) / size
    elif scheme == "wor":
        means = a[rng.permuted(np.tile(np.arange(8), (count, 1)), axis=1)[:, :size]].sum(1) / size
    else:
        means = ((rng.random((count, 8)) < size / 8) * a).sum(1) / size
    exact = minibatch_variance(a, size)[scheme]
    assert means.var() == pytest.approx(exact, rel=0.02)
    assert abs(means.var() / (1.3 * exact) - 1) > 0.02  # a scale that is 30 % wrong


def test_vectors_and_extremes() -> None:
    rows = np.array(VALUES)[:, None] * np.array([3.0, 4.0])
    for key in ("poisson", "wor", "wr"):
        assert minibatch_variance(rows, 3)[key] == pytest.approx(25 * minibatch_variance(VALUES, 3)[key])
    assert np.isfinite(minibatch_variance(np.array([1e150, -1e150]), 1)["wor"])
    flat = minibatch_variance([0.0, 0.0, 0.0], 1)
    assert flat["poisson"] == 0
    assert np.isnan(flat["wor/poisson"])
    orthogonal = minibatch_variance([1.0, -1.0, 0.0], 1)
    assert orthogonal["wor/poisson"] > 1  # the squared mean is below the mean square over n
    for bad in ([1.0, np.nan], "text", np.zeros((2, 2, 2))):
        with pytest.raises((InputError, InputTypeError)):
            minibatch_variance(bad, 1)


@pytest.mark.statistical
def test_samplers() -> None:
    rng = np.random.default_rng(2)
    counts = {scheme: np.zeros(20) for scheme in ("wor", "wr", "poisson")}
    sizes = []
    for _ in range(4000):
        for scheme in ("wor", "wr", "poisson"):
            chosen = sample_minibatch(rng, 20, 6, scheme)
            np.add.at(counts[scheme], chosen, 1)
            if scheme == "wor":
                assert len(set(chosen.tolist())) == 6
            elif scheme == "wr":
                assert chosen.size == 6
            else:
                sizes.append(chosen.size)
    for scheme, found in counts.items():
        assert np.abs(found / 4000 - 0.3).max() < 6.5 * np.sqrt(0.3 / 4000), scheme  # 6.5 standard errors
    assert np.var(sizes) == pytest.approx(20 * 0.3 * 0.7, rel=0.15)


def test_every_step_is_a_fresh_subset() -> None:
    """Two steps of a third each overlap sometimes; batches of one shuffled epoch never would."""
    rng = np.random.default_rng(3)
    steps = [set(sample_minibatch(rng, 9, 3, "wor").tolist()) for _ in range(40)]
    assert any(one & two for one, two in itertools.pairwise(steps))
    assert "epoch-partition" in str(sample_minibatch.__doc__)


def test_bad_samplers() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(InputError, match="scheme"):
        sample_minibatch(rng, 10, 3, "epoch")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="batch_size"):
        sample_minibatch(rng, 3, 3, "wor")
    with pytest.raises(InputTypeError, match="rng"):
        sample_minibatch(np.random, 10, 3, "wor")  # type: ignore[arg-type]


def test_rates_are_rounded_up() -> None:
    from fractions import Fraction

    for small, large in ((120, 50_000), (1, 3), (1, 4), (7, 10)):
        found = Fraction(rate(None, small, large))
        assert found >= Fraction(small, large)
        assert float(found) <= small / large * (1 + 2**-51)
    assert rate(None, 1, 4) == 0.25
