"""Dominating pairs whose losses have atoms: Laplace noise, finite distributions, randomised response."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import positive, probability
from thresholdout.privacy.accounting.pld.loss import Floats, Loss, Piece

__all__ = ["Discrete", "Laplace", "randomised_response"]


@dataclass(frozen=True)
class Laplace:
    """Laplace noise: Laplace(0, 1) against Laplace(epsilon, 1), its own mirror image.

    Parameters
    ----------
    epsilon : float
        Sensitivity over scale, above 0.

    Raises
    ------
    InputError, InputTypeError
        When it is not a number above 0.

    Examples
    --------
    >>> Laplace(1.0).loss(1e-9).atoms[1]
    (1.0, 0.5)
    """

    epsilon: float

    def __post_init__(self) -> None:
        positive(self.epsilon, "epsilon")

    @property
    def anchor(self) -> float | None:
        """The atoms are at epsilon and -epsilon."""
        return self.epsilon

    def loss(self, tail: float) -> Loss:
        """Return the privacy loss; `tail` is the probability that may be left out at each end."""
        top = self.epsilon
        low = max(-top, top + 2.0 * math.log(tail))

        def density(t: Floats) -> Floats:
            found: Floats = 0.25 * np.exp(0.5 * (t - top))
            return found

        piece = Piece(low, top, lambda t: t, density, 0.0, 0.0, lambda value: value, gaussian=False)
        atoms = ((-top, 0.5 * math.exp(-top)), (top, 0.5))
        return Loss((piece,), tuple(a for a in atoms if a[1] > 0), below=((low, tail),))


@dataclass(frozen=True)
class Discrete:
    """Two distributions on finitely many outcomes.

    Parameters
    ----------
    p, q : tuple of float
        Probabilities of the outcomes, each adding up to 1.
    base : float, optional
        A loss that all finite losses are multiples of (but for rounding); a lattice through it makes bounds tight.

    Raises
    ------
    InputError, InputTypeError
        When they are no distributions.

    Examples
    --------
    >>> Discrete((0.75, 0.25), (0.25, 0.75)).loss(1e-9).atoms[1][1]
    0.75
    """

    p: tuple[float, ...]
    q: tuple[float, ...]
    base: float | None = None

    def __post_init__(self) -> None:
        if len(self.p) != len(self.q) or not self.p:
            raise InputError("p, q", f"{len(self.p)} and {len(self.q)} outcomes", "equally many, at least one")
        for name, values in (("p", self.p), ("q", self.q)):
            for value in values:
                positive(value, name, zero=True)
            if abs(math.fsum(values) - 1.0) > 1e-12:
                raise InputError(name, f"a sum of {math.fsum(values)!r}", "probabilities that add up to 1")
        if self.base is not None:
            positive(self.base, "base")

    @property
    def anchor(self) -> float | None:
        """The given base."""
        return self.base

    def loss(self, tail: float) -> Loss:
        """Return the privacy loss; nothing is left out, whatever `tail` is."""
        atoms: dict[float, float] = {}
        certain = 0.0
        for one, other in zip(self.p, self.q, strict=True):
            if one > 0 and other > 0:
                value = _log_quotient(one, other)
                if self.base is not None and _near_multiple(value, self.base):
                    value = round(value / self.base) * self.base
                atoms[value] = atoms.get(value, 0.0) + one
            elif one > 0:
                certain += one
        return Loss(atoms=tuple(sorted(atoms.items())), infinite=certain, certain=certain)


def _log_quotient(one: float, other: float) -> float:
    """Return ``log(one / other)`` with a small relative error."""
    if 0.5 * other <= one <= 2.0 * other:
        return math.log1p((one - other) / other)
    quotient = one / other if other > 1e-300 else math.inf
    return math.log(quotient) if 0.0 < quotient < math.inf else math.log(one) - math.log(other)


def _near_multiple(value: float, base: float) -> bool:
    return abs(value - round(value / base) * base) <= 1e-14 * abs(value) + 1e-15


def randomised_response(epsilon: float, delta: float = 0.0) -> Discrete:
    """Return the worst pair of an (epsilon, delta)-private step: four outcomes [Kairouz, Oh and Viswanath 2015].

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        In [0, 1).

    Raises
    ------
    InputError, InputTypeError
        For values out of range.

    Examples
    --------
    >>> randomised_response(1.0).p[0]
    0.0
    """
    size, failure = positive(epsilon, "epsilon"), probability(delta, "delta")
    if size > 700:
        raise InputError("epsilon", repr(size), "at most 700 nats")
    top = (1.0 - failure) / (1.0 + math.exp(-size))
    bottom = (1.0 - failure) * math.exp(-size) / (1.0 + math.exp(-size))
    return Discrete((failure, top, bottom, 0.0), (0.0, bottom, top, failure), base=size)
