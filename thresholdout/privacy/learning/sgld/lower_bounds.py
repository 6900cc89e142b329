"""Lower bounds on the epsilon of the iterates, from the worst-case pair."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, logsumexp

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, number, positive
from thresholdout.privacy.learning.sgld.iterate_law import Chain, Mixture, _proof_epoch, worst_case_chain

__all__ = [
    "Bracket",
    "Form",
    "WorstEpoch",
    "check_lemma_conditions",
    "eps_A9",
    "eps_chernoff",
    "eps_tail",
    "eps_threshold",
    "log_mean",
    "worst_epoch",
]

Floats = NDArray[np.float64]

Form = Literal["chernoff", "above", "below"]

MOST_TERMS = 1 << 15  # more positions are summed in that many blocks

_ROOT = 0.5 * math.log(2.0 * math.pi)


class Bracket(NamedTuple):
    """Two numbers around an exact value, rounding included."""

    low: float
    high: float


def log_mean(mixture: Mixture, form: Form, shift: float = 0.0, *, terms: int = MOST_TERMS) -> Bracket:
    """Return a bracket of the logarithm of a mean over the mixture's normals.

    Within a block, z as a function of the position has no minimum inside, and the sum over the block is that of a chord
    between its ends, up to a bound on the second derivative (PROOFS.md, L2). So the bracket holds for any number of
    blocks, and its width falls with the square of it.
    """
    if mixture.parts <= terms:
        low, high = _each(mixture, form, shift)
    else:
        low, high = _blocks(mixture, form, shift, terms)
    return Bracket(low - math.log(mixture.parts), high - math.log(mixture.parts))


def _log_form(form: Form, z: Floats) -> Floats:
    found: Floats
    if form == "chernoff":
        found = -0.5 * z * z
    else:
        found = np.asarray(log_ndtr(-z if form == "above" else z), dtype=np.float64)
    return found


def _scores(mixture: Mixture, shift: float, q: Floats) -> Floats:
    found: Floats = (mixture.gap0 + shift + mixture.gap1 * q) / np.sqrt(mixture.var0 + mixture.var1 * q * q)
    return found


def _rounding(mixture: Mixture, shift: float, z: Floats, logs: Floats, terms: int) -> float:
    """Return a bound on the error of the logarithm of a sum: from z, whose relative error is known, and from logs."""
    # An error dz of z changes ln F by at most (|z| + 1) dz (PROOFS.md, L2).
    error = 4.0 * mixture.slack * (mixture.gap0 + mixture.gap1 + abs(shift)) / math.sqrt(mixture.var0)
    largest, total = float(np.abs(z).max()), float(np.abs(logs).max())
    return (largest + 1.0) * error + 1e-14 * (1.0 + total) + 1e-16 * terms


def _each(mixture: Mixture, form: Form, shift: float) -> tuple[float, float]:
    z = _scores(mixture, shift, mixture.power(np.arange(float(mixture.parts))))
    logs = _log_form(form, z)
    total = float(logsumexp(logs))
    slack = _rounding(mixture, shift, z, logs, mixture.parts)
    return total - slack, total + slack


def _blocks(mixture: Mixture, form: Form, shift: float, blocks: int) -> tuple[float, float]:
    edges = np.floor(np.linspace(0.0, float(mixture.parts), blocks + 1))
    first, last = edges[:-1], edges[1:] - 1.0
    width, log_count = last - first, np.log(np.diff(edges))
    high_q, low_q = mixture.power(first), mixture.power(last)
    z_first, z_last = _scores(mixture, shift, high_q), _scores(mixture, shift, low_q)
    log_first, log_last = _log_form(form, z_first), _log_form(form, z_last)
    chord = log_count + np.logaddexp(log_first, log_last) - math.log(2.0)

    # Bounds over a block: its variance is least at the smaller q, and z is least at an end (L2).
    least_var = mixture.var0 + mixture.var1 * low_q * low_q
    slope, bend = _derivatives(mixture, shift, high_q, low_q, least_var)
    step = -mixture.log_lam
    least = np.minimum(z_first, z_last)
    most = np.maximum(z_first, z_last) + slope * (step * width)
    near = np.where((least < 0) & (most > 0), 0.0, np.minimum(np.abs(least), np.abs(most)))
    far = np.maximum(np.abs(least), np.abs(most))
    if form == "chernoff":
        # Bounds on the second derivative of the form, divided by its density `log_scale` (L2).
        curvature = (far * slope) ** 2 + slope**2 + far * bend
        log_scale = -0.5 * near * near
    else:
        curvature = far * slope**2 + bend
        log_scale = -0.5 * near * near - _ROOT
    with np.errstate(divide="ignore", under="ignore"):
        log_error = log_scale + np.log(curvature) + np.log((width**3 - width) / 12.0) + 2.0 * math.log(step)
        # The form falls in z, but for "below", where it rises.
        lower, upper = (least, most) if form == "below" else (most, least)
        high = np.minimum(np.logaddexp(chord, log_error), log_count + _log_form(form, upper))
        share = np.exp(np.minimum(log_error - chord, 0.0))
        low = np.maximum(chord + np.log1p(-share), log_count + _log_form(form, lower))
    ends = np.concatenate([z_first, z_last])
    slack = _rounding(mixture, shift, ends, np.concatenate([chord, log_first, log_last]), blocks)
    if mixture.parts > 1 << 53:
        slack += 1e-16 * blocks  # ends of blocks are then rounded
    return float(logsumexp(low)) - slack, float(logsumexp(high)) + slack


def _derivatives(
    mixture: Mixture, shift: float, high_q: Floats, low_q: Floats, least_var: Floats
) -> tuple[Floats, Floats]:
    """Return bounds on the first two derivatives of z in ln q, within each block."""
    # z' = q L(q) var^(-3/2) with a linear L, which is largest at an end of the block (L2).
    ahead, behind = mixture.gap1 * mixture.var0, (mixture.gap0 + shift) * mixture.var1

    def largest(times: float) -> Floats:
        found: Floats = np.maximum(np.abs(ahead - times * behind * high_q), np.abs(ahead - times * behind * low_q))
        return found

    slope = high_q * largest(1.0) * least_var**-1.5
    bend = high_q * (largest(2.0) * least_var**-1.5 + 3.0 * mixture.var1 * high_q**2 * largest(1.0) * least_var**-2.5)
    return slope, bend


DIRECTIONS = ("D1->D2", "D2->D1", "max")

Bound = Literal["tail", "chernoff"]

_FORMS: dict[str, Form] = {"tail": "above", "chernoff": "chernoff"}


class WorstEpoch(NamedTuple):
    """The epoch with the largest lower bound, and that bound, in nats."""

    epochs: int
    epsilon: float


def half(value: object, name: str = "delta") -> float:
    """Return a delta in [0, 1/2)."""
    found = number(value, name, "a number in [0, 1/2)")
    if not 0.0 <= found < 0.5:
        raise InputError(name, repr(found), "a number in [0, 1/2)")
    return found


def _below(value: float) -> float:
    # More than the rounding of two logarithms and their difference.
    return value - 1e-14 * (1.0 + abs(value))


def _epsilon(mixture: Mixture, delta: float, bound: str) -> float:
    return _below(math.log(0.5 - delta) - log_mean(mixture, _FORMS[bound]).high)


def _bound(bound: str, clip: bool, delta: object, epochs: object, chain: Chain) -> float:
    found = _epsilon(chain.after(count(epochs, "K")), half(delta), bound)
    return max(0.0, found) if clip else found


def eps_chernoff(
    n: int,
    c: float,
    x_h: float,
    alpha: float,
    beta: float,
    K: int,
    *,
    delta: float,
    eta: float | None = None,
    batch_size: int = 1,
    clip: bool = True,
) -> float:
    """Return the lower bound that the paper plots: a Chernoff bound for the event above the first data set's mean.

    ``ln(1/2 - delta) - ln mean_r exp(-z_r^2/2)`` with ``z_r = gap_r/sqrt(var_hat_r)``, rounded down. After K epochs the
    iterate is not (eps, delta)-private for any smaller eps. `eps_tail` is always larger. With `clip` a vacuous bound,
    below 0, is returned as 0.
    """
    return _bound("chernoff", clip, delta, K, worst_case_chain(n, c, x_h, alpha, beta, eta, batch_size))


def eps_tail(
    n: int,
    c: float,
    x_h: float,
    alpha: float,
    beta: float,
    K: int,
    *,
    delta: float,
    eta: float | None = None,
    batch_size: int = 1,
    clip: bool = True,
) -> float:
    """Return the lower bound of the event above the first data set's mean, with exact probabilities.

    ``ln(1/2 - delta) - ln P[D2's iterate > mean of D1's]``, rounded down. Any n up to about 1e15 takes some
    milliseconds.
    """
    return _bound("tail", clip, delta, K, worst_case_chain(n, c, x_h, alpha, beta, eta, batch_size))


def eps_threshold(
    n: int,
    c: float,
    x_h: float,
    alpha: float,
    beta: float,
    K: int,
    *,
    delta: float,
    direction: str = "max",
    eta: float | None = None,
    batch_size: int = 1,
) -> float:
    """Return the largest lower bound of all events above, or below, a threshold."""
    mixture = worst_case_chain(n, c, x_h, alpha, beta, eta, batch_size).after(count(K, "K"))
    delta, direction = half(delta), chosen(direction, "direction", DIRECTIONS)
    found = [0.0]
    if direction != "D2->D1":
        found.append(_best_threshold(mixture, delta, "above"))
    if direction != "D1->D2":
        found.append(_best_threshold(mixture, delta, "below"))
    return max(found)


def _best_threshold(mixture: Mixture, delta: float, form: Form) -> float:
    spread = math.sqrt(mixture.var)
    widest = math.sqrt(mixture.var0 + mixture.var1)

    def value(shift: float) -> float:
        score = shift / spread
        # ln Q(z) changes by at most (|z| + 1) |dz|, and dz is relative to |z|.
        slack = (1.0 + score * score) * (1e-13 + 4.0 * mixture.slack)
        if form == "above":
            likely = math.exp(float(log_ndtr(-score)) - slack) - delta
            unlikely = log_mean(mixture, form, shift).high
        else:
            likely = math.exp(log_mean(mixture, form, shift).low) - delta
            unlikely = float(log_ndtr(score)) + slack
        return _below(math.log(likely) - unlikely) if likely > 0 else -math.inf

    # Shifts with which the likely event has a probability from almost 1 down to about 1e-9.
    if form == "above":
        low, high = -6.0 * spread, 6.0 * spread
    else:
        low, high = -mixture.gap0 - mixture.gap1 - 6.0 * widest, 6.0 * widest - mixture.gap0
    grid = np.linspace(low, high, 41)
    values = [value(float(shift)) for shift in grid]
    best = int(np.argmax(values))
    around = (float(grid[max(0, best - 1)]), float(grid[min(40, best + 1)]))
    refined = minimize_scalar(
        lambda shift: -max(value(shift), -1e300), bounds=around, method="bounded", options={"maxiter": 40}
    )
    return max(values[best], -float(refined.fun))


def eps_A9(  # noqa: N802 the name of the lemma
    n: int, c: float, x_h: float, alpha: float, beta: float, *, delta: float, clip: bool = False
) -> float:
    """Return the paper's closed form of a lower bound at the proof epoch, with its own step size [HF, Lemma A.9].

    After `proof_epoch` epochs with step size ``2/(alpha + n x_h^2 beta)^2`` the iterate is not (eps, delta)-private for
    any smaller eps. The bound is rounded down. It is proved for ``x_h^2 beta > 3`` and ``n > alpha/(x_h^2 beta)``
    (PROOFS.md, L4); the other conditions of the paper's lemmas are not needed.

    Its constants are loose by a factor of hundreds. It is negative until c/n is large, and so in every example of
    practical size. It shows the growth of epsilon.
    """
    chain = worst_case_chain(n, c, x_h, alpha, beta)
    delta, s = half(delta), chain.s
    if s <= 3.0:
        raise InputError("x_h", f"x_h^2 beta = {s:g}", "such that x_h^2 beta is more than 3")
    if chain.n <= alpha / s:
        raise InputError("n", str(n), f"more than alpha/(x_h^2 beta) = {alpha / s:g}")
    # The bound on z^2/2 of L4, (iv).
    v1 = max(6.0, 1.0 + 2.0 * math.exp(1.0 / s))
    square = math.exp(-2.0 / s) * alpha / (2.0 * v1) * (3.0 / (32.0 * s)) ** 2 * (c / chain.n) ** 2
    found = _below(square * (1.0 - 1e-13) + math.log(0.5 - delta))
    return max(0.0, found) if clip else found


def worst_epoch(
    n: int,
    c: float,
    x_h: float,
    alpha: float,
    beta: float,
    *,
    delta: float,
    K_max: int | None = None,
    bound: Bound = "tail",
    eta: float | None = None,
    batch_size: int = 1,
) -> WorstEpoch:
    """Return the epoch with the largest lower bound, by `eps_tail` or `eps_chernoff`.

    Epochs up to `K_max` are searched: at least twice the epoch of the proof, which is the default.
    """
    chain = worst_case_chain(n, c, x_h, alpha, beta, eta, batch_size)
    delta, bound = half(delta), "tail" if chosen(bound, "bound", tuple(_FORMS)) == "tail" else "chernoff"
    least = 2 * _proof_epoch(chain).epochs
    last = least if K_max is None else count(K_max, "K_max")
    if last < least:
        raise InputError("K_max", str(last), f"at least {least}, twice the epoch of the proof")
    values = [_epsilon(chain.after(epochs), delta, bound) for epochs in range(1, last + 1)]
    best = int(np.argmax(values))
    return WorstEpoch(best + 1, max(0.0, values[best]))


def check_lemma_conditions(n: int, x_h: float, alpha: float, beta: float, delta: float = 0.0) -> dict[str, bool]:
    """Return the conditions of the paper's Lemmas A.5 to A.9 by name, and whether they hold.

    The fourth, ``"n > 1/(2 alpha s) - 1/s"``, comes from an inequality that the paper solves wrongly; Claim D.18 needs
    the fifth in its place (defect E4). `eps_A9` needs the first two, and delta < 1/2, only.
    """
    n, alpha = count(n, "n"), positive(alpha, "alpha")
    s = positive(x_h, "x_h") ** 2 * positive(beta, "beta")
    return {
        "s > 3": s > 3,
        "n > alpha/s": n > alpha / s,
        "n > (alpha/s)(e^(2/s) - 2) + 1/(2 s)": n > alpha / s * (math.exp(2.0 / s) - 2.0) + 1.0 / (2.0 * s),
        "n > 1/(2 alpha s) - 1/s": n > 1.0 / (2.0 * alpha * s) - 1.0 / s,
        "alpha > 1/2 and n >= 1/((2 alpha - 1) s)": alpha > 0.5 and n >= 1.0 / ((2.0 * alpha - 1.0) * s),
        "delta < 1/2": _is_half(delta),
    }


def _is_half(delta: Any) -> bool:
    return 0.0 <= number(delta, "delta") < 0.5
