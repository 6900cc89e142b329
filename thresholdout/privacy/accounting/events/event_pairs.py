"""Dominating pairs of single events, for privacy-loss distributions."""

from __future__ import annotations

from thresholdout.privacy.accounting.events.event_types import (
    Adjacency,
    BlackBox,
    Event,
    GaussianAnswer,
    LaplaceAnswer,
    ThresholdoutInteraction,
)
from thresholdout.privacy.accounting.events.learning_steps import (
    PoissonGaussianStep,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
)
from thresholdout.privacy.accounting.events.stated_parameters import adjacency_refusal, parameters_of, shift_of
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import rate
from thresholdout.privacy.accounting.pld.atomic_pairs import Laplace, randomised_response
from thresholdout.privacy.accounting.pld.gaussian_pairs import gaussian
from thresholdout.privacy.accounting.pld.loss import DominatingPair
from thresholdout.privacy.accounting.pld.minibatch_steps import fswor_pairs, fswr_pairs, poisson_pairs

__all__ = ["attained_pairs", "pair_refusal", "pairs_of"]

Both = tuple[DominatingPair, DominatingPair]
_LEAST = 1e-9  # nats; smaller epsilons are taken for it


def pair_refusal(event: Event, adjacency: Adjacency) -> str:
    """Return why there is no dominating pair for an event; empty when there is one.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import BlackBox
    >>> pair_refusal(BlackBox(800.0), "replace_one")
    'an epsilon above 700 nats, which protects nothing'
    """
    if isinstance(event, (PoissonGaussianStep, WithoutReplacementGaussianStep, WithReplacementGaussianStep)):
        return ""
    refusal = adjacency_refusal(event, adjacency)
    if refusal or isinstance(event, GaussianAnswer):
        return refusal
    found = parameters_of(event, adjacency)
    if found is None:
        return "a delta of 1 or more about replaced records"
    return "an epsilon above 700 nats, which protects nothing" if found[0] > 700 else ""


def pairs_of(event: Event, adjacency: Adjacency) -> Both | None:
    """Return the pairs that dominate an event, from a data set to its neighbour, and back; None when nothing leaks.

    Parameters
    ----------
    event : Event
        Primitive, and not refused by `pair_refusal`.
    adjacency : {"replace_one", "add_remove"}
        Under "add_remove" the first is about a record that is there in the first data set only.

    Returns
    -------
    tuple of two pairs
        The same one twice where neighbours can be exchanged.

    Examples
    --------
    >>> pairs_of(GaussianAnswer(2.0), "replace_one")[0].weights
    (1.0,)
    >>> pairs_of(BlackBox(0.0), "replace_one") is None
    True
    """
    if isinstance(event, PoissonGaussianStep):
        return _both(poisson_pairs(event.noise_multiplier, event.rate, adjacency))
    if isinstance(event, WithoutReplacementGaussianStep):
        return _both(fswor_pairs(event.noise_multiplier, rate(None, event.batch_size, event.records), adjacency))
    if isinstance(event, WithReplacementGaussianStep):
        return _both(fswr_pairs(event.noise_multiplier, event.batch_size, event.records, adjacency))
    pair: DominatingPair
    if isinstance(event, GaussianAnswer):
        pair = gaussian(shift_of(event, adjacency))
    elif isinstance(event, LaplaceAnswer):
        pair = Laplace(shift_of(event, adjacency))
    else:
        found = parameters_of(event, adjacency)
        assert found is not None
        if found == (0.0, 0.0):
            return None
        pair = randomised_response(max(found[0], _LEAST), found[1])
    return pair, pair


def attained_pairs(event: Event, adjacency: Adjacency) -> Both | None:
    """Return pairs that some mechanism which the event describes has, or None; never worse than `pairs_of`.

    Notes
    -----
    Fixed size, with a replaced record: all other gradients, and that of the new record, are opposite to that of the old
    one. A mechanism of which epsilon is known for one record more or less may treat the replacing record as if it were
    not there. All other pairs are attained themselves.

    Examples
    --------
    >>> attained_pairs(PoissonGaussianStep(2.0, 0.1), "replace_one")[0]
    OppositeShifts(shift=0.5000000000000001, rate=0.1)
    >>> len(attained_pairs(WithoutReplacementGaussianStep(2.0, 10, 100), "replace_one"))
    2
    """
    fixed_size = isinstance(event, (WithoutReplacementGaussianStep, WithReplacementGaussianStep))
    if adjacency == "replace_one" and fixed_size:
        return pairs_of(event, "add_remove")
    if isinstance(event, ThresholdoutInteraction):
        return None
    if isinstance(event, BlackBox):
        return pairs_of(event, event.adjacency)
    return pairs_of(event, adjacency)


def _both(pairs: tuple[DominatingPair, ...]) -> Both:
    return pairs[0], pairs[-1]
