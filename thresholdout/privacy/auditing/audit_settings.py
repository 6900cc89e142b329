"""Goals of an audit, epsilon at a given delta or delta at a given epsilon, and the seeds of its runs."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.arguments import as_integer
from graphs.numerics.rounding import up_relative
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import positive, probability

__all__ = ["DeltaGoal", "EpsilonGoal", "Goal", "check_goal", "entropy_of", "own_stream", "run_seed"]

Floats = NDArray[np.float64]
_LARGEST = 700.0  # exp overflows beyond


@dataclass(frozen=True)
class EpsilonGoal:
    """Epsilon at a given delta: the larger of ``ln((1 - delta - fp) / fn)`` and its mirror image.

    fp and fn are the error rates of an attack.
    """

    delta: float

    @property
    def measured(self) -> str:
        """The bounded parameter."""
        return "epsilon"

    def order(self, fp: Floats, fn: Floats) -> Floats:
        """Return the larger ratio, 0 if it is negative; it never rises with a rate, in floating point too."""
        # Single IEEE operations are monotone in each argument, so the order is exactly monotone (PROOFS.md, L3).
        most = math.nextafter(1.0 - self.delta, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = _below(most - fp) / fn, _below(most - fn) / fp
        return np.fmax(np.fmax(one, other), 0.0)  # 0/0 says nothing

    def value(self, order: float) -> float:
        """Return epsilon from the ratio, at least 0 and rounded down."""
        if order <= 1.0:
            return 0.0
        return max(0.0, math.log(order) * (1.0 - 1e-14) - 1e-15)  # more than the rounding of ratio and logarithm


@dataclass(frozen=True)
class DeltaGoal:
    """Delta at a given epsilon: the larger of ``1 - fn - e^epsilon fp`` and its mirror image."""

    epsilon: float

    @property
    def measured(self) -> str:
        """The bounded parameter."""
        return "delta"

    def order(self, fp: Floats, fn: Floats) -> Floats:
        """Return delta itself, 0 if it is negative; it never rises with a rate, in floating point too."""
        factor = up_relative(math.exp(self.epsilon))
        return np.maximum(_below(1.0 - fn - factor * fp), _below(1.0 - fp - factor * fn))

    def value(self, order: float) -> float:
        """Return delta, at least 0, lowered by the error of three roundings of numbers of at most 1."""
        return max(0.0, order - 1e-15)


Goal = EpsilonGoal | DeltaGoal


def _below(values: Floats) -> Floats:
    found: Floats = np.maximum(np.nextafter(values, -np.inf), 0.0)
    return found


def check_goal(delta: float | None, epsilon: float | None) -> Goal:
    """Check that exactly one of the two is given, and return the goal."""
    if delta is None and epsilon is None:
        raise InputError("delta", "nothing", "delta to measure epsilon, or epsilon to measure delta")
    if delta is not None and epsilon is not None:
        raise InputError("delta", repr(delta), "None beside epsilon=", "The audit measures one of the two.")
    if delta is not None:
        return EpsilonGoal(probability(delta, "delta"))
    found = positive(epsilon, "epsilon", zero=True)
    if found > _LARGEST:
        raise InputError("epsilon", repr(found), f"at most {_LARGEST:g}")
    return DeltaGoal(found)


_AUDIT = 0x6175646974  # "audit": no usual number of a spawned stream
_ODD = 0x9E3779B1  # 2**32 over the golden ratio, made odd: multiples differ for all 2**32 factors, and lie far apart


def entropy_of(random_state: Any) -> int:
    """Return a seed: the integer itself, a draw from a generator, or fresh entropy for None."""
    if random_state is None:
        return secrets.randbits(63)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63))
    entropy = as_integer(random_state)
    if entropy is None:
        raise InputTypeError("random_state", f"a {type(random_state).__name__}", "None, an integer, or a generator")
    if entropy < 0:
        raise InputError("random_state", repr(random_state), "0 or more")
    return entropy


def own_stream(entropy: int) -> np.random.Generator:
    """Return a generator for the audit's own coins, independent of ``default_rng(entropy)``.

    The audited outputs or the canaries' coins often come from that generator, made by the same integer.
    """
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(_AUDIT,)))


def run_seed(entropy: int, data_set: int, run: int) -> int:
    """Return the seed of one run, below 2**32; no two runs of an audit have the same.

    `entropy` is the audit's, the data set 0 or 1, the run below 2**31.
    """
    base = int(np.random.SeedSequence(entropy).generate_state(1)[0])
    return (base + (2 * run + data_set) * _ODD) % 2**32
