"""Counting transitions in observed sequences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, as_real
from graphs.structure.labelled_values import refuse_unordered

__all__ = ["transition_counts"]


def transition_counts(
    sequences: tuple[Iterable[Hashable], ...], smoothing: float
) -> tuple[FloatArray, tuple[Hashable, ...], int]:
    """Count how often each state follows each other.

    Parameters
    ----------
    sequences : tuple of iterables of hashable
        Observed sequences of states.
    smoothing : float
        Added to every count.

    Returns
    -------
    counts : ndarray of shape (k, k)
        Row: from; column: to. Every row has a positive sum.
    states : tuple
        Sorted when they can be sorted, else in order of appearance.
    longest : int
        Length of the longest sequence.

    Raises
    ------
    ArgumentError
        See `MarkovChain.fit`.

    Examples
    --------
    >>> transition_counts((["rain", "sun", "rain"],), 0.5)
    (array([[0.5, 1.5],
           [1.5, 0.5]]), ('rain', 'sun'), 3)
    """
    added = as_real(smoothing)
    if added is None or not 0 <= added < math.inf:
        raise ArgumentError("smoothing", repr(smoothing), "a finite number that is not negative")
    if not sequences:
        raise ArgumentError("sequences", "none", "at least one sequence of states")
    paths = [_states_of(sequence, number) for number, sequence in enumerate(sequences)]
    states = _ordered({state: None for path in paths for state in path})
    number = {state: k for k, state in enumerate(states)}
    counts = np.full((len(states), len(states)), added)
    for path in paths:
        steps = np.array([number[state] for state in path])
        np.add.at(counts, (steps[:-1], steps[1:]), 1.0)
    stuck = np.flatnonzero(counts.sum(axis=1) == 0)
    if len(stuck):
        seen = f"state {states[stuck[0]]!r} is never followed by another record"
        raise ArgumentError("sequences", seen, "every state left at least once, or smoothing above 0")
    return counts, states, max(len(path) for path in paths)


def _states_of(sequence: Iterable[Hashable], number: int) -> list[Any]:
    expected = "a sequence of hashable states, at least two records long"
    refuse_unordered("sequences", sequence, expected)
    try:
        path: list[Any] = sequence.tolist() if hasattr(sequence, "tolist") else list(sequence)
    except TypeError:
        raise ArgumentError("sequences", f"sequence {number} is {sequence!r}", expected) from None
    if not isinstance(path, list) or len(path) < 2:
        raise ArgumentError("sequences", f"sequence {number} has fewer than two records", expected)
    for position, state in enumerate(path):
        where = f"record {position} of sequence {number}"
        try:
            hash(state)
        except TypeError:
            raise ArgumentError("sequences", f"{where} is of type {type(state).__name__}", expected) from None
        if state is None or type(state).__name__ in ("NAType", "NaTType") or state != state:
            raise ArgumentError("sequences", f"{where} is missing ({state!r})", expected)
    return path


def _ordered(states: Iterable[Any]) -> tuple[Hashable, ...]:
    names = list(states)
    try:
        return tuple(sorted(names))
    except TypeError:
        return tuple(names)
