"""Divergences of finite distributions, and what differential privacy implies for them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import up_relative
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import chosen, number, positive, probability

__all__ = [
    "AzumaTail",
    "approx_max_divergence",
    "azuma_tail",
    "hockey_stick",
    "is_indistinguishable",
    "kl_bound",
    "kl_divergence",
    "max_divergence",
    "pure_decomposition",
    "statistical_distance",
    "tv_bound",
]

Floats = NDArray[np.float64]


def _distribution(values: Any, name: str) -> Floats:
    expected = "probabilities, 0 or more, that sum to 1"
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise InputTypeError(name, f"an array of {array.dtype}", expected)
    if array.ndim != 1 or not array.size:
        raise InputError(name, f"an array of shape {array.shape}", expected)
    found = array.astype(np.float64)
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise InputError(name, "a value that is negative or not finite", expected)
    total = math.fsum(found.tolist())
    if abs(total - 1.0) > 1e-9:
        raise InputError(name, f"values that sum to {total:.12g}", expected)
    return found


def _pair(p: Any, q: Any) -> tuple[Floats, Floats]:
    first, second = _distribution(p, "p"), _distribution(q, "q")
    if first.size != second.size:
        raise InputError("p, q", f"{first.size} and {second.size} outcomes", "equally many")
    return first, second


def kl_divergence(p: Any, q: Any) -> float:
    """Return the Kullback-Leibler divergence, sum of ``p log(p/q)``.

    Parameters
    ----------
    p, q : array_like, shape (outcomes,)
        Distributions; they must sum to 1 within 1e-9 and are not normalised.

    Returns
    -------
    float
        In nats; infinite where q is 0 and p is not.

    Raises
    ------
    InputError
        When one is no distribution, or their lengths differ.

    Examples
    --------
    >>> round(kl_divergence([0.5, 0.3, 0.15, 0.05], [0.2, 0.3, 0.2, 0.3]), 12)
    0.325405081608
    """
    p, q = _pair(p, q)
    seen = p > 0
    if (q[seen] == 0).any():
        return math.inf
    return math.fsum((p[seen] * (np.log(p[seen]) - np.log(q[seen]))).tolist())


def max_divergence(p: Any, q: Any) -> float:
    """Return the largest log-likelihood ratio, ``max log(p/q)`` over the outcomes that p has.

    Parameters
    ----------
    p, q : array_like, shape (outcomes,)

    Returns
    -------
    float
        In nats; infinite where q is 0 and p is not.

    Examples
    --------
    >>> round(max_divergence([0.5, 0.3, 0.15, 0.05], [0.2, 0.3, 0.2, 0.3]), 12)
    0.916290731874
    """
    p, q = _pair(p, q)
    seen = p > 0
    if (q[seen] == 0).any():
        return math.inf
    return float((np.log(p[seen]) - np.log(q[seen])).max())


def approx_max_divergence(p: Any, q: Any, delta: float) -> float:
    """Return the delta-approximate max divergence, ``max log((P(S) - delta) / Q(S))`` over events with P(S) > delta.

    Parameters
    ----------
    p, q : array_like, shape (outcomes,)
    delta : float
        In [0, 1).

    Returns
    -------
    float
        In nats; may be negative, and is infinite where an event with P(S) > delta has Q(S) = 0.

    Notes
    -----
    It is the infimum of all e with ``hockey_stick(p, q, e) <= delta``. The supremum of P(S) - e^e Q(S) is reached by a
    prefix of the outcomes in order of decreasing likelihood ratio, so the largest value over prefixes is the infimum.
    The condition is on the *first* distribution; the published definition has it on the second (defect D16).

    Examples
    --------
    >>> round(approx_max_divergence([0.5, 0.3, 0.15, 0.05], [0.2, 0.3, 0.2, 0.3], 0.1), 12)
    0.69314718056
    >>> approx_max_divergence([1.0, 0.0], [0.0, 1.0], 0.1)
    inf
    """
    p, q = _pair(p, q)
    delta = probability(delta, "delta")
    with np.errstate(divide="ignore"):
        ratio = np.where(q > 0, np.log(p) - np.log(np.where(q > 0, q, 1.0)), math.inf)
    order = np.argsort(-ratio, kind="stable")
    order = order[p[order] > 0]
    P = np.cumsum(p[order])
    Q = np.cumsum(q[order])
    seen = delta < P
    if not seen.any():
        return -math.inf
    if (Q[seen] == 0).any():
        return math.inf
    return float((np.log(P[seen] - delta) - np.log(Q[seen])).max())


def statistical_distance(p: Any, q: Any) -> float:
    """Return the total variation distance, half the sum of ``|p - q|``.

    Examples
    --------
    >>> round(statistical_distance([0.5, 0.3, 0.15, 0.05], [0.2, 0.3, 0.2, 0.3]), 12)
    0.3
    """
    p, q = _pair(p, q)
    return min(1.0, 0.5 * math.fsum(np.abs(p - q).tolist()))


def hockey_stick(p: Any, q: Any, eps: float) -> float:
    """Return the hockey-stick divergence, sum of ``max(p - e^eps q, 0)``.

    Parameters
    ----------
    p, q : array_like, shape (outcomes,)
    eps : float
        Any finite number; of any size without overflow.

    Returns
    -------
    float
        In [0, 1] for eps >= 0.

    Examples
    --------
    >>> hockey_stick([0.75, 0.25], [0.25, 0.75], 0.0)
    0.5
    """
    p, q = _pair(p, q)
    eps = number(eps, "eps")
    with np.errstate(divide="ignore"):
        scaled = np.exp(np.minimum(np.log(q) + eps, 700.0))  # more than any p in either case
    return math.fsum(np.maximum(p - scaled, 0.0).tolist())


def is_indistinguishable(p: Any, q: Any, eps: float, delta: float) -> bool:
    """Whether two distributions are (eps, delta)-indistinguishable: ``P(B) <= e^eps Q(B) + delta`` both ways.

    Parameters
    ----------
    p, q : array_like, shape (outcomes,)
    eps : float
        At least 0.
    delta : float
        In [0, 1).

    Examples
    --------
    >>> is_indistinguishable([0.75, 0.25], [0.25, 0.75], 0.0, 0.5)
    True
    """
    eps, delta = positive(eps, "eps", zero=True), probability(delta, "delta")
    return max(hockey_stick(p, q, eps), hockey_stick(q, p, eps)) <= delta


def pure_decomposition(p: Any, q: Any, eps: float) -> tuple[Floats, Floats]:
    """Return distributions near p and q whose max divergences are at most eps (PROOFS.md, V1).

    Parameters
    ----------
    p, q : array_like, shape (outcomes,)
    eps : float
        At least 0.

    Returns
    -------
    p2, q2 : ndarray, shape (outcomes,)
        With max divergences of at most eps both ways, and statistical distances to p and q of at most
        ``delta / (1 + e^eps)``, delta the larger hockey-stick divergence at eps.

    Notes
    -----
    [He, Lemma 2], constructive half. Conversely such a pair shows that p and q are (eps, delta)-indistinguishable.

    Examples
    --------
    >>> p2, q2 = pure_decomposition([1.0, 0.0], [0.0, 1.0], 0.0)
    >>> p2, q2
    (array([0.5, 0.5]), array([0.5, 0.5]))
    """
    p, q = _pair(p, q)
    eps = positive(eps, "eps", zero=True)
    share = 1.0 / (1.0 + math.exp(-eps)) if eps < 700 else 1.0  # e^eps / (1 + e^eps)
    other = math.exp(-eps) * share
    decay = math.exp(-eps)
    both = p + q
    p_high, q_high = q < decay * p, p < decay * q
    both = p + q
    p2 = np.where(p_high, share * both, np.where(q_high, other * both, p))
    q2 = np.where(p_high, other * both, np.where(q_high, share * both, q))
    missing = 0.5 * (math.fsum(q2.tolist()) - math.fsum(p2.tolist()))
    if missing > 0:
        room = np.maximum(q2 - p2, 0.0)
        moved = missing * room / math.fsum(room.tolist())
        p2, q2 = p2 + moved, q2 - moved
    elif missing < 0:
        room = np.maximum(p2 - q2, 0.0)
        moved = -missing * room / math.fsum(room.tolist())
        p2, q2 = p2 - moved, q2 + moved
    return p2, q2


def kl_bound(eps: float, rule: str = "he") -> float:
    """Return a bound on the Kullback-Leibler divergence of the outputs of an eps-private mechanism on neighbours.

    Parameters
    ----------
    eps : float
        At least 0.
    rule : {"he", "dwork_rothblum", "dwork_rothblum_vadhan"}
        ``eps tanh(eps/2)``, which randomised response attains [He, Lemma 5; PROOFS.md, V2]; ``eps (e^eps - 1)/2``;
        ``eps (e^eps - 1)``.

    Returns
    -------
    float
        In nats, rounded up; infinite where it is above the largest float.

    Examples
    --------
    >>> round(kl_bound(1.0), 12), round(kl_bound(1.0, "dwork_rothblum"), 12)
    (0.46211715726, 0.85914091423)
    """
    eps = positive(eps, "eps", zero=True)
    rule = chosen(rule, "rule", ("he", "dwork_rothblum", "dwork_rothblum_vadhan"))
    if eps == 0:
        return 0.0
    if rule == "he":
        return up_relative(eps * math.tanh(eps / 2))
    if math.log(eps) + eps > 709.0:
        return math.inf
    return up_relative(eps * math.expm1(eps) * (0.5 if rule == "dwork_rothblum" else 1.0))


def tv_bound(eps: float, delta: float) -> float:
    """Return the largest total variation distance of an (eps, delta)-indistinguishable pair.

    Parameters
    ----------
    eps : float
        At least 0.
    delta : float
        In [0, 1).

    Returns
    -------
    float
        ``(e^eps - 1 + 2 delta)/(e^eps + 1)``, rounded up, at most 1 (PROOFS.md, V3).

    Examples
    --------
    >>> round(tv_bound(0.5, 1e-6), 10)
    0.2449194175
    """
    eps, delta = positive(eps, "eps", zero=True), probability(delta, "delta")
    if eps == 0:
        return delta
    decay = math.exp(-eps)
    return min(1.0, up_relative(math.tanh(eps / 2) + 2 * delta * decay / (1 + decay)))


class AzumaTail(NamedTuple):
    """A deviation and the probability of exceeding it."""

    deviation: float
    probability: float


def azuma_tail(a: Any, t: float) -> AzumaTail:
    """Return how far a sum of bounded differences exceeds the sum of its conditional means, and how probably.

    Parameters
    ----------
    a : array_like, shape (terms,)
        Each ``Y_i`` lies in ``[-a_i, a_i]``; at least 0.
    t : float
        At least 0.

    Returns
    -------
    AzumaTail
        ``t sqrt(sum a_i^2)`` and ``exp(-t^2/2)``, both rounded up.

    Examples
    --------
    >>> azuma_tail([3.0, 4.0], 2.0)
    AzumaTail(deviation=10.0000..., probability=0.1353352832...)
    """
    array = np.asarray(a)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iuf":
        raise InputError("a", f"an array of {array.dtype}, shape {array.shape}", "one bound for each term")
    found = array.astype(np.float64)
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise InputError("a", "a bound that is negative or not finite", "numbers, 0 or more")
    t = positive(t, "t", zero=True)
    return AzumaTail(up_relative(t * math.hypot(*found.tolist())), min(1.0, up_relative(math.exp(-t * t / 2), 1e-12)))
