"""Dominating pairs: those with atoms, Gaussians, and mixtures of these."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import positive, probability
from thresholdout.privacy.accounting.pld.loss import Floats, Loss, Piece, log_ratio, normal, reach

__all__ = ["Discrete", "GaussianMixture", "Laplace", "OppositeShifts", "Symmetrised", "gaussian", "randomised_response"]


@dataclass(frozen=True)
class Laplace:
    """Laplace(0, 1) against Laplace(epsilon, 1), its own mirror image; epsilon is sensitivity by scale."""

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
        low = max(-top, top + 2.0 * math.log(tail))  # the density of the loss is exp((t - top)/2)/4

        def density(t: Floats) -> Floats:
            found: Floats = 0.25 * np.exp(0.5 * (t - top))
            return found

        piece = Piece(low, top, lambda t: t, density, 0.0, 0.0, lambda value: value, gaussian=False)
        atoms = ((-top, 0.5 * math.exp(-top)), (top, 0.5))
        return Loss((piece,), tuple(a for a in atoms if a[1] > 0), below=((low, tail),))


@dataclass(frozen=True)
class Discrete:
    """Two distributions on finitely many outcomes.

    All finite losses are multiples of `base`, up to rounding, if it is given; a lattice through it makes bounds tight.
    """

    p: tuple[float, ...]
    q: tuple[float, ...]
    base: float | None = None

    def __post_init__(self) -> None:
        if len(self.p) != len(self.q) or not self.p:
            raise InputError("p, q", f"{len(self.p)} and {len(self.q)} outcomes", "of equal length, at least 1")
        for name, values in (("p", self.p), ("q", self.q)):
            for value in values:
                positive(value, name, zero=True)
            if abs(math.fsum(values) - 1.0) > 1e-12:
                raise InputError(name, f"the sum {math.fsum(values)!r}", "probabilities that add up to 1")
        if self.base is not None:
            positive(self.base, "base")

    @property
    def anchor(self) -> float | None:
        """The given base."""
        return self.base

    def loss(self, tail: float) -> Loss:
        """Return the privacy loss; nothing is left out at any `tail`."""
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
    """Return the worst pair of an (epsilon, delta)-private step: four outcomes [Kairouz, Oh and Viswanath 2015]."""
    size, failure = positive(epsilon, "epsilon"), probability(delta, "delta")
    if size > 700:
        raise InputError("epsilon", repr(size), "at most 700 nats")
    top = (1.0 - failure) / (1.0 + math.exp(-size))
    bottom = (1.0 - failure) * math.exp(-size) / (1.0 + math.exp(-size))
    return Discrete((failure, top, bottom, 0.0), (0.0, bottom, top, failure), base=size)


def _checked(shifts: tuple[float, ...], weights: tuple[float, ...], room: float = 0.0) -> None:
    if not weights or len(shifts) != len(weights):
        raise InputError("weights", f"{len(weights)} weights of {len(shifts)} shifts", "one weight for each shift")
    for shift in shifts:
        positive(shift, "shifts")
    for weight in weights:
        positive(weight, "weights")
    if math.fsum(weights) > 1.0 + room:
        raise InputError("weights", f"the sum {math.fsum(weights)!r}", "numbers whose sum is at most 1")


@dataclass(frozen=True)
class GaussianMixture:
    """``sum w_i N(shift_i, 1) + (1 - sum w_i) N(0, 1)`` against N(0, 1), or, if the record is `added`, the reverse.

    One shift with weight q is the exact pair of a step on a sampled minibatch under add/remove: shift ``2 / sigma``
    without replacement, ``1 / sigma`` for Poisson. Several shifts are a batch drawn with replacement. Weight 1 is the
    Gaussian mechanism. `omitted` is the probability of shifts that were left out; their mass is at 0 instead.
    """

    shifts: tuple[float, ...]
    weights: tuple[float, ...]
    added: bool = False
    omitted: float = 0.0

    def __post_init__(self) -> None:
        _checked(self.shifts, self.weights)
        if self.added and probability(self.omitted, "omitted") > 0 and self.omitted >= 1.0 - math.fsum(self.weights):
            raise InputError("omitted", repr(self.omitted), "less than the probability of no shift")
        probability(self.omitted, "omitted")

    @property
    def anchor(self) -> float | None:
        """The size of the loss of outcomes that no shift explains: most of the mass, if shifts are rare and large."""
        rest = math.fsum(self.weights)
        return -math.log1p(-rest) if rest < 1.0 else None

    def loss(self, tail: float) -> Loss:
        """Return the privacy loss; `tail` is the probability that may be left out at each end."""
        far, most = reach(tail), max(self.shifts)
        shifts, weights = np.array(self.shifts), np.array(self.weights)
        zero = math.fsum([1.0, *(-weight for weight in self.weights)])
        terms = len(self.shifts)

        def ratio(t: Floats) -> Floats:
            return log_ratio(t, shifts, weights)

        def mixture(t: Floats) -> Floats:
            found = zero * normal(t)
            for shift, weight in zip(self.shifts, self.weights, strict=True):
                found += weight * normal(t, shift)
            return found

        def outcome(value: Floats) -> Floats:
            q, a = self.weights[0], self.shifts[0]
            with np.errstate(invalid="ignore", divide="ignore"):
                large = value > 1.0
                power = np.where(large, value + np.log1p((q - 1.0) * np.exp(-value)), 0.0) - math.log(q)
                power = np.where(large, power, np.log1p(np.expm1(np.where(large, 0.0, value)) / q))
            return power / a + 0.5 * a

        single = outcome if len(self.shifts) == 1 else None
        top = _top(self.shifts, self.weights, tail)
        scale = _scale(self.shifts, self.weights, max(far, top))
        if self.added:
            inverse = None if single is None else lambda value: -single(-value)
            piece = Piece(-far, far, lambda t: -ratio(-t), normal, most, scale, inverse, terms=terms)
            # The true Q is at least (1 - omitted / zero) of this one, so losses are at most this much larger (P4).
            slack = -math.log1p(-self.omitted / zero) if self.omitted > 0 else 0.0
            return Loss((piece,), below=((piece.raised(-far), tail),), infinite=tail, slack=slack * (1.0 + 1e-12))
        piece = Piece(-far, top, ratio, mixture, most, scale, single, terms=terms)
        return Loss((piece,), below=((piece.raised(-far), tail),), infinite=tail + self.omitted)


def _scale(shifts: tuple[float, ...], weights: tuple[float, ...], most: float) -> float:
    """Return a bound, up to a factor, on ``sum w |exp(s t - s^2 / 2) - 1|`` where it is at most 1, for |t| <= most."""
    return math.fsum(w * min(1.0, 3.0 * s * (most + s + 1.0)) for s, w in zip(shifts, weights, strict=True))


def _top(shifts: tuple[float, ...], weights: tuple[float, ...], tail: float) -> float:
    """Return an outcome above which the mixture's probability is at most `tail`."""
    rest = 0.5 * tail / len(shifts)
    found = reach(0.5 * tail)
    for shift, weight in zip(shifts, weights, strict=True):
        if weight > rest:
            found = max(found, shift + reach(rest / weight))
    return found


def gaussian(shift: float) -> GaussianMixture:
    """Return the pair of the Gaussian mechanism, N(shift, 1) against N(0, 1)."""
    return GaussianMixture((positive(shift, "shift"),), (1.0,))


@dataclass(frozen=True)
class Symmetrised:
    """A pair that dominates steps on minibatches in both directions when one record is replaced.

    Its loss is that of ``X_i = (1 - rate) N(0, 1) + rate N(shift_i, 1)`` against N(0, 1) where that is positive, minus
    it under N(0, 1), and else 0; i is drawn with probability ``weights[i]`` and known. Without replacement there is one
    shift, ``2 / sigma`` [Balle, Barthe and Gaboardi 2018, Theorem 2; PROOFS.md, P5]. The weights add up to at most 1,
    and the rest is charged to delta.
    """

    shifts: tuple[float, ...]
    weights: tuple[float, ...]
    rate: float
    omitted: float = 0.0

    def __post_init__(self) -> None:
        _checked(self.shifts, self.weights, 1e-14)
        if not 0 < positive(self.rate, "rate") <= 1:
            raise InputError("rate", repr(self.rate), "a number in (0, 1]")

    @property
    def anchor(self) -> float | None:
        """The atom is at 0."""
        return None

    def loss(self, tail: float) -> Loss:
        """Return the privacy loss; `tail` is the probability that may be left out at each end."""
        far, q = reach(tail), self.rate
        pieces: list[Piece] = []
        atoms: list[tuple[float, float]] = []
        left_out = [0.0]
        for a, b in zip(self.shifts, self.weights, strict=True):
            if b <= 0.5 * tail / len(self.shifts):
                left_out.append(b)
                continue
            pieces += _two_sides(a, b, q, far, min(far, reach(min(0.5, 0.5 * tail / (len(self.shifts) * b)))))
            inside = math.erf(a / math.sqrt(8.0))
            if q < 1.0:
                atoms.append((0.0, b * (1.0 - q) * inside))
        infinite = 2.0 * tail + math.fsum(left_out) + self.omitted
        return Loss(tuple(pieces), tuple(atoms), below=((0.0, tail),), infinite=infinite)


def _two_sides(a: float, b: float, q: float, far: float, above: float) -> list[Piece]:
    """Return the pieces of positive and negative loss of one shift."""
    shift, weight = np.array([a]), np.array([q])
    scale = _scale((a,), (q,), a + max(far, above))

    def outcome(value: Floats) -> Floats:
        power: Floats = np.where(
            value > 1.0,
            value + np.log1p((q - 1.0) * np.exp(-np.maximum(value, 1.0))) - math.log(q),
            np.log1p(np.expm1(np.minimum(value, 1.0)) / q),
        )
        return power / a + 0.5 * a

    found = [
        Piece(
            0.5 * a,
            a + above,
            lambda t: np.maximum(log_ratio(t, shift, weight), 0.0),
            lambda t: b * ((1.0 - q) * normal(t) + q * normal(t, a)),
            a,
            scale,
            outcome,
        )
    ]
    if far > 0.5 * a:
        found.append(
            Piece(
                -far,
                -0.5 * a,
                lambda t: -np.maximum(log_ratio(-t, shift, weight), 0.0),
                lambda t: b * normal(t),
                a,
                scale,
                lambda value: -outcome(-value),
            )
        )
    return found


@dataclass(frozen=True)
class OppositeShifts:
    """``(1 - rate) N(0, 1) + rate N(shift, 1)`` against the same with -shift.

    It is the exact pair of a step on a Poisson minibatch when one record is replaced, shift ``1 / sigma``, attained by
    gradients that point in opposite directions [PROOFS.md, P6].
    """

    shift: float
    rate: float

    def __post_init__(self) -> None:
        _checked((self.shift,), (self.rate,))

    @property
    def anchor(self) -> float | None:
        """No atoms."""
        return None

    def loss(self, tail: float) -> Loss:
        """Return the privacy loss; `tail` is the probability that may be left out at each end."""
        far, a, q = reach(tail), self.shift, self.rate
        shift, weight = np.array([a]), np.array([q])

        def ratio(t: Floats) -> Floats:
            return log_ratio(t, shift, weight) - log_ratio(-t, shift, weight)

        def mixture(t: Floats) -> Floats:
            return (1.0 - q) * normal(t) + q * normal(t, a)

        # Where the two logarithms nearly cancel, each may be as large as log(1 - q).
        scale = _scale((a,), (1.0,), a + far) * (q + (-math.log1p(-q) if q < 1.0 else a))
        piece = Piece(-far, a + far, ratio, mixture, a, scale, self._outcome)
        return Loss((piece,), below=((piece.raised(-far), tail),), infinite=tail)

    def _outcome(self, value: Floats) -> Floats:
        """Return the outcome of loss v: ``(v/2 + asinh(k sinh(v/2))) / shift``, ``k = (1/q - 1) exp(shift^2 / 2)``."""
        half, a, q = 0.5 * np.abs(value), self.shift, self.rate
        start = math.log1p(-q) - math.log(2.0 * q) + 0.5 * a * a if q < 1.0 else -math.inf
        with np.errstate(divide="ignore", under="ignore"):
            log = start + half + np.log(-np.expm1(-2.0 * half))
            arc = np.where(log > 20.0, log + math.log(2.0), np.arcsinh(np.exp(np.minimum(log, 20.0))))
        return np.copysign(half + arc, value) / a
