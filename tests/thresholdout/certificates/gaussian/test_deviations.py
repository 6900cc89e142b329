"""Certificates of Gaussian answers: worked values, high precision, certified counts, and the order of things."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import Groups, HiddenMarkov, Independent, MarkovChain, MovingWindow
from tests.sizes import corners
from thresholdout.certificates.gaussian.chosen_widths import one_scale, scheduled_widths
from thresholdout.certificates.gaussian.deviations import GaussianWidths, NoiseRuns
from thresholdout.certificates.gaussian.drift import AnytimeDrift, Drift
from thresholdout.certificates.gaussian.noise_schedule import (
    is_possible,
    most_answers,
    schedule_within,
    tightest_schedule,
)
from thresholdout.certificates.independent_blocks import IndependentBlocks, blocks_of
from thresholdout.certificates.normal_extremes import largest_normal_superquantile
from thresholdout.certificates.routes.latent_groups import (
    best_blocks,
    gaussian_within,
    redraw_blocks,
    redraw_probability,
    tightest_gaussian,
)

COUNTS = [  # n, tau, answers with one scale, with the schedule
    (2_000, 0.1, 8, 14),
    (5_000, 0.1, 72, 141),
    (10_000, 0.1, 318, 664),
    (50_000, 0.1, 8_281, 18_565),
    (100_000, 0.1, 32_231, 73_964),
    (100_000, 0.05, 2_086, 4_548),
]


def records(n: int) -> IndependentBlocks:
    return IndependentBlocks.of_records(n)


def exact_drift(n: int, stretch: float, failure: float, information: mpmath.mpf) -> mpmath.mpf:
    b, x = mpmath.mpf(stretch), mpmath.mpf(information)
    inside = (1 + b) * (x - mpmath.log(mpmath.mpf(failure)) / b) / (n * (2 - (1 + b) * x / n))
    return mpmath.sqrt(inside)


def test_worked_drift() -> None:
    assert Drift(records(100_000), 0.1, 0.01)(500.0) == pytest.approx(0.054877738357088986, rel=1e-11)


def test_drift_in_high_precision() -> None:
    with mpmath.workdps(40):
        for n, b, failure, x in ((1000, 0.3, 0.02, 12.5), (10**6, 0.07, 1e-6, 5000.0), (10, 2.0, 0.5, 0.01)):
            exact, bound = exact_drift(n, b, failure, x), Drift(records(n), b, failure)(x)
            assert exact <= bound <= exact * (1 + mpmath.mpf("1e-11"))


@pytest.mark.parametrize(("n", "tolerance", "same", "scheduled"), COUNTS)
def test_counts(n: int, tolerance: float, same: int, scheduled: int) -> None:
    assert one_scale(records(n), same, 0.05).tolerance() <= tolerance
    found = most_answers(records(n), tolerance, 0.05)
    assert found is not None
    assert found.schedule.answers >= scheduled
    assert found.tolerance() <= tolerance


@pytest.mark.parametrize("n", corners([5_000, 100_000], 0))
def test_schedule_in_high_precision(n: int) -> None:
    """The noise is taken as it is; everything else is recomputed: no half-width exceeds tau, the failures add up."""
    found = most_answers(records(n), 0.1, 0.05)
    assert found is not None
    assert isinstance(found.drift, Drift)
    assert found.drift.failure + found.noise_failure <= 0.05 * (1 + 1e-12)
    scales = found.schedule.expand()
    constant = largest_normal_superquantile(len(scales), found.noise_failure)
    with mpmath.workdps(30):
        x = mpmath.mpf(0)
        for j, scale in enumerate(scales, start=1):
            x += 1 / (8 * mpmath.mpf(n) * mpmath.mpf(float(scale)) ** 2)
            if j % 997 == 1 or j == len(scales):
                drift = exact_drift(n, found.drift.stretch, found.drift.failure, x)
                width = mpmath.mpf(float(scale)) * mpmath.mpf(constant) + drift
                assert width <= mpmath.mpf("0.1")
                claimed = found.half_width(j, j - 1, "holdout")
                assert width <= claimed <= width * (1 + mpmath.mpf("1e-7"))


def test_schedule_against_greedy_forwards() -> None:
    """Largest noise for each answer in turn, by bisection: never fewer answers, and no more than a few."""
    n, tolerance = 3_000, 0.1
    found = most_answers(records(n), tolerance, 0.05)
    assert found is not None
    drift = found.drift
    assert isinstance(drift, Drift)
    constant = largest_normal_superquantile(found.schedule.answers, found.noise_failure)
    x, count = 0.0, 0

    def width(scale: float) -> float:
        return scale * constant + drift(x + drift.information(scale))

    while True:
        fitting = [scale for scale in np.geomspace(1e-3, 1, 700) if width(scale) <= tolerance]
        if not fitting:
            break
        low, high = fitting[-1], fitting[-1] * 1.02
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if width(middle) <= tolerance else (low, middle)
        x += drift.information(low)
        count += 1
        if count > found.schedule.answers + 5:
            break
    assert found.schedule.answers - 1 <= count <= found.schedule.answers + 3


def test_schedule_is_decreasing_and_never_wider_than_one_scale() -> None:
    for n, answers in ((1000, 1), (2000, 14), (10_000, 1000), (200_000, 150_000)):
        best = tightest_schedule(records(n), answers, 0.05)
        assert best.schedule.answers == answers
        assert all(np.diff(best.schedule.scales) <= 0)
        assert best.tolerance() <= one_scale(records(n), answers, 0.05).tolerance()
        middle = (answers + 1) // 2
        assert best.half_width(middle, middle - 1, "holdout") <= best.tolerance() * (1 + 1e-12)


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(st.integers(500, 10**6), st.integers(1, 10**5), st.floats(1e-6, 0.3))
def test_tolerance_is_monotone(n: int, answers: int, beta: float) -> None:
    def tolerance(n: int, answers: int, beta: float) -> float:
        return tightest_schedule(records(n), answers, beta).tolerance()

    here = tolerance(n, answers, beta)
    near = 1 + 1e-3  # parameters are searched, not solved for
    assert tolerance(2 * n, answers, beta) <= here
    assert tolerance(n, 2 * answers, beta) >= here / near
    assert tolerance(n, answers, beta / 2) >= here / near


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(st.integers(2_000, 10**6), st.floats(0.03, 0.3))
def test_count_is_monotone(n: int, tolerance: float) -> None:
    def count(n: int, tolerance: float, beta: float = 0.05) -> int:
        found = most_answers(records(n), tolerance, beta)
        return 0 if found is None else found.schedule.answers

    here = count(n, tolerance)
    assert count(2 * n, tolerance) >= here
    assert count(n, 1.1 * tolerance) >= here
    assert count(n, tolerance, 0.1) >= here
    if here:
        assert tightest_schedule(records(n), here, 0.05).tolerance() <= tolerance * (1 + 1e-3)
        assert is_possible(records(n), max(1, here - here // 50), tolerance, 0.05)
        assert not is_possible(records(n), here + here // 50 + 2, tolerance, 0.05)


def test_drift_is_monotone() -> None:
    drift = Drift(records(1000), 0.5, 0.05)
    values = [drift(x) for x in np.linspace(0, 1300, 500)]
    assert values == sorted(values)
    assert Drift(records(1000), 0.5, 0.05)(2000.0) == math.inf
    assert Drift(records(2000), 0.5, 0.05)(10.0) < Drift(records(1000), 0.5, 0.05)(10.0)
    assert Drift(records(1000), 0.5, 0.01)(10.0) > Drift(records(1000), 0.5, 0.05)(10.0)


def test_anytime_drift_is_the_best_of_several_that_share_the_failure() -> None:
    anytime = AnytimeDrift(records(50_000), 0.04)
    for x in (0.0, 0.3, 40.0, 900.0):
        best = min(Drift(records(50_000), b, 0.04 / 8)(x) for b in np.geomspace(0.02, 10, 8))
        assert anytime(x) == pytest.approx(best, rel=1e-11)
        assert anytime(x) >= min(Drift(records(50_000), b, 0.04)(x) for b in np.geomspace(0.01, 20, 200))
    assert np.all(np.diff(anytime.bound(np.linspace(0, 1000, 300))) > 0)


def test_equal_groups_count_as_records() -> None:
    groups = blocks_of(Groups([record // 5 for record in range(50_000)]))
    assert groups is not None
    assert groups.effective == pytest.approx(10_000)
    assert groups.crowding == pytest.approx(1 / 10_000)
    same, single = one_scale(groups, 100, 0.05), one_scale(records(10_000), 100, 0.05)
    assert same.tolerance() == pytest.approx(single.tolerance(), rel=1e-9)


def test_unequal_groups_by_hand() -> None:
    blocks = IndependentBlocks.of_sizes(np.array([1, 2, 3]))
    drift = Drift(blocks, 0.5, 0.1)
    x = drift.information(2.0)
    inflation = (1 + 4 + 9) / 6
    assert x == pytest.approx(inflation / (8 * 6 * 4))
    room = 2 - 1.5 * x * 9 / (inflation * 6)
    assert drift(x) == pytest.approx(math.sqrt(1.5 * (x + math.log(10) / 0.5) / (6 / inflation * room)), rel=1e-9)


def test_threshold_and_rounding_add_to_the_half_width() -> None:
    drift, schedule = Drift(records(10_000), 0.3, 0.02), NoiseRuns.constant(0.02, 100)
    plain = GaussianWidths(drift, schedule, 0.03)
    front = GaussianWidths(drift, schedule, 0.03, threshold=0.05, slack=0.001)
    assert front.half_width(7, 6, "holdout") == pytest.approx(plain.half_width(7, 6, "holdout") + 0.001)
    assert front.half_width(7, 6, "train") == pytest.approx(plain.half_width(7, 6, "holdout") + 0.051)
    assert front.tolerance() == pytest.approx(plain.tolerance() + 0.051)
    assert plain.half_width(101, 100, "holdout") == math.inf


def test_anytime_half_widths_go_on_and_grow() -> None:
    widths = scheduled_widths(records(100_000), NoiseRuns.constant(0.01, 1000), 0.05, declared=False)
    values = [widths.half_width(j, j - 1, "holdout") for j in (1, 2, 10, 1000, 2000, 100_000)]
    assert values == sorted(values)
    assert widths.tolerance() == math.inf
    assert widths.information(2000) == pytest.approx(2000 / (8 * 100_000 * 0.01**2))
    declared = scheduled_widths(records(100_000), NoiseRuns.constant(0.01, 1000), 0.05)
    assert declared.tolerance() < values[3] < 1.3 * declared.tolerance()


def test_schedules() -> None:
    assert NoiseRuns.of([0.3, 0.2, 0.2, 0.1]) == NoiseRuns((0.3, 0.2, 0.1), (1, 2, 1))
    widths = GaussianWidths(Drift(records(1000), 1.0, 0.01), NoiseRuns.of([0.3, 0.2, 0.2, 0.1]), 0.04)
    singles = np.cumsum([1 / (8 * 1000 * s**2) for s in (0.3, 0.2, 0.2, 0.1)])
    assert [widths.information(j) for j in (1, 2, 3, 4)] == pytest.approx(singles.tolist())
    many = GaussianWidths(Drift(records(1000), 1.0, 0.01), NoiseRuns.constant(100.0, 10**9), 0.04)
    with mpmath.workdps(30):
        for answer in (1, 7, 10**9):
            exact = answer / (8 * mpmath.mpf(1000) * mpmath.mpf(100) ** 2)
            assert exact <= many.information(answer) <= exact * (1 + mpmath.mpf("1e-13"))
    assert schedule_within(records(1000), 50, 0.1, Drift(records(1000), 1.0, 0.01), 0.04) is None


# Latent groups


@pytest.mark.parametrize(("redraw", "inflation", "longest"), [(0.5, 3.088, 38), (0.1, 20.65, 247)])
def test_worked_runs(redraw: float, inflation: float, longest: int) -> None:
    blocks = redraw_blocks(100_000, redraw, 1e-6)
    assert blocks.inflation == pytest.approx(inflation, rel=5e-4)
    assert blocks.largest == longest


@pytest.mark.parametrize(
    ("n", "redraw", "answers"), corners([(100_000, 0.5, 2464), (100_000, 0.1, 44), (1_000_000, 0.1, 5750)], 0)
)
def test_counts_of_a_chain(n: int, redraw: float, answers: int) -> None:
    chain = MarkovChain([[1 - redraw / 2, redraw / 2], [redraw / 2, 1 - redraw / 2]], n=n)
    for constant, least in ((True, answers), (False, 2 * answers)):
        found = gaussian_within(chain, 0.1, 0.05, constant=constant)
        assert found is not None
        assert found.schedule.answers >= least
        exception = math.sqrt(found.drift.blocks.exception)
        assert found.drift.failure + found.noise_failure + exception <= 0.05 * (1 + 1e-12)


def test_runs_are_rarely_longer() -> None:
    """Exact law of the sum of squares for a short series, by recursion over the runs."""
    n, redraw, eta = 30, 0.3, 0.05
    blocks = redraw_blocks(n, redraw, eta)
    most, longest = int(blocks.inflation * n), int(blocks.largest)
    within = np.zeros((n + 1, n * n + 1))
    within[0, 0] = 1.0
    finished = np.zeros(n * n + 1)
    for start in range(n):
        for length in range(1, n - start + 1):
            weight = redraw * (1 - redraw) ** (length - 1)
            last = start + length == n
            if length > longest:
                continue
            shifted = np.r_[np.zeros(length**2), within[start, : n * n + 1 - length**2]]
            if last:
                finished += shifted * weight / redraw
            else:
                within[start + length] += shifted * weight
    assert 1 - finished[: most + 1].sum() <= eta
    usual = int(n * (2 - redraw) / redraw)
    assert 1 - finished[: usual + 1].sum() > eta


@settings(max_examples=20, deadline=None)
@given(st.integers(100, 10**5), st.floats(0.02, 0.9), st.floats(1e-9, 1e-3))
def test_runs_are_monotone(n: int, redraw: float, eta: float) -> None:
    here = redraw_blocks(n, redraw, eta)
    assert redraw_blocks(n, redraw, eta / 10).inflation >= here.inflation * (1 - 1e-3)
    assert redraw_blocks(n, redraw * 1.1, eta).inflation <= here.inflation * (1 + 1e-3)
    assert 1 <= here.inflation <= here.largest <= n


def test_a_chain_is_a_mixture_of_independent_runs() -> None:
    """All coins and all states of five records: the mixture is the chain, and given coins every record has its law."""
    rows = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]])
    chain = MarkovChain(rows, n=5)
    law, redraw = chain.stationary, redraw_probability(chain)
    rest = (rows - redraw * law) / (1 - redraw)
    mixture = np.zeros((3,) * 5)
    for coins in itertools.product((0, 1), repeat=4):
        weight = redraw ** sum(coins) * (1 - redraw) ** (4 - sum(coins))
        joint = law
        for coin in coins:
            kernel = np.broadcast_to(law, (3, 3)) if coin else rest
            joint = joint[..., None] * kernel
        for record in range(5):
            marginal = joint.sum(axis=tuple(axis for axis in range(5) if axis != record))
            assert marginal == pytest.approx(law)
        mixture += weight * joint
    assert mixture == pytest.approx(chain.joint())


def test_redraw_probability() -> None:
    rows = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]])
    chain = MarkovChain(rows, n=50)
    redraw = redraw_probability(chain)
    assert redraw == pytest.approx(float(np.min(rows / chain.stationary)), rel=1e-8)
    rest = (rows - redraw * chain.stationary) / (1 - redraw)
    assert rest.min() >= 0
    assert chain.stationary @ rest == pytest.approx(chain.stationary)
    assert redraw_probability(HiddenMarkov(rows, n=50)) == redraw
    assert redraw_probability(MarkovChain(rows, n=50, initial=[1, 0, 0])) == 0
    assert redraw_probability(MarkovChain([[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]], n=9)) == 0
    assert redraw_probability(MovingWindow(10, 2)) == 0


def test_other_dependence_has_no_certificate() -> None:
    window = MovingWindow(1000, 3)
    assert best_blocks(window, 10, 0.05) is None
    assert gaussian_within(window, 0.5, 0.05) is None
    assert tightest_gaussian(window, 10, 0.05) is None
    assert tightest_gaussian(Independent(10_000), 100, 0.05) is not None
