"""Attacks: scores that are high for outputs on the second data set, fitted on outputs of both."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.binomial_probabilities import approximate_upper
from thresholdout.privacy.auditing.audit_settings import Goal

__all__ = [
    "ATTACKS",
    "Attack",
    "Score",
    "best_cut",
    "check_attack",
    "gaussian",
    "histogram",
    "logistic",
    "plain",
    "spread_cuts",
]

Floats = NDArray[np.float64]
Score = Callable[[Floats], Floats]
Attack = Callable[[Floats, Floats], Score]
_CUTS = 2000  # thresholds that are compared, at most


def plain(first: Floats, second: Floats) -> Score:
    """Return the only feature itself as score; refuse several."""
    if first.shape[1] != 1:
        expected = f"'logistic', 'gaussian' or a function for {first.shape[1]} features"
        raise InputError("attack", "'score', which takes one", expected)
    return _only


def _only(features: Floats) -> Floats:
    found: Floats = features[:, 0]
    return found


def logistic(first: Floats, second: Floats) -> Score:
    """Return the log-odds of a logistic regression on standardised features, the linear attack of [HF]."""
    from sklearn.linear_model import LogisticRegression

    both = np.concatenate([first, second])
    centre, spread = both.mean(axis=0), both.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    labels = np.repeat([0, 1], [len(first), len(second)])
    model = LogisticRegression(max_iter=1000).fit((both - centre) / spread, labels)

    def score(features: Floats) -> Floats:
        found: Floats = model.decision_function((features - centre) / spread)
        return found

    return score


def gaussian(first: Floats, second: Floats) -> Score:
    """Return the log-likelihood ratio of two normal laws with separate means and covariances.

    It also detects changes of the variance, which no linear attack does.
    """
    logs = [_log_normal(first), _log_normal(second)]

    def score(features: Floats) -> Floats:
        return logs[1](features) - logs[0](features)

    return score


def _log_normal(sample: Floats) -> Score:
    centre = sample.mean(axis=0)
    deviations = sample - centre
    covariance = deviations.T @ deviations / len(sample)
    size = float(np.trace(covariance)) / len(covariance)
    # A small ridge keeps constant or collinear features invertible.
    covariance = covariance + np.eye(len(covariance)) * (1e-6 * size if size > 0 else 1.0)
    factor = np.linalg.cholesky(covariance)
    constant = float(np.log(np.diag(factor)).sum())

    def log(features: Floats) -> Floats:
        white = np.linalg.solve(factor, (features - centre).T)
        found: Floats = -0.5 * (white**2).sum(axis=0) - constant
        return found

    return log


def histogram(first: Floats, second: Floats) -> Score:
    """Return the log ratio of smoothed frequencies in bins with equally many outputs; for one feature.

    It finds events of any shape, such as the two tails together.
    """
    if first.shape[1] != 1:
        expected = f"'logistic', 'gaussian' or a function for {first.shape[1]} features"
        raise InputError("attack", "'histogram', which takes one", expected)
    both = np.concatenate([first, second])[:, 0]
    bins = max(2, min(200, round(len(both) ** (1 / 3)) * 2))
    edges = np.unique(np.quantile(both, np.linspace(0.0, 1.0, bins + 1)[1:-1], method="inverted_cdf"))

    def binned(features: Floats) -> NDArray[np.intp]:
        return np.searchsorted(edges, features[:, 0], side="left")

    counts = [np.bincount(binned(part), minlength=edges.size + 1) + 0.5 for part in (first, second)]
    ratios: Floats = np.log(counts[1] / len(second)) - np.log(counts[0] / len(first))

    def score(features: Floats) -> Floats:
        found: Floats = ratios[binned(features)]
        return found

    return score


ATTACKS: dict[str, Attack] = {"score": plain, "logistic": logistic, "gaussian": gaussian, "histogram": histogram}


def check_attack(attack: object) -> Attack:
    """Check an attack, and return it from its name, or the callable itself."""
    expected = f"one of {', '.join(map(repr, ATTACKS))}, or a function of the features of both that returns a score"
    if isinstance(attack, str):
        if attack not in ATTACKS:
            raise InputError("attack", repr(attack), expected)
        return ATTACKS[attack]
    if not callable(attack):
        raise InputTypeError("attack", f"a {type(attack).__name__}", expected)
    return attack


def spread_cuts(cuts: Floats, most: int) -> Floats:
    """Return about `most` of sorted thresholds, closer together at both ends, where rare events are."""
    if cuts.size <= most:
        return cuts
    even = np.linspace(0, cuts.size - 1, most // 2)
    near_ends = np.geomspace(1, cuts.size // 2, most // 4)
    ranks = np.concatenate([even, near_ends, cuts.size - near_ends])
    return cuts[np.unique(ranks.astype(np.int64))]


def best_cut(first: Floats, second: Floats, goal: Goal, alpha: float) -> tuple[float, float]:
    """Return the event on scores that bounds a goal best, for use on other outputs: a sign and a threshold.

    Notes
    -----
    The attack says "second" if ``sign * score >= cut``; the sign is 1 or -1.
    """
    first, second = np.sort(first), np.sort(second)
    cuts = np.unique(np.concatenate([first, second]))
    cuts = spread_cuts(cuts, _CUTS)
    fp = first.size - np.searchsorted(first, cuts, side="left")
    fn = np.searchsorted(second, cuts, side="left")
    above, below = (
        goal.order(approximate_upper(a, first.size, alpha / 2.0), approximate_upper(b, second.size, alpha / 2.0))
        for a, b in ((fp, fn), (first.size - fp, second.size - fn))
    )
    orders = np.maximum(above, below)
    if orders.max() > 0.0:
        best = np.flatnonzero(orders == orders.max())
        k = int(best[best.size // 2])
    else:
        above = -(fp / first.size + fn / second.size)
        below = -2.0 - above
        k = int(np.argmax(np.maximum(above, below)))
    if above[k] >= below[k]:
        return 1.0, float(cuts[k])
    return -1.0, math.nextafter(-float(cuts[k]), math.inf)
