"""What adaptive steps cost together: basic and advanced composition, each a valid guarantee."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from graphs.numerics.rounding import up_relative
from thresholdout.privacy.accounting.bound_arguments import Steps, open_unit, steps
from thresholdout.privacy.accounting.parameter_sums import any_of, sum_up
from thresholdout.privacy.accounting.results import Composition

__all__ = [
    "Candidates",
    "candidates",
    "compose_basic",
    "compose_dwork_roth",
    "compose_kov",
    "compose_theorem5",
    "is_pure",
]


class Candidates(NamedTuple):
    """The three epsilons of Kairouz, Oh and Viswanath; each is valid."""

    e1: float
    e2: float
    e3: float

    @property
    def active(self) -> str:
        """Name of the smallest; the first of equals."""
        return self._fields[self.index(min(self))]


def candidates(found: Steps, dt: float) -> Candidates:
    """Return the three epsilons of a composition with slack dt, rounded up (PROOFS.md, C3)."""
    groups, counts = found.eps.tolist(), found.counts.tolist()
    drift = math.fsum(c * e * math.tanh(e / 2) for e, c in zip(groups, counts, strict=True))
    squares = math.fsum(c * e * e for e, c in zip(groups, counts, strict=True))
    e1 = sum_up(groups, counts)
    e2 = up_relative(drift + math.sqrt(2.0 * squares * math.log(math.e + math.sqrt(squares) / dt)))
    e3 = up_relative(drift + math.sqrt(-2.0 * squares * math.log(dt)))
    return Candidates(e1, e2, e3)


def compose_basic(eps: Any, delta: Any = 0.0, T: int | None = None, *, union: bool = False) -> Composition:
    """Return the sum of the epsilons, with the deltas as independent events.

    Parameters
    ----------
    eps : float or array_like, shape (T,)
        Of each step, for every fixed outcome of the steps before it; at least 0.
    delta : float or array_like, shape (T,)
        In [0, 1).
    T : int, optional
        How many steps; needed when both are numbers (1 by default).
    union : bool
        Whether to add the deltas up, instead of ``1 - prod(1 - delta_i)``.

    Returns
    -------
    Composition
        Rounded up; exact for one step.

    Examples
    --------
    >>> compose_basic(0.25, 1e-6, 4).eps
    1.0
    """
    found = steps(eps, delta, T)
    total = sum_up(found.eps.tolist(), found.counts.tolist())
    added = min(1.0, sum_up(found.delta.tolist(), found.counts.tolist()))
    return Composition(total, added if union else any_of(found), "basic", True, {"steps": found.total})


def compose_dwork_roth(eps: Any, delta: Any, dt: float, T: int | None = None) -> Composition:
    """Return the advanced composition of Dwork and Roth.

    Parameters
    ----------
    eps, delta : float or array_like, shape (T,)
        Of each step; see `compose_basic`.
    dt : float
        Slack in (0, 1), part of the total delta.
    T : int, optional
        How many steps; needed when both are numbers (1 by default).

    Returns
    -------
    Composition
        ``(sum eps_i (e^eps_i - 1) + sqrt(2 Q ln(1/dt)), dt + sum delta_i)``, Q the sum of the squared epsilons; epsilon
        is infinite where that is above the largest float.

    Examples
    --------
    >>> round(compose_dwork_roth(0.1, 0.0, 1e-6, 100).eps, 9)
    6.308230951
    """
    found, dt = steps(eps, delta, T), open_unit(dt, "dt")
    pairs = list(zip(found.eps.tolist(), found.counts.tolist(), strict=True))
    fits = all(e == 0 or e + math.log(e) + math.log(found.total) < 708.0 for e, _ in pairs)
    drift = math.fsum(c * e * math.expm1(e) for e, c in pairs) if fits else math.inf
    squares = math.fsum(c * e * e for e, c in pairs)
    total = up_relative(drift + math.sqrt(-2.0 * squares * math.log(dt)))
    added = sum_up([*found.delta.tolist(), dt], [*found.counts.tolist(), 1])
    return Composition(total, min(1.0, added), "dwork_roth", True, {"steps": found.total})


def compose_kov(eps: Any, delta: Any, dt: float, T: int | None = None) -> Composition:
    """Return the composition of Kairouz, Oh and Viswanath: the smallest of three epsilons.

    Parameters
    ----------
    eps, delta : float or array_like, shape (T,)
        Of each step; see `compose_basic`.
    dt : float
        Slack in (0, 1), part of the total delta.
    T : int, optional
        How many steps; needed when both are numbers (1 by default).

    Returns
    -------
    Composition
        ``(min(e1, e2, e3), 1 - (1 - dt) prod(1 - delta_i))``, rounded up. When e1, the sum, is the smallest, dt is not
        needed and left out of delta; ``details["literal_delta"]`` has it. ``details`` also holds e1, e2, e3 and
        ``active``, the name of the smallest.

    Notes
    -----
    With A, Q the sums of the epsilons and their squares and B the sum of ``eps_i tanh(eps_i/2)``:
    ``e1 = A``, ``e2 = B + sqrt(2 Q ln(e + sqrt(Q)/dt))``, ``e3 = B + sqrt(2 Q ln(1/dt))``
    [Kairouz, Oh, Viswanath, Theorem 3.5; PROOFS.md, C3].

    Examples
    --------
    >>> found = compose_kov(0.1, 1e-6, 1e-6, 100)
    >>> round(found.eps, 10), found.details["active"]
    (5.7561055193, 'e3')
    """
    found, dt = steps(eps, delta, T), open_unit(dt, "dt")
    three = candidates(found, dt)
    literal = any_of(found, dt)
    delta_total = any_of(found) if three.active == "e1" else literal
    details = {**three._asdict(), "active": three.active, "literal_delta": literal, "steps": found.total}
    return Composition(min(three), delta_total, "kov", True, details)


def compose_theorem5(eps: Any, dt: float, T: int | None = None) -> Composition:
    """Return the composition of pure steps with the third epsilon of `compose_kov`.

    Parameters
    ----------
    eps : float or array_like, shape (T,)
        Of each step, which is eps-private without a delta; at least 0.
    dt : float
        Slack in (0, 1), the total delta.
    T : int, optional
        How many steps; needed when eps is a number (1 by default).

    Returns
    -------
    Composition
        ``(e3, dt)`` [He, Theorem 5, "IV"; PROOFS.md, C3].

    Examples
    --------
    >>> round(compose_theorem5(0.1, 1e-6, 100).eps, 10)
    5.7561055193
    """
    found, dt = steps(eps, 0.0, T), open_unit(dt, "dt")
    return Composition(candidates(found, dt).e3, dt, "IV", True, {"steps": found.total})


def is_pure(found: Steps) -> bool:
    """Whether no step has a delta."""
    return not np.any(found.delta)
