"""Divergences of finite distributions by their definitions, and the pair of Lemma 2 of He, Wang and Tao."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import number, positive, probability

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
    """Return the Kullback-Leibler divergence, sum of ``p log(p/q)``."""
    p, q = _pair(p, q)
    seen = p > 0
    if (q[seen] == 0).any():
        return math.inf
    return math.fsum((p[seen] * (np.log(p[seen]) - np.log(q[seen]))).tolist())


def max_divergence(p: Any, q: Any) -> float:
    """Return the largest log-likelihood ratio, ``max log(p/q)`` over the outcomes that p has."""
    p, q = _pair(p, q)
    seen = p > 0
    if (q[seen] == 0).any():
        return math.inf
    return float((np.log(p[seen]) - np.log(q[seen])).max())


def approx_max_divergence(p: Any, q: Any, delta: float) -> float:
    """Return the delta-approximate max divergence, ``max log((P(S) - delta) / Q(S))`` over events with P(S) > delta."""
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
    """Return the total variation distance, half the sum of ``|p - q|``."""
    p, q = _pair(p, q)
    return min(1.0, 0.5 * math.fsum(np.abs(p - q).tolist()))


def hockey_stick(p: Any, q: Any, eps: float) -> float:
    """Return the hockey-stick divergence, sum of ``max(p - e^eps q, 0)``."""
    p, q = _pair(p, q)
    eps = number(eps, "eps")
    with np.errstate(divide="ignore"):
        scaled = np.exp(np.minimum(np.log(q) + eps, 700.0))  # more than any p in either case
    return math.fsum(np.maximum(p - scaled, 0.0).tolist())


def is_indistinguishable(p: Any, q: Any, eps: float, delta: float) -> bool:
    """Whether two distributions are (eps, delta)-indistinguishable: ``P(B) <= e^eps Q(B) + delta`` both ways."""
    eps, delta = positive(eps, "eps", zero=True), probability(delta, "delta")
    return max(hockey_stick(p, q, eps), hockey_stick(q, p, eps)) <= delta


def pure_decomposition(p: Any, q: Any, eps: float) -> tuple[Floats, Floats]:
    """Return distributions near p and q whose max divergences are at most eps (PROOFS.md, V1)."""
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
