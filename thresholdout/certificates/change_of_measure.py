"""Change of measure: from the failure probability for fresh records to that for records behind a release.

A mechanism has seen the records X and released Z. With fresh records X', independent of Z, some set of bad (x, z) has
probability at most ``b``. These functions return ``ln(p/b)`` in nats, for a ``b`` with which it has probability at most
``p`` for the original records (RELEASES.md, M1 to M5).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.bisection import bisect
from graphs.numerics.rounding import formula_up
from graphs.structure.revealed_blocks import RevealedBlocks
from thresholdout.certificates.problem import leakage
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.privacy.accounting.accountants.accountant import Accountant
    from thresholdout.privacy.accounting.events.event_types import Adjacency, Event

__all__ = [
    "approximate_nats",
    "information",
    "information_per_record",
    "max_information",
    "mutual_information_nats",
    "pure_nats",
    "smallest_nats",
    "whatever_the_labels",
]


def max_information(model: DependenceModel, epsilon: float, beta: float) -> float:
    """Bound the beta-approximate max-information between records and transcript.

    In bits: ``(sum alpha_i^2/8 + sqrt(sum alpha_i^2 ln(1/beta)/2)) log2 e``, alpha_i the leakage to informed analysts.
    With k that many nats, ``P((X, Y) in O) <= e^k (P x P)(O) + beta`` for every set O.
    """
    alpha = leakage(model, epsilon, "informed")
    total = float(np.mean(alpha**2)) * model.n
    return (total / 8.0 + math.sqrt(total * math.log(1.0 / beta) / 2.0)) * math.log2(math.e)


Floats = NDArray[np.float64]

# Candidates of searches: each gives a valid bound, and the smallest counts.
_LEAST_ORDERS = (1.001, 1.01, 1.1, 1.5, 2.0)  # Renyi divergences rise with the order, so each bounds that of order 1
_SHARES = (0.5, 0.2, 0.05)  # of p
_RATES = np.geomspace(1e-4, 1e4, 161)
_SMALL = (1e-1, 1e-2, 1e-4, 1e-6, 1e-9)  # of p for each record
_FORGOTTEN = (1e-3, 1e-5)  # of p, for the remaining dependence of a series at a distance
_LEAST_EPSILON = 1e-9  # a release that is private at 0 is so at this, too
_MOST_EPSILON = 300.0  # its exponential is finite, and no error budget pays for a larger one
_MOST_ORDERS = 64  # Renyi divergences of orders up to this are summed up for groups


def mutual_information_nats(x: float, p: float) -> float:
    """Return the price of mutual information in nats: t with ``kl(p, p e^-t) >= x``, by data processing [M1]."""
    if x <= 0.0:
        return 0.0
    if not math.isfinite(x):
        return math.inf

    def divergence(t: float) -> float:
        return p * t + (1.0 - p) * (math.log1p(-p) - math.log1p(-p * math.exp(-t)))

    target = x * (1.0 + 1e-12) + 1e-15
    enough = (target - (1.0 - p) * math.log1p(-p)) / p
    return formula_up(bisect(lambda t: divergence(t) >= target, 0.0, enough))


def approximate_nats(accountants: Sequence[Accountant], blocks: RevealedBlocks, p: float) -> float:
    """Return the price of (epsilon, delta)-privacy about replaced records in nats."""
    best = math.inf
    records = sum(change * count for change, count in zip(blocks.changes, blocks.counts, strict=True))
    for delta in (p / records * share for share in _SMALL):
        for accountant in accountants:
            epsilon = max(accountant.epsilon(delta), _LEAST_EPSILON)
            if math.isfinite(epsilon):
                exact = min(delta, accountant.delta(epsilon))
                best = min(best, _in_blocks(epsilon, exact, blocks, p))
    return best


def _in_blocks(epsilon: float, delta: float, blocks: RevealedBlocks, p: float) -> float:
    """Return the price of privacy about single records in nats: group privacy about blocks."""
    changes = np.array(blocks.changes, dtype=np.float64)
    epsilons = np.where(changes == 1, epsilon, changes * epsilon * (1.0 + 1e-15))
    if epsilons[-1] >= _MOST_EPSILON:
        return math.inf
    deltas = np.where(changes == 1, delta, delta * np.expm1(epsilons) / math.expm1(epsilon) * (1.0 + 1e-12))
    counts = np.array(blocks.counts, dtype=np.float64)
    return min(_approximate(epsilons, deltas + blocks.missed, counts, p, share) for share in _SHARES)


def _approximate(epsilons: Floats, deltas: Floats, counts: Floats, p: float, share: float) -> float:
    """Spend a share of p on the cut probability, and the rest on the event."""
    lost = float(np.sum(counts * deltas))
    if lost > p * share / 4.0:
        return math.inf
    drift = 4.0 * float(np.sum(counts * deltas * np.exp(-epsilons))) / (p * share)
    rest = p * share * 0.75 - lost
    largest = float(epsilons[-1])
    rates = _RATES[largest * (1.0 + _RATES) < _MOST_EPSILON]
    if not len(rates):
        return math.inf
    each = epsilons[:, None]
    moved = each * rates  # cosh(moved + epsilon/2)/cosh(epsilon/2) without cancellation
    growth = np.log1p(2.0 * np.sinh(moved / 2.0) ** 2 + np.tanh(each / 2.0) * np.sinh(moved))
    slope = np.sinh(largest * (1.0 + rates)) / math.sinh(largest)
    nats = float(np.min((counts @ growth + slope * drift - math.log(rest)) / rates))
    return formula_up(nats - math.log1p(-share))


def pure_nats(model: DependenceModel, epsilon: float, p: float) -> float:
    """Return the price of pure privacy about replaced records in nats, for any dependence [M2, M4]."""
    if epsilon == 0.0:
        return 0.0
    if epsilon >= _MOST_EPSILON:  # the square of a larger one may overflow
        return math.inf
    squares = model.revealed_blocks().squares * epsilon**2

    def nats(share: float) -> float:
        by_leakage = max_information(model, epsilon, p * share) * math.log(2.0)
        by_blocks = squares / 8.0 + math.sqrt(squares * math.log(1.0 / (p * share)) / 2.0)
        return min(by_leakage, by_blocks) - math.log1p(-share)

    return formula_up(min(map(nats, _SHARES)))


def information_per_record(event: Event, epsilon: float) -> float:
    """Bound the mutual information between a release and one record, given all others, in nats.

    The smallest of ``epsilon^2/8`` and of Renyi divergences near order 1, about a replaced record, and about one
    record more: the release without the record is a centre for the releases with any [M1].
    """
    return information(event, epsilon, RevealedBlocks((1,), (1,)))


def information(event: Event, epsilon: float, blocks: RevealedBlocks) -> float:
    """Bound the mutual information between a release and all records, in nats.

    The sum over blocks of ``(s epsilon)^2/8``, or of ``s`` times the sum of ``D_i/i`` for i from 1 to s, D_i the Renyi
    divergence of order i about one record, where s records change [M1, M5]; ``inf`` where more records change than the
    largest order. A Gaussian answer has ``D_i = i D_1``, so a group of s records releases ``s^2`` times as much as one.
    """
    from thresholdout.privacy.accounting.accountants.calibration import composed_accountants
    from thresholdout.privacy.accounting.accountants.renyi_accountant import RenyiAccountant

    best = blocks.squares * epsilon * epsilon / 8.0
    if blocks.missed or blocks.changes[-1] > _MOST_ORDERS:
        return math.inf if blocks.missed else formula_up(best)
    higher = np.arange(2, blocks.changes[-1] + 1)
    adjacencies: tuple[Adjacency, ...] = ("replace_one", "add_remove")
    for adjacency in adjacencies if len(higher) == 0 or _of_any_number(event) else adjacencies[:1]:
        for accountant in composed_accountants(event, adjacency, (RenyiAccountant,))[0]:
            assert isinstance(accountant, RenyiAccountant)
            near = float(np.min(accountant.rdp(_LEAST_ORDERS)))
            rest = accountant.rdp(higher) if len(higher) else np.zeros(0)
            sums = np.cumsum(np.concatenate([[near], rest / higher]))
            total = sum(
                count * change * float(sums[change - 1])
                for change, count in zip(blocks.changes, blocks.counts, strict=True)
            )
            best = min(best, total)
    return formula_up(best)


def _of_any_number(event: Event) -> bool:
    """Return whether a release is as private for fewer records; batches of a fixed size are a larger part of fewer."""
    from thresholdout.privacy.accounting.events.composed_events import leaves
    from thresholdout.privacy.accounting.events.event_types import BlackBox, GaussianAnswer, LaplaceAnswer
    from thresholdout.privacy.accounting.events.learning_steps import PoissonGaussianStep

    served = (BlackBox, GaussianAnswer, LaplaceAnswer, PoissonGaussianStep)
    return all(isinstance(leaf, served) for leaf, _ in leaves(event))


def whatever_the_labels(model: DependenceModel) -> DependenceModel:
    """Return a model that holds given any labels of all records: only independent groups survive that.

    Once all labels are known, records may be independent no longer: where each label says whether the coins of two
    records in a row are the same, all coins of a window follow from one.
    """
    from graphs import Groups, Independent
    from graphs.models.law_free import GroupSizes

    if isinstance(model, (Independent, Groups, GroupSizes)):
        return model
    sizes = model.independent_groups()
    return GroupSizes({model.n: 1} if sizes is None else Counter(sizes.tolist()))


def smallest_nats(model: DependenceModel, event: Event, epsilon: float, p: float) -> float:
    """Return the smallest known price of a release; ``inf`` when there is none."""
    from thresholdout.privacy.accounting.accountants.calibration import all_accountants, composed_accountants
    from thresholdout.privacy.accounting.accountants.renyi_conversion import EdgeOrderWarning, NoFiniteOrderWarning

    best = pure_nats(model, epsilon, p)
    if best == 0.0:
        return best
    exact = model.revealed_blocks()
    with suppress_warnings(EdgeOrderWarning, NoFiniteOrderWarning):
        best = min(best, mutual_information_nats(information(event, epsilon, exact), p))
        accountants: list[Accountant] = []
        if math.isinf(epsilon):
            accountants, _ = composed_accountants(event, "replace_one", all_accountants())
            best = min(best, approximate_nats(accountants, exact, p))
        for share in _FORGOTTEN:
            blocks = model.revealed_blocks(p * share)
            if blocks.missed and math.isfinite(epsilon):
                best = min(best, _in_blocks(max(epsilon, _LEAST_EPSILON), 0.0, blocks, p))
            elif blocks.missed:
                best = min(best, approximate_nats(accountants, blocks, p))
    return best
