"""Federated averaging: its rounds, its noise, its account of clients, its refusals."""

import dataclasses
import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.cases import for_each
from tests.sizes import sizes
from tests.terminal import bars_at_once
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting import FederatedRound, SelfComposed, SGLDStep, UnsoundBoundWarning, best_epsilon
from thresholdout.privacy.accounting.accountants.calibration import best_delta
from thresholdout.privacy.learning import run_federated
from thresholdout.privacy.learning.federated import FederatedRun

QUICK = settings(max_examples=40, derandomize=True, deadline=None)
CLIENTS = list(np.random.default_rng(9).normal(size=(30, 2)))


def towards(client: Any, theta: Any) -> Any:
    return client - theta


def still(client: Any, theta: Any) -> Any:
    return np.zeros(theta.size)


def run(update: Any = towards, clients: Any = CLIENTS, **named: Any) -> FederatedRun:
    usual: dict[str, Any] = {"theta0": [0.0, 0.0], "T": 4, "batch_size": 6, "sigma": 0.2, "L": 0.5, "random_state": 0}
    return run_federated(update, clients, **{**usual, **named})


def test_the_noiseless_round_by_hand() -> None:
    clients = [np.array([3.0, 4.0]), np.array([0.3, 0.4]), np.array([-1.0, 0.0])]
    found = run(clients=clients, T=1, batch_size=3, L=1.0, sigma=1e-13)
    np.testing.assert_allclose(found.theta, [-1 / 30, 0.4], atol=1e-11)
    assert found.event is None
    assert not found.privacy(1e-5).private


def test_tiny_noise_is_plain_federated_averaging() -> None:
    """Clients with several records take two gradient steps on their own mean squared error; nothing is clipped."""
    rng = np.random.default_rng(4)
    clients = [(rng.normal(size=(size, 2)), rng.normal(size=size)) for size in (1, 3, 5, 2)]

    def local(client: Any, theta: Any) -> Any:
        rows, wanted = client
        model = theta.copy()
        for _ in range(2):
            model -= 0.1 * rows.T @ (rows @ model - wanted) / len(wanted)
        return model - theta

    found = run(local, clients, T=25, batch_size=4, sigma=1e-13, L=100.0)
    theta = np.zeros(2)
    for _ in range(25):
        theta = theta + np.mean([local(client, theta) for client in clients], axis=0)
    np.testing.assert_allclose(found.theta, theta, atol=1e-9)


@sizes("rounds", 1000, 3000)
def test_each_round_asks_a_fresh_subset_of_clients(rounds: int) -> None:
    asked: list[list[int]] = [[]]

    def watch(client: int, theta: Any) -> Any:
        asked[-1].append(client)
        if len(asked[-1]) == 2:
            asked.append([])
        return [0.0]

    run_federated(watch, range(5), theta0=[0.0], T=rounds, batch_size=2, sigma=1.0, L=1.0, random_state=2)
    pairs = [tuple(sorted(pair)) for pair in asked[:-1]]
    counts = [pairs.count(pair) for pair in combinations(range(5), 2)]
    assert sum(counts) == rounds
    assert stats.chisquare(counts).pvalue > 1e-9
    repeats = sum(a == b for a, b in zip(pairs[::2], pairs[1::2], strict=True))
    assert stats.binomtest(repeats, rounds // 2, 0.1).pvalue > 1e-9


@pytest.mark.statistical
def test_d13_the_noise_on_the_mean_is_the_bound_times_sigma() -> None:
    """Two-sided at 1e-9; noise on the sum, in other units, and 30 % off are rejected."""
    found = run(still, T=6000, sigma=0.2, L=0.5, theta0=np.zeros(3))
    noise = np.diff(found.trajectory, axis=0).ravel()
    low, high = (float(stats.chi2.ppf(level, noise.size)) for level in (0.5e-9, 1 - 0.5e-9))

    def accepted(std: float) -> bool:
        return bool(low < np.sum(noise**2) / std**2 < high)

    assert accepted(0.5 * 0.2)
    for wrong in (0.2, 0.5 * math.sqrt(0.2), 0.1 / 6, 0.07, 0.13):
        assert not accepted(wrong)


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.01, 100.0))
def test_one_client_moves_a_round_by_the_sensitivity_at_most(seed: int, size: int, L: float) -> None:
    """Rounds with the same draw and noise, before rounding in theta: 2 L / tau, however many records a client has."""
    rng = np.random.default_rng(seed)
    here = [rng.normal(size=(int(rng.integers(1, 9)), 3)) * 10.0 ** rng.uniform(-3, 3) for _ in range(6)]
    there = list(here)
    there[2] = 1e6 * rng.normal(size=(50, 3))
    options: dict[str, Any] = {"T": 1, "batch_size": size, "sigma": 1e-9, "L": L, "random_state": seed}
    ends = [
        run(lambda client, theta: client.sum(axis=0), clients, theta0=np.zeros(3), **options).theta
        for clients in (here, there)
    ]
    apart = sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(*ends, strict=True))
    rounding = Fraction(1) + Fraction(1, 10**12)
    assert apart <= (Fraction(2) * Fraction(L) / size * rounding) ** 2


def test_d12_the_account_is_about_clients_not_records() -> None:
    """All 100 records of a client change: the mean moves by 2 L / tau, 100 times what records would be charged."""
    ends = []
    for sign in (1.0, -1.0):
        clients = [np.full((100, 1), sign if number == 0 else 0.5) for number in range(10)]
        found = run(lambda client, theta: client.mean(axis=0), clients, theta0=[0.0], T=1, batch_size=10, L=1.0)
        ends.append(found.theta[0])
    assert ends[0] - ends[1] == pytest.approx(2 / 10, rel=1e-9)
    assert ends[0] - ends[1] > 2 / 1000 * 99
    assert found.event == SelfComposed(FederatedRound(0.2, 10, 10), 1)
    assert "another client in one's place" in str(found.privacy(1e-5))


@pytest.mark.statistical
@sizes("runs", 1500, 3000)
def test_the_epsilon_survives_an_attack_which_finds_half_the_noise(runs: int) -> None:
    """One client of 4 pulls the other way. Error rate 1e-9 for each side."""
    eps = 1.0
    all_one, other = [1.0] * 4, [-1.0, 1.0, 1.0, 1.0]

    def ends(clients: list[float], sigma: float, seed: int) -> Any:
        found = [
            run(
                lambda client, theta: [5.0 * client],
                clients,
                theta0=[0.0],
                T=2,
                batch_size=2,
                sigma=sigma,
                random_state=np.random.default_rng([seed, repeat]),
            ).theta[0]
            for repeat in range(runs)
        ]
        return np.asarray(found)

    claimed = run(still, all_one, batch_size=2, T=2, sigma=0.6).event
    assert claimed is not None
    delta = best_delta(claimed, eps)
    for sigma, caught in ((0.6, False), (0.3, True)):
        with_it, without = ends(other, sigma, 1) < 0.5, ends(all_one, sigma, 2) < 0.5
        least = stats.binomtest(int(with_it.sum()), runs).proportion_ci(1 - 1e-9).low
        most = stats.binomtest(int(without.sum()), runs).proportion_ci(1 - 1e-9).high
        assert bool(least > math.exp(eps) * most + delta) is caught


def test_worked_values() -> None:
    """Steps with sigma = 1, tau = 10, delta = 1e-5."""
    found = run(still, range(10), T=1, batch_size=10, sigma=1.0, theta0=[0.0])
    for neighbours, epsilon in (("replace", 0.9797051824376162), ("zero_out", 0.4848525912188081)):
        step = found.composition(1e-5, 1e-6, neighbours=neighbours).details["step_eps"]
        assert step == pytest.approx(epsilon, rel=1e-12)
    with pytest.warns(UnsoundBoundWarning):
        paper = found.composition(1e-5, 1e-6, formula="paper")
    assert paper.details["step_eps"] == pytest.approx(0.6836140424415112, rel=1e-12)
    assert not paper.sound
    with pytest.raises(InputError, match="neighbours"):
        found.composition(1e-5, 1e-6, neighbours="agnostic")


@pytest.mark.slow
def test_both_accounts_agree_about_what_is_smaller() -> None:
    found = FederatedRun(np.zeros((2001, 1)), 60_000, 64, 0.5, False, 1.0, "zero")
    optimal = found.composition(1e-6, 1e-6, method="optimal")
    assert optimal.eps == pytest.approx(0.0659, abs=5e-5)
    report = found.privacy(optimal.delta)
    assert report.epsilon < optimal.eps
    same = SelfComposed(SGLDStep(0.5, 1.0, 64, 60_000), 2000)  # L cancels: the same mechanism
    assert report.epsilon == best_epsilon(same, optimal.delta).epsilon
    assert report.unit == "client"
    assert len(report.assumptions) == 3


@pytest.mark.slow
def test_increments_that_are_not_finite() -> None:
    clients = [np.array([np.nan, 1.0]), np.array([0.3, 0.4]), np.array([np.inf, 0.0])]
    options: dict[str, Any] = {"clients": clients, "T": 1, "batch_size": 3, "sigma": 1e-13, "L": 1.0}
    with pytest.raises(InputError, match=r"increments must be .*; got a value that is not finite"):
        run(lambda client, theta: client, **options)
    found = run(lambda client, theta: client, non_finite="zero", **options)
    np.testing.assert_allclose(found.theta, [0.1, 0.4 / 3], atol=1e-11)
    assert any("infinite or NaN" in words for words in run().privacy(1e-5).assumptions)


def test_increments_of_the_wrong_kind() -> None:
    for value in ([0.0], [[0.0, 0.0]], 0.0, ["a", "b"], None, [1j, 0.0]):
        with pytest.raises(InputError, match="client_update"):
            run(lambda client, theta, value=value: value)


def test_a_client_cannot_change_what_the_next_one_sees() -> None:
    def spoil(client: Any, theta: Any) -> Any:
        theta += client
        return theta

    with pytest.raises(ValueError, match="read-only"):
        run(spoil)


def test_the_same_seed_gives_the_same_run_and_the_global_generator_is_left_alone() -> None:
    np.random.seed(7)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    one, again, other = run(), run(), run(random_state=1)
    np.testing.assert_array_equal(one.trajectory, again.trajectory)
    assert not np.array_equal(one.trajectory, other.trajectory)
    assert not np.array_equal(run(random_state=None).theta, run(random_state=None).theta)
    np.testing.assert_array_equal(np.random.random(3), expected)  # noqa: NPY002
    assert np.array_equal(
        run(random_state=np.random.default_rng(3)).theta, run(random_state=np.random.default_rng(3)).theta
    )


def test_draws_and_noise_have_streams_of_their_own() -> None:
    one, other = run(still, batch_size=6), run(still, batch_size=30)
    np.testing.assert_array_equal(one.trajectory, other.trajectory)
    asked: list[list[int]] = [[], []]
    for keep, sigma in zip(asked, (0.1, 1.0), strict=True):

        def watch(client: Any, theta: Any, keep: list[int] = keep) -> Any:
            keep.append(client)
            return np.zeros(2)

        run(watch, range(30), sigma=sigma)
    assert asked[0] == asked[1]


def test_the_result_is_frozen() -> None:
    found = run()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.L = 2.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        found.theta[0] = 1.0
    assert found.trajectory.shape == (5, 2)
    assert repr(found) == "<FederatedRun: 4 steps on 6 of 30, sigma 0.2>"
    assert found.noise_multiplier == pytest.approx(1.2)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"sigma": 0.0}, "sigma"),
    ({"sigma": math.nan}, "sigma"),
    ({"sigma": 1e8}, r"sigma must be .*; got 1e\+08, 6e\+08 times"),
    ({"L": 0.0}, "L"),
    ({"L": math.inf}, "L"),
    ({"T": 0}, "T"),
    ({"batch_size": 0}, "batch_size"),
    ({"batch_size": 31}, "batch_size must be at most 30, .*; got 31"),
    ({"theta0": [math.inf, 0.0]}, "theta0"),
    ({"theta0": 0.0}, "theta0"),
    ({"non_finite": "ignore"}, "non_finite"),
    ({"clients": []}, "clients must be .*; got an empty one"),
    ({"random_state": -1}, "random_state"),
]
BAD_TYPES: list[tuple[dict[str, Any], str]] = [
    ({"sigma": None}, "sigma"),
    ({"L": True}, "L"),
    ({"T": 2.0}, "T"),
    ({"batch_size": "6"}, "batch_size"),
    ({"clients": "abc"}, "clients"),
    ({"clients": {0: 1}}, "clients"),
    ({"update": None}, "client_update"),
    ({"random_state": True}, "random_state"),
]


@for_each(("named", "message"), BAD)
def test_values_that_are_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(**{"update": lambda *_: pytest.fail("a client was asked"), **named})


@for_each(("named", "message"), BAD_TYPES)
def test_types_that_are_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(InputTypeError, match=message):
        run(**{"update": lambda *_: pytest.fail("a client was asked"), **named})


def test_progress_is_shown_unless_it_is_not_wanted() -> None:
    with bars_at_once() as terminal:
        run(progress=False)
        assert not terminal.getvalue()
        run()
    assert "0/4" in terminal.getvalue()
