"""Looks at records that depend on each other: exact prices of noisy sums, and chains of neighbours."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from graphs import DependenceModel, Groups, Independent, MarkovChain, MovingWindow, Panel
from graphs.structure.revealed_blocks import RevealedBlocks
from tests.sizes import corners
from thresholdout.certificates.change_of_measure import (
    information,
    information_per_record,
    smallest_nats,
    whatever_the_labels,
)
from thresholdout.privacy.accounting import (
    BlackBox,
    Event,
    GaussianAnswer,
    LaplaceAnswer,
    PoissonGaussianStep,
    RenyiAccountant,
    WithoutReplacementGaussianStep,
)
from thresholdout.privacy.accounting.events.event_types import Adjacency

Floats = NDArray[np.float64]
N = 200


def copies(size: int) -> Floats:
    """Return the law of the sum of N coins, of which so many are the same one."""
    law = np.zeros(N + 1)
    law[::size] = binom.pmf(np.arange(N // size + 1), N // size, 0.5)
    return law


def sticky(stay: float) -> Floats:
    """Return the law of the sum of a chain of N coins that stay as they were with some probability."""
    law = np.zeros((2, N + 1))
    law[0, 0] = law[1, 1] = 0.5
    for _ in range(N - 1):
        after = np.zeros_like(law)
        after[0] = stay * law[0] + (1 - stay) * law[1]
        after[1, 1:] = stay * law[1, :-1] + (1 - stay) * law[0, :-1]
        law = after
    total: Floats = law.sum(axis=0)
    return total


def noisy(event: Event) -> Floats:
    """Return the law of a noisy sum, a row for each value that may be told, a column for each sum."""
    sums = np.arange(N + 1)
    if isinstance(event, GaussianAnswer):
        told = np.linspace(-9 * event.std, N + 9 * event.std, 4001)
        density: Floats = norm.pdf(told[:, None], sums, event.std) * (told[1] - told[0])
        return density
    assert isinstance(event, LaplaceAnswer)
    ratio = math.exp(-1 / event.scale)
    channel: Floats = ratio ** np.abs(sums[:, None] - sums) * (1 - ratio) / (1 + ratio)
    channel[0] = ratio**sums / (1 + ratio)
    channel[N] = channel[0][::-1]
    return channel


def exact_nats(law: Floats, channel: Floats, p: float) -> float:
    """Return ln(p/b), b the least probability for fresh records of an event that has p: by Neyman and Pearson."""
    joint = channel * law
    keep = joint > 1e-300
    losses = np.log((channel / joint.sum(axis=1, keepdims=True))[keep])
    order = np.argsort(-losses)
    seen = joint[keep][order]
    fresh = np.cumsum(seen * np.exp(-losses[order]))
    reached = np.cumsum(seen)
    return math.log(p / float(np.interp(p, np.r_[0.0, reached], np.r_[0.0, fresh])))


MODELS: dict[str, tuple[DependenceModel, Floats]] = {
    "groups of 10": (Groups(np.arange(N) // 10), copies(10)),
    "groups of 4": (Groups(np.arange(N) // 4), copies(4)),
    "window of 3": (MovingWindow(N, 3), copies(4)),
    "chain": (MarkovChain([[0.99, 0.01], [0.01, 0.99]], n=N), sticky(0.99)),
}


@pytest.mark.parametrize("p", corners([0.3, 0.05, 0.001], 2))
@pytest.mark.parametrize("name", corners(MODELS, 0))
def test_no_event_of_a_noisy_sum_is_likelier_than_promised(name: str, p: float) -> None:
    model, law = MODELS[name]
    for event in (GaussianAnswer(100.0), GaussianAnswer(1000.0), LaplaceAnswer(20.0), LaplaceAnswer(100.0)):
        epsilon = 1 / event.scale if isinstance(event, LaplaceAnswer) else math.inf
        channel = noisy(event)
        exact = exact_nats(law, channel, p)
        assert 0 < exact <= smallest_nats(model, event, epsilon, p)
        if model.revealed_blocks().blocks > 1:
            joint = channel * law
            keep = joint > 1e-300
            mutual = float(
                (joint * np.log(channel / joint.sum(axis=1, keepdims=True), where=keep, out=joint * 0)).sum()
            )
            assert mutual <= information(event, epsilon, model.revealed_blocks())


@pytest.mark.parametrize(
    ("name", "event"),
    corners(
        [
            ("groups of 10", LaplaceAnswer(20.0)),
            ("groups of 4", LaplaceAnswer(100.0)),
            ("window of 3", LaplaceAnswer(100.0)),
            ("chain", LaplaceAnswer(100.0)),
            ("chain", GaussianAnswer(100.0)),
        ],
        0,
        3,
    ),
)
def test_prices_of_independent_records_are_too_small(name: str, event: Event) -> None:
    """The broken twin takes dependent records for independent ones."""
    model, law = MODELS[name]
    epsilon = 1 / event.scale if isinstance(event, LaplaceAnswer) else math.inf
    exact = exact_nats(law, noisy(event), 0.3)
    assert smallest_nats(Independent(N), event, epsilon, 0.3) < exact < smallest_nats(model, event, epsilon, 0.3)


def test_known_labels_leave_nothing_of_a_window_but_independent_groups() -> None:
    """Labels that say whether the coins of two records in a row are the same: a unit is one coin then."""
    panel, release, p = Panel(MovingWindow(100, 1), 2), GaussianAnswer(300.0), 0.3
    exact = exact_nats(copies(100), noisy(release), p)
    assert smallest_nats(panel, release, math.inf, p) < 0.7 * exact  # the broken twin
    labelled = whatever_the_labels(panel)
    assert smallest_nats(labelled, release, math.inf, p) > exact
    assert smallest_nats(labelled, release, math.inf, p) == smallest_nats(
        Groups(np.repeat([0, 1], 100)), release, math.inf, p
    )


def test_of_other_models_labels_say_nothing_and_a_window_alone_has_none() -> None:
    for model in (Independent(N), Groups(np.arange(N) // 4)):
        assert whatever_the_labels(model) is model
    assert whatever_the_labels(MovingWindow(N, 1)).revealed_blocks() == RevealedBlocks((N,), (1,))


def renyi(p: Floats, q: Floats, order: int) -> float:
    """Return the Renyi divergence of two laws without zeros."""
    if order == 1:
        return float((p * np.log(p / q)).sum())
    return float(np.log((p**order * q ** (1.0 - order)).sum()) / (order - 1))


def test_divergences_along_a_chain_of_neighbours() -> None:
    """M4 and M5 for laws on four points, of which each two in a row are a step; groups without their factor fail."""
    rng = np.random.default_rng(22)
    linear, plain = 0, 0
    for steps in [2, 3, 5] * 200:
        laws = np.exp(np.cumsum(rng.normal(0.1, 0.4, (steps + 1, 4)), axis=0))
        laws /= laws.sum(axis=1, keepdims=True)
        pairs = list(itertools.pairwise(laws))
        order = [max(renyi(p, q, i) for p, q in pairs) for i in range(1, steps + 1)]
        whole = renyi(laws[0], laws[-1], 1)
        assert whole <= steps * sum(value / i for i, value in enumerate(order, 1)) * (1 + 1e-12)
        linear += whole > steps * order[0]
        a = 0.2
        single = max(float(np.maximum(p - math.exp(a) * q, 0).sum()) for p, q in pairs)
        group = float(np.maximum(laws[0] - math.exp(steps * a) * laws[-1], 0).sum())
        assert group <= single * math.expm1(steps * a) / math.expm1(a) * (1 + 1e-12)
        plain += group > single
    assert linear > 50
    assert plain > 50


def test_batches_of_a_fixed_size_are_a_larger_part_of_fewer_records() -> None:
    """What they tell about one record more does not hold for the records that are left of a group."""
    orders = np.array([1.001, 2.0])

    def pair(step: Event, adjacency: Adjacency) -> float:
        near, second = RenyiAccountant(adjacency).compose(step).rdp(orders)
        return float(2 * (near + second / 2))

    release, fewer = (WithoutReplacementGaussianStep(8.0, 30, records) for records in (1000, 500))
    assert pair(release, "add_remove") < 0.3 * pair(
        fewer, "add_remove"
    )  # so it says nothing of the records that follow
    found = information(release, math.inf, RevealedBlocks((2,), (1,)))
    assert found == pytest.approx(pair(release, "replace_one"), rel=1e-6)
    assert found > pair(release, "add_remove")
    poisson = PoissonGaussianStep(8.0, 0.03)
    assert information(poisson, math.inf, RevealedBlocks((2,), (1,))) == pytest.approx(pair(poisson, "add_remove"))


def test_gaussian_groups_pay_the_square_of_their_size() -> None:
    release = GaussianAnswer(50.0)
    blocks = RevealedBlocks((2, 5), (3, 4))
    assert blocks.squares == 112
    assert information(release, math.inf, blocks) == pytest.approx(
        112 * information_per_record(release, math.inf), rel=1e-3
    )
    assert information(BlackBox(0.1), 0.1, blocks) == pytest.approx(112 * 0.01 / 8)
    assert information(release, math.inf, RevealedBlocks((65,), (1,))) == math.inf
    assert information(release, math.inf, RevealedBlocks((2,), (1,), 1e-9)) == math.inf
