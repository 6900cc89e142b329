"""Posterior certificates beside releases with a delta (accounting/RELEASES.md, L6): all transcripts of small ones."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from graphs import Groups, Independent, MovingWindow
from tests.cases import for_each
from thresholdout.certificates.posterior import LogOdds, PosteriorWidths, beside_releases_with_a_delta, groups_leakage
from thresholdout.privacy.accounting import BlackBox, GaussianAnswer

Floats = NDArray[np.float64]
DELTA = 0.01
GUARD = 0.3


def looks_after(said: tuple[int, ...]) -> float:
    """Return the epsilon of a look, which is chosen in view of what the guard said."""
    return 0.9 if said[0] else 0.1


def told(x: int, z: int, epsilon: float) -> float:
    """Return the probability of what a look says about a bit: 2 + x with probability DELTA, else a noisy bit."""
    honest = math.exp(epsilon) / (1 + math.exp(epsilon))
    return DELTA * (z == 2 + x) + (1 - DELTA) * (honest if z == x else 1 - honest) * (z < 2)


@dataclass
class Session:
    """Three bits, a guard that answers with noisy bits, then a look; all laws are tables."""

    prior: dict[tuple[int, ...], float]
    group: tuple[int, ...]  # the records that are replaced together: the first one, or the first two

    def density(self, x: tuple[int, ...], y: tuple[int, ...], z: tuple[int, ...]) -> float:
        noisy = math.exp(GUARD) / (1 + math.exp(GUARD))
        guard = math.prod(noisy if a == b else 1 - noisy for a, b in zip(x, y, strict=True))
        return guard * math.prod(told(a, b, looks_after(y)) for a, b in zip(x, z, strict=True))

    def moved(self, y: tuple[int, ...], z: tuple[int, ...]) -> tuple[float, dict[tuple[int, ...], float], float]:
        """Return the transcript's probability, the group's posterior, and E[N | transcript] of the proof."""
        reach = math.exp(len(self.group) * looks_after(y))
        laws = [self.marginal(value) for value in self.values]
        density = {x: p * self.density(x, y, z) for x, p in self.prior.items()}
        whole = sum(density.values())
        posterior = {
            value: sum(p for x, p in density.items() if self.part(x) == value) / whole for value in self.values
        }
        lost = 0.0
        for x, p in density.items():
            for value, weight in zip(self.values, laws, strict=True):
                other = value + x[len(self.group) :]
                kept = math.prod(told(a, b, looks_after(y)) for a, b in zip(other, z, strict=True))
                mine = math.prod(told(a, b, looks_after(y)) for a, b in zip(x, z, strict=True))
                lost += p * weight * (1 - min(1.0, reach * kept / mine)) if mine else 0.0
        return whole, posterior, lost / whole

    @property
    def values(self) -> list[tuple[int, ...]]:
        return list(itertools.product((0, 1), repeat=len(self.group)))

    def part(self, x: tuple[int, ...]) -> tuple[int, ...]:
        return x[: len(self.group)]

    def marginal(self, value: tuple[int, ...]) -> float:
        return sum(p for x, p in self.prior.items() if self.part(x) == value)


def single() -> Session:
    chances = (0.3, 0.5, 0.9)
    states = itertools.product((0, 1), repeat=3)
    return Session({x: math.prod(c if a else 1 - c for a, c in zip(x, chances, strict=True)) for x in states}, (0,))


def pair() -> Session:
    both = {(0, 0): 0.4, (0, 1): 0.1, (1, 0): 0.05, (1, 1): 0.45}
    return Session({(*b, c): p / 2 for b, p in both.items() for c in (0, 1)}, (0, 1))


@for_each("session", [single(), pair()], ids=["record", "group"])
def test_beliefs_move_by_no_more_at_any_transcript(session: Session) -> None:
    """``p' <= G(p) + E[N | F]`` for every function of the record; N is rare, and nothing less than it will do."""
    rng = np.random.default_rng(5)
    size = len(session.group)
    functions = [dict(zip(session.values, rng.random(2**size), strict=True)) for _ in range(8)]
    functions += [{value: float(value[0] == bit) for value in session.values} for bit in (0, 1)]
    mean = broken = far = 0.0
    allowed = 0.05
    for y in itertools.product((0, 1), repeat=3):
        alpha = size * (GUARD + looks_after(y))
        for z in itertools.product(range(4), repeat=3):
            whole, posterior, lost = session.moved(y, z)
            mean += whole * lost
            above = -math.inf
            for function in functions:
                p = sum(session.marginal(value) * phi for value, phi in function.items())
                moved = sum(posterior[value] * phi for value, phi in function.items())
                reached = p / (p + (1 - p) * math.exp(-alpha))
                assert moved <= reached + lost + 1e-12
                above = max(above, moved - reached)
            broken += whole * (above > 1e-12)
            far += whole * (above > allowed)
    most = DELTA * sum(math.exp(k * 0.9) for k in range(size))
    assert mean <= most
    assert far <= most / allowed
    assert broken > DELTA / 2  # broken twin: beliefs that move by alpha at most, as without a delta


def test_epsilons_add_up_and_deltas_are_shares_of_what_is_spared() -> None:
    one = np.ones(1)
    stated = [BlackBox(0.1, 1e-14), BlackBox(0.25), BlackBox(0.2, 1e-14)]
    assert groups_leakage(one, stated, 1e-12) == pytest.approx(0.55, rel=1e-3)
    assert groups_leakage(one, stated, 1.9e-14) > 50  # less than the first delta is spared
    assert groups_leakage(one, [BlackBox(0.1, 1e-14)] * 3, 11.9e-14) > 50  # 1/12 of it for the third
    assert groups_leakage(one, [BlackBox(0.1, 1e-14)] * 3, 12.2e-14) < 0.4


def test_a_gaussian_look_costs_its_profile() -> None:
    """Against ``delta = Phi(1/2s - es) - e^e Phi(-1/2s - es)``, the largest of a Gaussian answer."""
    from scipy.stats import norm

    std, spare = 20.0, 2e-9
    epsilon = groups_leakage(np.ones(1), [GaussianAnswer(std)], spare)
    low, high = (norm.cdf(s / (2 * std) - epsilon * std) for s in (1, -1))
    assert low - math.exp(epsilon) * high == pytest.approx(spare / 2, rel=0.05)
    assert low - math.exp(epsilon) * high <= spare / 2


def test_group_privacy_of_the_delta() -> None:
    """A group of s has the delta ``d (1 + e^a + ... + e^((s-1) a))`` at ``s a``, on average over records."""
    release, sizes = BlackBox(0.5, 1e-12), np.array([1.0, 3.0])
    needed = 1e-12 * (1 + 3 * (1 + math.exp(0.5) + math.exp(1.0))) / 4
    assert groups_leakage(sizes, [release], 2 * 5 * needed) == pytest.approx(0.5, rel=0.01)
    assert groups_leakage(sizes, [release], 2 * needed * 0.99) == math.inf


def test_widths_are_those_of_the_formula() -> None:
    alone = PosteriorWidths(0.03, 0.03 + math.tanh(0.05), LogOdds(np.array([0.2])), 0.2)
    after = beside_releases_with_a_delta(alone, Independent(1000), [BlackBox(0.3, 1e-14)], 1e-8)
    assert isinstance(after, PosteriorWidths)
    assert after.width == pytest.approx(0.03 + math.tanh(0.5 / 4) + 2**-12, rel=1e-4)
    assert after.error == pytest.approx(0.03 + 2**-12, rel=1e-9)
    c = 0.9 - 0.03 - 2**-12
    assert after.interval(0.9)[0] == pytest.approx(c / (c + (1 - c) * math.exp(0.5)), rel=1e-3)
    pairs = beside_releases_with_a_delta(alone, Groups([0, 0, 1, 1]), [BlackBox(0.3, 1e-14)], 1e-8)
    assert isinstance(pairs, PosteriorWidths)
    assert pairs.beliefs == LogOdds(
        np.repeat(2 * (0.2 + groups_leakage(np.ones(1), [BlackBox(0.3, 1e-14)], 1)), 2)
    ) or (pairs.width > after.width)


def test_what_is_not_covered() -> None:
    alone = PosteriorWidths(0.03, 0.08, LogOdds(np.array([0.2])), 0.2)
    assert "independent groups" in str(
        beside_releases_with_a_delta(alone, MovingWindow(100, 2), [GaussianAnswer(9)], 1e-8)
    )
    assert beside_releases_with_a_delta(alone, Independent(9), [BlackBox(0.1, 0.5)], 1e-8) == "leak too much"
    assert beside_releases_with_a_delta(alone, Groups([0] * 2000), [GaussianAnswer(9)], 1e-8) == "leak too much"
