"""The parameters (epsilon, delta) of a single event, where it has some that need no curve."""

from __future__ import annotations

import math

from graphs.numerics.rounding import up_relative
from thresholdout.privacy.accounting.events.event_types import (
    Adjacency,
    BlackBox,
    Event,
    GaussianAnswer,
    LaplaceAnswer,
    ThresholdoutInteraction,
)

__all__ = ["adjacency_refusal", "parameters_of", "shift_of"]


def adjacency_refusal(event: Event, adjacency: Adjacency) -> str:
    """Return why an event says nothing about such neighbours; empty when it does.

    Examples
    --------
    >>> adjacency_refusal(BlackBox(0.1), "add_remove")
    'it is about replaced records, from which nothing follows for one record more or less'
    """
    about = "replace_one" if isinstance(event, ThresholdoutInteraction) else getattr(event, "adjacency", adjacency)
    if about == "replace_one" and adjacency == "add_remove":
        return "it is about replaced records, from which nothing follows for one record more or less"
    return ""


def shift_of(event: LaplaceAnswer | GaussianAnswer, adjacency: Adjacency) -> float:
    """Return how far neighbours' answers can be apart, in units of the noise, rounded up.

    A record is replaced by leaving it out and putting another in: twice the sensitivity about one more or less.

    Examples
    --------
    >>> round(shift_of(GaussianAnswer(4.0, 1.0, "add_remove"), "replace_one"), 12)
    0.5
    """
    noise = event.scale if isinstance(event, LaplaceAnswer) else event.std
    steps = 2.0 if event.adjacency == "add_remove" and adjacency == "replace_one" else 1.0
    return math.nextafter(steps * event.sensitivity / noise, math.inf)


def parameters_of(event: Event, adjacency: Adjacency) -> tuple[float, float] | None:
    """Return epsilon and delta of an event, or None when it has none that fit all.

    Examples
    --------
    >>> parameters_of(BlackBox(0.1), "replace_one")
    (0.1, 0.0)
    """
    if adjacency_refusal(event, adjacency):
        return None
    if isinstance(event, LaplaceAnswer):
        return shift_of(event, adjacency), 0.0
    if isinstance(event, ThresholdoutInteraction):
        return event.epsilon, 0.0
    if isinstance(event, BlackBox):
        if event.adjacency == adjacency:
            return event.epsilon, event.delta
        if event.delta == 0:
            return 2 * event.epsilon, 0.0
        grown = event.delta * (1 + math.exp(event.epsilon)) if event.epsilon < 700 else math.inf
        return (2 * event.epsilon, up_relative(grown)) if up_relative(grown) < 1 else None
    return None
