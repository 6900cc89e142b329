"""Limits of means: binomial tails, relative entropy, bets, noise, and limits from counts of errors."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tests.recorded.cases.registry import Cases
from thresholdout import SeededNoise
from thresholdout.limits.bets import best_bet, bet_lower, log_wealth, placed_bet
from thresholdout.limits.binomial import (
    binomial_lower,
    binomial_upper,
    log_binomial_tail,
    log_laplace_moment,
    log_one_law_tail,
    noisy_binomial_lower,
    noisy_entropy_lower,
    noisy_hoeffding_lower,
)
from thresholdout.limits.entropy import coin_divergence, entropy_lower, entropy_upper
from thresholdout.limits.random_estimands import line
from thresholdout.privacy.accounting.binomial_probabilities import clopper_pearson_upper, window
from thresholdout.privacy.auditing import (
    audit_delta,
    audit_epsilon,
    audit_outputs,
    audit_sampler,
)
from thresholdout.privacy.auditing.neighbours import deepfool

CASES = Cases()

LEVELS = (math.log(0.5), math.log(0.025), -30.0)
COUNTS = ((0, 10), (7, 10), (10, 10), (950, 1000), (19_999, 20_000))


@CASES.case("limits: binomial")
def binomial() -> Any:
    return [[k, n, binomial_lower(k, n, level), binomial_upper(k, n, level)] for k, n in COUNTS for level in LEVELS]


@CASES.case("limits: binomial tails")
def tails() -> Any:
    return [log_binomial_tail(k, n, p) for k, n in COUNTS for p in (0.01, 0.5, 0.94)]


@CASES.case("limits: relative entropy")
def entropy() -> Any:
    means = (0.0, 0.3, 0.95, 1.0)
    return [
        [entropy_lower(mean, 500.5, level), entropy_upper(mean, 500.5, level)] for mean in means for level in LEVELS
    ] + [coin_divergence(x, 0.3) for x in means]


@CASES.case("limits: bets")
def bets() -> Any:
    values = np.repeat([0.5, 1.0, 0.0], [950, 35, 15])
    return [
        log_wealth(values, 0.7, 0.45),
        [bet_lower(values, bet, level) for bet in (0.1, 0.8) for level in LEVELS],
        best_bet(0.5, 0.0125, 1000, -4.38),
        placed_bet(0.51, 0.0075, 0.5, 1000, 4.38),
    ]


@CASES.case("limits: lines")
def lines() -> Any:
    found = [line(mean, 1000, 800, level) for mean in (0.5, 0.9) for level in LEVELS]
    return [[each.slope, each.depth, each.lower(0.8)] for each in found]


@CASES.case("limits: with noise")
def noisy() -> Any:
    level = math.log(0.025)
    return [
        [log_laplace_moment(theta, 1.5) for theta in (0.1, 0.5)],
        noisy_binomial_lower(950, 1000, level, (0.35, 0.7)),
        noisy_entropy_lower(0.95, 1000, level, (22.0, 44.0), 64_000),
        noisy_hoeffding_lower(0.95, 1000, level, (22.0, 44.0), 64_000),
    ]


@CASES.case("limits: one law")
def one_law() -> Any:
    return [log_one_law_tail(k, n, p) for k, n in COUNTS for p in (0.3, 0.9)]


@CASES.case("limits: windows of binomial masses")
def windows() -> Any:
    found = window(60, 0.3, 1e-6)
    return [found.first, found.masses, found.complete]


@CASES.case("limits: audits from counts")
def audits() -> Any:
    return [
        clopper_pearson_upper(5, 250, 0.05),
        [audit_epsilon(5, 250, 12, 250, 1e-5, method=method) for method in ("clopper-pearson", "joint")],
        audit_delta(5, 250, 12, 250, 1.0),
        audit_epsilon(0, 250, 0, 250, 1e-5),
    ]


@CASES.case("limits: audits of outputs")
def audited_outputs() -> Any:
    rng = np.random.default_rng(0)
    first, second = rng.random(400), rng.random(400) + 0.5
    by_outputs = audit_outputs(first, second, delta=0.01, attack="score")
    by_sampler = audit_sampler(
        lambda n, rng: rng.random(n),
        lambda n, rng: rng.random(n) + 0.25,
        draws=2000,
        random_state=0,
        delta=0.01,
        attack="score",
    )
    return [by_outputs.epsilon, by_sampler.epsilon, deepfool([[1.0, 0.5], [0.25, -1.0]], [0.5, 0.0], [0.75, 0.25])]


@CASES.case("limits: seeded noise")
def seeded_noise() -> Any:
    noise = SeededNoise(5)
    laplace = [noise.laplace(Fraction(scale)) for scale in (1, 3, 1000) for _ in range(5)]
    return [laplace, noise.uniform(53, 4)]
