"""Posterior certificates beside other private looks, with a delta too: accounting/LOOKS.md, L1 and L6."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import formula_up
from thresholdout.certificates.independent_blocks import blocks_of
from thresholdout.certificates.problem import leakage
from thresholdout.certificates.routes.log_odds import LogOdds
from thresholdout.certificates.routes.posterior import PosteriorWidths, mean_total_variation
from thresholdout.silence import silence

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.privacy.accounting.accountants.accountant import Accountant
    from thresholdout.privacy.accounting.events.event_types import Event

__all__ = ["beside_looks_with_a_delta", "beside_pure_looks", "groups_leakage"]

Floats = NDArray[np.float64]

_WIDER: Final = 2.0**-12
"""By how much of the range every half-width is larger once a look had a delta: rho of L6."""

_FRACTIONS: Final = (0.999, 0.5, 0.2, 0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
_UP: Final = 1.0 + 1e-12
_MOST_EPSILON: Final = 300.0


def beside_pure_looks(widths: PosteriorWidths, model: DependenceModel, epsilon: float) -> PosteriorWidths:
    """Let the analyst's beliefs move by what the interaction and the looks leak together; the noise stays.

    Parameters
    ----------
    widths : PosteriorWidths
        Without looks.
    model : graphs.DependenceModel
        How the records depend on each other.
    epsilon : float
        Of all looks together.
    """
    total = math.nextafter(widths.epsilon + epsilon, math.inf)
    together = mean_total_variation(model, total)
    return _moved(widths, model, LogOdds(leakage(model, total, "uninformed")), together, 0.0)


def beside_looks_with_a_delta(
    widths: PosteriorWidths, model: DependenceModel, looks: Sequence[Event], spare: float
) -> PosteriorWidths | str:
    """Do the same where looks have a delta, for independent records and independent groups.

    Parameters
    ----------
    widths : PosteriorWidths
        Without looks.
    model : graphs.DependenceModel
        How the records depend on each other.
    looks : sequence of Event
        In the order in which they were recorded; each may have been chosen in view of what was released before it.
    spare : float
        Probability that is kept for them.

    Returns
    -------
    PosteriorWidths or str
        Why there are none, to be read after "the looks".

    Examples
    --------
    >>> from graphs import Independent
    >>> from thresholdout.privacy.accounting import GaussianAnswer
    >>> alone = PosteriorWidths(0.03, 0.08, LogOdds(np.array([0.2])), 0.2)
    >>> model, looks = Independent(10_000), [GaussianAnswer(400.0)]
    >>> round(beside_looks_with_a_delta(alone, model, looks, 1e-8).width, 4)
    0.0839
    >>> beside_looks_with_a_delta(alone, model, [GaussianAnswer(0.01)], 1e-8)
    'leak too much'
    """
    blocks = blocks_of(model)
    sizes = None if blocks is None else np.ones(1) if blocks.largest == 1 else model.independent_groups()
    if sizes is None:
        return "have a delta, which is covered for independent records and independent groups only"
    leaked = groups_leakage(sizes.astype(np.float64), looks, spare * _WIDER)
    if math.isinf(leaked):
        return "leak too much"
    alphas = sizes * (widths.epsilon + leaked) * _UP
    together = float(np.sum(sizes * np.tanh(alphas / 4.0)) / np.sum(sizes)) * _UP
    return _moved(widths, model, LogOdds(np.repeat(alphas, sizes.astype(np.int64))), together, _WIDER)


def groups_leakage(sizes: Floats, looks: Sequence[Event], spare: float) -> float:
    """Return how much looks change the odds of one record's values, but for a small mean probability; in nats.

    Parameters
    ----------
    sizes : ndarray
        Of the independent groups, 1 for records.
    looks : sequence of Event
        In the order in which they were recorded. The k-th one has the share ``1/(k (k+1))`` of the probability.
    spare : float
        The mean over the records of the probability that odds change by more, all looks together.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import BlackBox
    >>> groups_leakage(np.ones(1), [BlackBox(0.1), BlackBox(0.2, 1e-14)], 1e-12) < 0.31
    True
    """
    from thresholdout.privacy.accounting.accountants.calibration import all_accountants, composed_accountants
    from thresholdout.privacy.accounting.accountants.pure_accountant import PureAccountant, total_pure_epsilon
    from thresholdout.privacy.accounting.accountants.renyi_conversion import EdgeOrderWarning, NoFiniteOrderWarning

    weights, total = sizes / np.sum(sizes), 0.0
    for number, look in enumerate(looks, 1):
        pure, allowed = PureAccountant("replace_one"), spare / (number * (number + 1.0))
        best = total_pure_epsilon(pure.compose(look)) if pure.supports(look) else math.inf
        if math.isinf(best):
            with silence(EdgeOrderWarning, NoFiniteOrderWarning):
                accountants, _ = composed_accountants(look, "replace_one", all_accountants())
                best = min((_epsilon(one, sizes, weights, allowed) for one in accountants), default=best)
        total = math.nextafter(total + best, math.inf)
    return total


def _epsilon(accountant: Accountant, sizes: Floats, weights: Floats, allowed: float) -> float:
    """Return an epsilon about single records of which the groups' deltas have at most the mean that is allowed."""
    for delta in (allowed * fraction for fraction in _FRACTIONS):
        epsilon = accountant.epsilon(delta)
        if math.isfinite(epsilon) and _in_groups(sizes, weights, epsilon, delta) <= allowed:
            return epsilon
    return math.inf


def _in_groups(sizes: Floats, weights: Floats, epsilon: float, delta: float) -> float:
    """Return the mean of ``delta (e^{s epsilon} - 1)/(e^epsilon - 1)``: group privacy, rounded up."""
    largest = float(np.max(sizes))
    if not epsilon * largest < _MOST_EPSILON:
        return math.inf
    each = sizes if epsilon < 1e-15 else np.expm1(sizes * epsilon) / math.expm1(epsilon)
    return float(weights @ (delta * each)) * _UP


def _moved(
    widths: PosteriorWidths, model: DependenceModel, beliefs: LogOdds, together: float, wider: float
) -> PosteriorWidths:
    """Return the widths with other beliefs, which are off by `together` on average over the records, and by `wider`."""
    alone = mean_total_variation(model, widths.epsilon)
    width = formula_up(widths.width + max(0.0, together - alone * (1.0 - 4e-12)) + wider)
    error = formula_up(widths.error + wider) if wider else widths.error
    return PosteriorWidths(error, width, beliefs, widths.epsilon)
