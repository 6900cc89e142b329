import math
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tests.cases import for_each
from tests.estimator_checks import each_check
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting import (
    Composed,
    GaussianAnswer,
    SelfComposed,
    WithReplacementGaussianStep,
    best_epsilon,
    rdp_poisson,
)
from thresholdout.privacy.accounting.adaptive_steps import gaussian_delta
from thresholdout.privacy.learning import SGLDRegressor, eps_tail, rdp_to_dp, sgld_sample
from thresholdout.privacy.learning.sgld.clipped_events import clipped_event, noise_multiplier_of, step_size_of
from thresholdout.privacy.learning.sgld.posterior_bound import posterior_dp
from thresholdout.privacy.learning.sgld.regression_model import RegressionDomain
from thresholdout.privacy.learning.sgld.sampler import DivergingChainWarning

mpl.use("Agg")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.7 + RNG.normal(size=240)
ONE = RNG.uniform(0.5, 1.0, (1000, 1))
Y_ONE = 300.0 * ONE[:, 0]
PRIVATE: dict[str, Any] = {"clip": 5.0, "step_size": 1e-4, "batch_size": 1, "order": "cyclic"}


@pytest.mark.slow
@each_check(
    [
        SGLDRegressor(n_steps=1000, n_chains=10, random_state=0),
        SGLDRegressor(
            n_steps=2000, n_chains=10, random_state=0, batch_size=1, order="cyclic", clip=100.0, step_size=1e-4
        ),
    ]
)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
def test_it_finds_the_posterior() -> None:
    model = SGLDRegressor(alpha=2.0, beta=1.0, n_steps=3000, n_chains=400, random_state=0).fit(X, Y)
    rows = np.column_stack([X, np.ones(len(X))])
    precision = 2.0 * np.eye(4) + rows.T @ rows
    expected = np.linalg.solve(precision, rows.T @ Y)
    found = np.append(model.coef_, model.intercept_)
    spread = np.linalg.inv(precision)
    assert found == pytest.approx(expected, abs=6 * math.sqrt(spread.max() / 400) * 1.3)
    assert np.diag(np.cov(model.samples_, rowvar=False)) == pytest.approx(np.diag(spread), rel=0.6)
    mean, std = model.predict(X[:5], return_std=True)
    assert mean == pytest.approx(X[:5] @ model.coef_ + model.intercept_)
    exact = np.sqrt(1 + np.einsum("ij,jk,ik->i", rows[:5], spread, rows[:5]))
    assert std == pytest.approx(exact, rel=0.02)
    assert model.score(X, Y) > 0.8


def test_without_a_bound_there_is_no_guarantee() -> None:
    model = SGLDRegressor(n_steps=10, random_state=0).fit(X, Y)
    report = model.privacy_report_
    assert report.epsilon == math.inf
    assert not report.private
    assert report.event is None
    text = str(report)
    assert "No privacy" in text
    assert "the steps before convergence" in text
    assert "step size was chosen" in text


@pytest.mark.slow
def test_a_domain_does_not_help() -> None:
    domain = RegressionDomain(300.0, 0.5, 1.0, 0.1)
    model = SGLDRegressor(beta=4.0, fit_intercept=False, batch_size=1, domain=domain, n_steps=50, random_state=0)
    report = model.fit(ONE, Y_ONE).privacy_report_
    assert report.epsilon == math.inf
    assert not any("step size" in leak for leak in report.leaks)
    assert report.details["posterior_epsilon"] == posterior_dp(1000, 1e-5, 0.5, 1.0, 1.0, 4.0, 0.1, 300.0)
    worst, least = report.details["worst_epoch"], report.details["worst_epoch_epsilon_at_least"]
    eta = float(model.step_size_)
    assert least == eps_tail(1000, 300.0, 1.0, 1.0, 4.0, worst, delta=1e-5, eta=eta)
    assert eta == pytest.approx(2 / 4001**2)
    curve = model.privacy_curve()
    assert curve["iterate"].max() == least
    assert int(np.argmax(curve["iterate"])) + 1 == worst
    assert (curve["posterior"] < 0.05).all()
    assert model.plot_privacy(epochs=3).get_xlabel() == "epochs"
    assert len(model.privacy_curve(5, c=1e4, x_h=1.0)) == 5


def test_curve_refusals() -> None:
    model = SGLDRegressor(n_steps=10, random_state=0).fit(X, Y)
    with pytest.raises(InputError, match="c must be"):
        model.privacy_curve()
    assert model.privacy_curve(3, c=10.0, x_h=1.0).shape == (3, 3)
    with pytest.raises(InputError, match="clip"):
        SGLDRegressor(n_steps=240, n_chains=1, **PRIVATE).fit(X, Y).privacy_curve(c=1.0, x_h=1.0)
    with pytest.raises(InputError, match="vary"):
        SGLDRegressor(n_steps=2, step_size=[1e-4, 1e-5]).fit(X, Y).privacy_curve(c=1.0, x_h=1.0)
    with pytest.raises(InputError, match="half"):
        SGLDRegressor(n_steps=2, batch_size=200).fit(X, Y).privacy_curve(c=1.0, x_h=1.0)


def test_noise_of_the_papers_upper_bound() -> None:
    eta = 2 * 4 * 0.001 / 60_000
    assert eta == pytest.approx(1.3333e-7, rel=5e-5)
    assert noise_multiplier_of(eta, 60_000, 4, 0.2) == pytest.approx(1.825742, abs=5e-7)
    assert step_size_of(1.825742, 60_000, 4, 0.2) == pytest.approx(eta, rel=1e-6)
    assert noise_multiplier_of(step_size_of(3.0, 100, 7, 0.3), 100, 7, 0.3) >= 3.0


def test_the_papers_upper_bound() -> None:
    # Poisson batches, one record more or less, integer orders, the paper's conversion.
    orders = np.arange(2.0, 257.0)
    step = rdp_poisson(orders, 1.825742, 4 / 60_000, adjacency="add_remove")
    assert float(step[30]) == pytest.approx(2.489831e-8, rel=2e-6)
    for epochs, expected in ((1, 0.186429), (10, 0.193057), (50, 0.222514), (100, 0.259335)):
        found = [rdp_to_dp(float(nu), float(epochs * 15_000 * rdp), 1e-5) for nu, rdp in zip(orders, step, strict=True)]
        assert min(found) == pytest.approx(expected, abs=6e-7)
        assert orders[int(np.argmin(found))] == 63
    small = rdp_poisson(np.array([2.0, 8.0]), 1.0, 0.01, adjacency="add_remove")
    assert small == pytest.approx([1.718134e-4, 8.936439e-4], rel=3e-7)


def test_events() -> None:
    eta = np.full(120, 1e-5)
    z = noise_multiplier_of(1e-5, 240, 24, 2.0)
    cyclic = clipped_event(eta, 240, 24, 2.0, order="cyclic", chains=3)
    assert cyclic == clipped_event(eta, 240, 24, 2.0, order="reshuffle", chains=3)
    assert cyclic == SelfComposed(GaussianAnswer(z, 2.0), 12 * 3)
    # A sweep that was begun counts as one.
    assert clipped_event(eta[:101], 240, 24, 2.0, order="cyclic") == SelfComposed(GaussianAnswer(z, 2.0), 11)
    uniform = clipped_event(eta, 240, 24, 2.0, order="uniform", chains=3)
    assert uniform == SelfComposed(WithReplacementGaussianStep(z, 24, 240), 360)
    everyone = clipped_event(eta[:1], 10, 10, 2.0, order="uniform")
    assert everyone == SelfComposed(GaussianAnswer(noise_multiplier_of(1e-5, 10, 10, 2.0), 20.0), 1)
    assert clipped_event(np.array([]), 10, 5, 2.0, order="cyclic") == Composed()
    assert clipped_event(np.full(3, 1e9), 10, 5, 2.0, order="cyclic") is None
    assert clipped_event(np.full(3, 1e-4), 2000, 2000, 2000.0, order="uniform") is None


@pytest.mark.slow
def test_events_of_step_sizes_that_vary() -> None:
    two = clipped_event(np.array([1e-5, 4e-5, 1e-5, 1e-5]), 240, 120, 2.0, order="cyclic")
    small, large = (noise_multiplier_of(each, 240, 120, 2.0) for each in (4e-5, 1e-5))
    # The first sweep has the noise of its largest step size.
    assert two == Composed([SelfComposed(GaussianAnswer(large, 2.0), 1), SelfComposed(GaussianAnswer(small, 2.0), 1)])
    many = clipped_event(np.geomspace(1e-7, 1e-5, 1000), 240, 24, 2.0, order="uniform")
    assert isinstance(many, Composed)
    assert len(many.events) <= 24
    assert sum(each.count for each in many.events if isinstance(each, SelfComposed)) == 1000
    least = clipped_event(np.full(1000, 1e-5), 240, 24, 2.0, order="uniform")
    assert least is not None
    assert best_epsilon(many, 1e-5).epsilon < best_epsilon(least, 1e-5).epsilon


def test_report_with_a_bound() -> None:
    model = SGLDRegressor(clip=2.0, step_size=1e-5, batch_size=24, order="cyclic", n_steps=100, n_chains=2)
    report = model.fit(X, Y).privacy_report_
    z = noise_multiplier_of(1e-5, 240, 24, 2.0)
    # Twenty Gaussian answers are one of less noise, whose delta is known in closed form.
    shift = 2 / z * math.sqrt(2 * 10)
    assert (
        gaussian_delta(shift, 1.0, report.epsilon * 1.001) <= 1e-5 <= gaussian_delta(shift, 1.0, report.epsilon * 0.999)
    )
    assert gaussian_delta(shift, 1.0, report.epsilon * 0.75) > 3e-5  # that of half the sensitivity would not do
    assert report.private
    assert report.adjacency == "replace_one"
    assert not any("random_state" in each for each in report.assumptions)
    seeded = clone(model).set_params(random_state=1).fit(X, Y).privacy_report_
    assert any("random_state" in each for each in seeded.assumptions)


@pytest.mark.statistical
def test_the_guarantee_is_reached_by_a_pair() -> None:
    # One record whose gradient is clipped at either side, one step on all records.
    n, clip, eta, runs = 10, 20.0, 1e-2, 40_000
    x, y = np.ones(n), np.zeros(n)
    draws = []
    for seed, last in enumerate((1e12, -1e12)):
        targets = y.copy()
        targets[-1] = last
        draws.append(
            sgld_sample(x, targets, 1.0, 1e-9, eta, 1, batch_size=n, clip=clip, theta0=0.0, n_chains=runs, rng=seed)
        )
    z = noise_multiplier_of(eta, n, n, clip)
    shift = float(draws[0].mean() - draws[1].mean()) / math.sqrt(eta)
    assert abs(shift - 2 / z) < 6.2 * math.sqrt(2 / runs)
    epsilon = best_epsilon(GaussianAnswer(z, 2.0), 0.05, adjacency="replace_one").epsilon
    half = best_epsilon(GaussianAnswer(2 * z, 2.0), 0.05, adjacency="replace_one").epsilon
    threshold = math.sqrt(eta) * (z * epsilon / 2)
    p, q = ((each > threshold).mean() for each in draws)
    slack = math.sqrt(math.log(4e9) / (2 * runs))
    assert p - slack <= math.exp(epsilon) * (q + slack) + 0.05
    threshold = math.sqrt(eta) * (z * half / 2)
    p, q = ((each > threshold).mean() for each in draws)
    assert p - slack > math.exp(half) * (q + slack) + 0.05  # half of the loss would be too little


def test_target() -> None:
    model = SGLDRegressor(clip=1.0, epsilon=1.5, n_chains=1, batch_size=24, order="cyclic", n_steps=300, random_state=0)
    report = model.fit(X, Y).privacy_report_
    assert 1.49 < report.epsilon <= 1.5
    assert report.private
    eta = float(model.step_size_)
    assert report.noise_multiplier == pytest.approx(noise_multiplier_of(eta, 240, 24, 1.0))


def test_warm_start() -> None:
    model = SGLDRegressor(n_chains=2, n_steps=200, random_state=0, warm_start=True, **PRIVATE).fit(X, Y)
    first, samples = model.privacy_report_, model.samples_
    again = model.fit(X, Y).privacy_report_
    assert again.epsilon > first.epsilon
    assert isinstance(first.event, SelfComposed)
    assert again.event == SelfComposed(first.event.event, 2 * first.event.count)
    assert not (model.samples_ == samples).any()
    model.set_params(clip=None).fit(X, Y)
    assert model.privacy_report_.epsilon == math.inf
    model.set_params(clip=5.0).fit(X, Y)  # what was leaked stays leaked
    assert model.privacy_report_.epsilon == math.inf
    with pytest.raises(InputError, match="warm_start"):
        model.set_params(n_chains=3).fit(X, Y)
    cold = clone(model).set_params(warm_start=False)
    assert (cold.fit(X, Y).samples_ == cold.fit(X, Y).samples_).all()


def test_the_step_size_of_the_data_is_a_leak() -> None:
    model = SGLDRegressor(clip=1.0, n_chains=1, n_steps=24, batch_size=24, order="cyclic")
    report = model.fit(X, Y).privacy_report_
    assert math.isfinite(report.epsilon)
    assert not report.private
    assert report.leaks[0].startswith("the step size")


def test_too_little_noise() -> None:
    model = SGLDRegressor(clip=1e3, step_size=1.0, n_chains=1, n_steps=24, batch_size=24, order="cyclic")
    report = model.fit(X, Y).privacy_report_
    assert report.epsilon == math.inf
    assert not report.private


def test_a_step_size_that_is_too_large() -> None:
    with pytest.warns(DivergingChainWarning):
        SGLDRegressor(step_size=1.0, n_steps=3, random_state=0).fit(X, Y)
    with pytest.raises(InputError, match="rows whose squares are finite"):
        SGLDRegressor(n_steps=3).fit(np.full((3, 1), 1e160), [1.0, 2.0, 3.0])


def test_names_and_series() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = SGLDRegressor(n_steps=5, random_state=0).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.privacy_report_.to_series()["chains"] == 100


def test_no_steps() -> None:
    report = SGLDRegressor(n_steps=0, step_size=1e-3).fit(X, Y).privacy_report_
    assert (report.epsilon, report.leaks) == (0.0, ())


@for_each(
    "change",
    [
        {"alpha": 0.0},
        {"beta": -1.0},
        {"step_size": 0.0},
        {"step_size": [1e-3]},
        {"n_steps": -1},
        {"batch_size": 0},
        {"batch_size": 7, "order": "cyclic"},
        {"order": "any"},
        {"clip": 0.0},
        {"epsilon": 1.0},
        {"epsilon": 1.0, "clip": 1.0, "step_size": 1e-3},
        {"epsilon": -1.0, "clip": 1.0},
        {"delta": 0.0},
        {"n_chains": 0},
        {"domain": RegressionDomain(1.0, 0.5, 1.0)},
    ],
)
def test_refusals(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        SGLDRegressor(**change).fit(X, Y)


def test_types() -> None:
    with pytest.raises(InputTypeError):
        SGLDRegressor(domain=(1.0, 0.5)).fit(X, Y)  # type: ignore[arg-type]


@for_each("width", [1, 2, 3])
@for_each("size", [5e-324, 1e-310, 1e-200, 1e-161, 1.0, 1e100, 1e160, 1.7e308])
@for_each("target", [-1.7e308, 1e300, 1.0])
def test_no_record_is_too_extreme_for_clipping(width: int, size: float, target: float) -> None:
    """Squares of 1e-200 vanish, and inf - inf is no number: one record would be seen from afar."""
    x, y = np.ones((4, width)), np.zeros(4)
    x[2] = size * (-1.0) ** np.arange(width)
    y[2] = target
    eta, clip, ends = 1e-4, 1.0, []
    for rows in ([0, 1, 2, 3], [0, 1, 3, 3]):
        inputs = x[rows, 0] if width == 1 else x[rows]
        ends.append(
            sgld_sample(
                inputs, y[rows], 1.0, 1.0, eta, 1, theta0=0.5, n_chains=50, batch_size=4, clip=clip, rng=0
            ).reshape(50, width)
        )
    distance = np.sqrt(((ends[0] - ends[1]) ** 2).sum(axis=1))
    assert (distance <= eta / 2 * 4 * 2 * clip).all()  # at most four draws of four, each 2 C apart; never NaN


def test_the_noise_leaves_room_for_the_rounding_of_large_sums() -> None:
    def room(size: int) -> float:
        return 1 - noise_multiplier_of(1e-4, 10**9, size, 1.0) / (2 * size / (10**9 * math.sqrt(1e-4)))

    assert room(1) == pytest.approx(1e-12, rel=0.01)
    assert room(10**5) > 10**5 * (10**5 + 8) * 2.0**-53
    assert noise_multiplier_of(1e-4, 10**9, 10**8, 1.0) == 0.0
    multiplier = noise_multiplier_of(step_size_of(3.0, 10**6, 10**4, 1.0), 10**6, 10**4, 1.0)
    assert 3.0 <= multiplier <= 3.0 * (1 + 1e-6)


@for_each("given", [-1.0, "a", [1e-4], [1e-4, -1.0], [[1e-4, 1e-4]], ["a", "b"]])
def test_a_step_size_that_cannot_be_used_is_refused_by_its_name(given: Any) -> None:
    with pytest.raises((InputError, InputTypeError), match=r"^step_size must be"):
        SGLDRegressor(n_steps=2, step_size=given).fit(X, Y)
