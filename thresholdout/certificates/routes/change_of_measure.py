"""How much less likely a failure must be for fresh records, so that it is unlikely for records that were looked at.

A mechanism has seen the records X and released Z. With fresh records X', independent of Z, some set of bad (x, z) has
probability at most ``b``. These functions return ``ln(p/b)`` in nats, for a ``b`` with which it has probability at most
``p`` for the records that were seen (LOOKS.md, M1 to M3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphs.numerics.bisection import bisect
from graphs.numerics.rounding import formula_up
from thresholdout.certificates.routes.max_information import max_information
from thresholdout.silence import silence

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.privacy.accounting.accountants.accountant import Accountant
    from thresholdout.privacy.accounting.events.event_types import Event

__all__ = ["approximate_nats", "information_per_record", "mutual_information_nats", "pure_nats", "smallest_nats"]

_LEAST_ORDERS = (1.001, 1.01, 1.1, 1.5, 2.0)
_SHARES = (0.5, 0.2, 0.05)
_RATES = np.geomspace(1e-4, 1e4, 161)
_SMALL = (1e-1, 1e-2, 1e-4, 1e-6, 1e-9)
_LEAST_EPSILON = 1e-9  # a release that is private at 0 is so at this, too


def mutual_information_nats(x: float, p: float) -> float:
    """Return the nats that mutual information costs.

    Parameters
    ----------
    x : float
        Bound on the mutual information between records and release, nats, 0 or more.
    p : float
        In (0, 1).

    Returns
    -------
    float
        t with ``kl(p, p e^-t) >= x``, kl the divergence of coins: data processing [M1].

    Examples
    --------
    >>> mutual_information_nats(0.0, 0.05), round(mutual_information_nats(1.0, 0.05), 2)
    (0.0, 20.97)
    """
    if x <= 0.0:
        return 0.0
    if not math.isfinite(x):
        return math.inf

    def divergence(t: float) -> float:
        return p * t + (1.0 - p) * (math.log1p(-p) - math.log1p(-p * math.exp(-t)))

    target = x * (1.0 + 1e-12) + 1e-15
    enough = (target - (1.0 - p) * math.log1p(-p)) / p
    return formula_up(bisect(lambda t: divergence(t) >= target, 0.0, enough))


def approximate_nats(accountants: Sequence[Accountant], n: int, p: float) -> float:
    """Return the nats that (epsilon, delta)-privacy about replaced records costs, for independent records.

    Parameters
    ----------
    accountants : sequence of Accountant
        About replaced records, with the release in them.
    n : int
        Records.
    p : float
        In (0, 1).

    Returns
    -------
    float
        ``inf`` when no delta is small enough [M3].

    Examples
    --------
    >>> from thresholdout.privacy.accounting import BlackBox, OptimalAccountant
    >>> look = OptimalAccountant("replace_one").compose(BlackBox(0.01, 1e-12))
    >>> round(approximate_nats([look], 10_000, 0.05), 2)
    3.85
    """
    best = math.inf
    for delta in (p / n * share for share in _SMALL):
        for accountant in accountants:
            epsilon = max(accountant.epsilon(delta), _LEAST_EPSILON)
            if math.isfinite(epsilon):
                exact = min(delta, accountant.delta(epsilon))
                best = min(best, min(_approximate(epsilon, exact, n, p, share) for share in _SHARES))
    return best


def _approximate(epsilon: float, delta: float, n: int, p: float, share: float) -> float:
    """Spend a share of p on what is cut off, and the rest on the event."""
    lost = n * delta
    if lost > p * share / 4.0:
        return math.inf
    drift = 4.0 * lost * math.exp(-epsilon) / (p * share)
    rest = p * share * 0.75 - lost
    rates = _RATES[epsilon * (1.0 + _RATES) < 300.0]
    if not len(rates):
        return math.inf
    moved = epsilon * rates  # cosh(moved + epsilon/2)/cosh(epsilon/2) without cancellation
    growth = np.log1p(2.0 * np.sinh(moved / 2.0) ** 2 + math.tanh(epsilon / 2.0) * np.sinh(moved))
    slope = np.sinh(epsilon * (1.0 + rates)) / math.sinh(epsilon)
    nats = float(np.min((n * growth + slope * drift - math.log(rest)) / rates))
    return formula_up(nats - math.log1p(-share))


def pure_nats(model: DependenceModel, epsilon: float, p: float) -> float:
    """Return the nats that pure privacy about replaced records costs, for any dependence [M2].

    Examples
    --------
    >>> from graphs import Independent
    >>> round(pure_nats(Independent(10_000), 0.01, 0.05), 2)
    1.87
    """
    if epsilon == 0.0:
        return 0.0
    if not math.isfinite(epsilon):
        return math.inf
    return formula_up(
        min(max_information(model, epsilon, p * share) * math.log(2.0) - math.log1p(-share) for share in _SHARES)
    )


def information_per_record(event: Event, epsilon: float) -> float:
    """Bound the mutual information between a release and one record, given all others, in nats.

    Parameters
    ----------
    event : Event
        What was released.
    epsilon : float
        Its pure privacy about replaced records, ``inf`` without one.

    Returns
    -------
    float
        The smallest of ``epsilon^2/8`` and of Renyi divergences near order 1, about a replaced record, and about one
        record more: the release without the record is a centre for the releases with any [M1].

    Examples
    --------
    >>> import math
    >>> from thresholdout.privacy.accounting import GaussianAnswer
    >>> round(information_per_record(GaussianAnswer(10.0), math.inf), 6)
    0.005005
    """
    from thresholdout.privacy.accounting.accountants.calibration import composed_accountants
    from thresholdout.privacy.accounting.accountants.renyi_accountant import RenyiAccountant

    best = epsilon * epsilon / 8.0
    for adjacency in ("replace_one", "add_remove"):
        for accountant in composed_accountants(event, adjacency, (RenyiAccountant,))[0]:
            assert isinstance(accountant, RenyiAccountant)
            best = min(best, float(np.min(accountant.rdp(_LEAST_ORDERS))))
    return formula_up(best)


def smallest_nats(model: DependenceModel, event: Event, epsilon: float, p: float) -> float:
    """Return the smallest of all costs that are known for a release; ``inf`` when none is.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other.
    event : Event
        What was released.
    epsilon : float
        Its pure privacy about replaced records, ``inf`` without one.
    p : float
        In (0, 1).

    Examples
    --------
    >>> import math
    >>> from graphs import Groups, Independent
    >>> from thresholdout.privacy.accounting import GaussianAnswer
    >>> look = GaussianAnswer(1000.0)
    >>> round(smallest_nats(Independent(10_000), look, math.inf, 0.05), 3)
    0.474
    >>> smallest_nats(Groups([0, 0, 1]), look, math.inf, 0.05)
    inf
    """
    from graphs import Independent
    from thresholdout.privacy.accounting.accountants.calibration import all_accountants, composed_accountants
    from thresholdout.privacy.accounting.accountants.renyi_conversion import EdgeOrderWarning, NoFiniteOrderWarning

    best = pure_nats(model, epsilon, p)
    if not isinstance(model, Independent):
        return best
    with silence(EdgeOrderWarning, NoFiniteOrderWarning):
        best = min(best, mutual_information_nats(model.n * information_per_record(event, epsilon), p))
        if math.isinf(epsilon):
            accountants, _ = composed_accountants(event, "replace_one", all_accountants())
            best = min(best, approximate_nats(accountants, model.n, p))
    return best
