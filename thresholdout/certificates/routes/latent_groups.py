"""Independent groups in disguise: records that form independent groups given something nobody sees.

A stationary chain with ``P(x, y) >= e pi(y)`` can be drawn with one coin for each step: with probability e the state is
redrawn from the stationary law. Given the coins, the runs between redraws are independent, and each record still has
its own law. So the certificate for Gaussian answers holds, with the sizes of these runs. PROOFS.md, "Latent groups".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.bisection import bisect_integers
from thresholdout.certificates.best_parameters import best_parameters
from thresholdout.certificates.gaussian.chosen_widths import one_scale
from thresholdout.certificates.gaussian.deviations import GaussianWidths
from thresholdout.certificates.gaussian.noise_schedule import most_answers, tightest_schedule
from thresholdout.certificates.independent_blocks import IndependentBlocks, blocks_of

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = [
    "best_blocks",
    "gaussian_within",
    "redraw_blocks",
    "redraw_probability",
    "tightest_gaussian",
]

Floats = NDArray[np.float64]

EXCEPTIONS = tuple(10.0**-power for power in range(4, 17, 2))
"""Probabilities with which the runs may be longer than assumed, among which the best is picked."""

_FEWEST = 1e-3  # below this probability of a redraw, runs are too long to be worth their tables


def redraw_probability(model: DependenceModel) -> float:
    """Return the largest e with ``P(x, y) >= e pi(y)`` for all states, rounded down.

    Parameters
    ----------
    model : graphs.DependenceModel
        A stationary `MarkovChain` or `HiddenMarkov`.

    Returns
    -------
    float
        In [0, 1]; 0 when the model is neither, does not start in its stationary law, or has no such e.

    Examples
    --------
    >>> from graphs import MarkovChain
    >>> round(redraw_probability(MarkovChain([[0.75, 0.25], [0.25, 0.75]], n=10)), 9)
    0.5
    """
    from graphs import HiddenMarkov, MarkovChain

    chain = model.chain if isinstance(model, HiddenMarkov) else model
    if not isinstance(chain, MarkovChain) or not chain.is_stationary:
        return 0.0
    law = chain.stationary
    possible = law > 0.0
    ratio = float(np.min(chain.transition[:, possible] / law[possible]))
    return min(1.0, max(0.0, ratio * (1.0 - 1e-9)))


@lru_cache(maxsize=1024)
def redraw_blocks(n: int, redraw: float, exception: float) -> IndependentBlocks:
    """Bound the runs between redraws.

    Parameters
    ----------
    n : int
        Number of records.
    redraw : float
        e, in (0, 1]: probability of a redraw before each record.
    exception : float
        eta, in (0, 1): probability with which the runs may be longer.

    Returns
    -------
    IndependentBlocks
        With s and Lambda: except with probability eta, no run is longer than s and the squares of the runs sum to at
        most n Lambda.

    Examples
    --------
    >>> blocks = redraw_blocks(100_000, 0.5, 1e-6)
    >>> round(blocks.inflation, 3), blocks.largest
    (3.088, 38.0)
    """
    if redraw >= 1.0:
        return IndependentBlocks.of_records(n)
    longest = math.ceil(math.log(2.0 * n / exception) / -math.log1p(-redraw) * (1.0 + 1e-12))
    lengths = np.arange(1, min(longest, n) + 1, dtype=np.float64)
    log_weights = math.log(redraw) + (lengths - 1.0) * math.log1p(-redraw)

    def inflation(log_theta: Floats) -> Floats:
        return np.array([_inflation(n, redraw, exception, lengths, log_weights, math.exp(one)) for one in log_theta])

    centre = 2.0 * math.log(redraw)
    _, value = best_parameters(inflation, [(centre - 12.0, centre + 1.0)], points=9, rounds=6)
    return IndependentBlocks(n, min(float(lengths[-1]), value), float(lengths[-1]), exception)


def _inflation(n: int, redraw: float, exception: float, lengths: Floats, log_weights: Floats, theta: float) -> float:
    """``(n ln r + ln(sum_l (w_l/e) e^{theta l^2} r^-l) + ln(2/eta)) / (theta n)``, with r rounded up.

    The logarithm of the sum is convex and decreasing in ln r, so Newton's iteration from 0 stays below the root.
    """
    exponents = log_weights + theta * lengths**2
    log_root, excess = 0.0, math.inf
    for _ in range(100):
        terms = exponents - log_root * lengths
        peak = float(terms.max())
        weights = np.exp(terms - peak)
        mass = float(weights.sum())
        excess = peak + math.log(mass) + 1e-12 * (1.0 + abs(peak))
        if excess <= 1e-11:
            break
        log_root += excess * mass / float(weights @ lengths)
    log_root += max(excess, 0.0)  # runs have at least one record, so this takes the sum to 1 or below
    total = n * log_root - math.log(redraw) + math.log(2.0 / exception)
    return total / (theta * n) * (1.0 + 1e-9)


def best_blocks(model: DependenceModel, answers: int, beta: float) -> IndependentBlocks | None:
    """Return the independent groups of a model, declared or latent, that are best for this many Gaussian answers.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other.
    answers : int
        k.
    beta : float
        Probability of failure of the whole certificate, in (0, 1).

    Returns
    -------
    IndependentBlocks or None
        ``None`` when the model has other dependence.

    Examples
    --------
    >>> from graphs import MarkovChain, MovingWindow
    >>> round(best_blocks(MarkovChain([[0.75, 0.25], [0.25, 0.75]], n=10_000), 10, 0.05).inflation, 1)
    3.3
    >>> best_blocks(MovingWindow(100, 3), 10, 0.05) is None
    True
    """
    declared = blocks_of(model)
    redraw = 0.0 if declared is not None else redraw_probability(model)
    if declared is not None or redraw < _FEWEST:
        return declared
    candidates = [redraw_blocks(model.n, redraw, eta) for eta in EXCEPTIONS if math.sqrt(eta) < beta]
    return min(candidates, key=lambda blocks: one_scale(blocks, answers, beta).tolerance(), default=None)


def gaussian_within(
    model: DependenceModel, tolerance: float, beta: float, *, constant: bool = False
) -> GaussianWidths | None:
    """Find the largest number of Gaussian answers that are all within tau of the truth.

    Parameters
    ----------
    model : graphs.DependenceModel
        Independent records, independent groups, or a stationary chain with redraws.
    tolerance : float
        tau, less what rounding and a threshold in front add.
    beta : float
        Probability of failure, in (0, 1).
    constant : bool
        Whether all answers have the same noise.

    Returns
    -------
    GaussianWidths or None
        Half-widths and schedule; ``None`` when not even one answer is possible.

    Examples
    --------
    >>> from graphs import MarkovChain
    >>> chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], n=100_000)
    >>> gaussian_within(chain, 0.1, 0.05, constant=True).schedule.answers >= 2464
    True
    """
    best: GaussianWidths | None = None
    for _ in range(3):
        answers = best.schedule.answers if best else 1
        blocks = best_blocks(model, answers, beta)
        if blocks is None:
            return None
        found = _most_of_one_scale(blocks, tolerance, beta) if constant else most_answers(blocks, tolerance, beta)
        if found is None or (best and found.schedule.answers <= best.schedule.answers):
            break
        best = found
        if not blocks.exception:
            break
    return best


def tightest_gaussian(
    model: DependenceModel,
    answers: int,
    beta: float,
    *,
    constant: bool = False,
    slack: float = 0.0,
    threshold: float = 0.0,
) -> GaussianWidths | None:
    """Choose the noise of k Gaussian answers such that the tolerance is smallest.

    Parameters
    ----------
    model : graphs.DependenceModel
        As in `gaussian_within`.
    answers : int
        k, declared number of answers.
    beta : float
        Probability of failure, in (0, 1).
    constant : bool
        Whether all answers have the same noise.
    slack, threshold : float
        What rounding adds to an answer's error; T of a threshold in front.

    Returns
    -------
    GaussianWidths or None
        ``None`` when the model has other dependence.

    Examples
    --------
    >>> from graphs import Groups
    >>> pairs = Groups([record // 2 for record in range(20_000)])
    >>> tightest_gaussian(pairs, 664, 0.05).tolerance() < 0.1
    True
    """
    blocks = best_blocks(model, answers, beta)
    if blocks is None:
        return None
    choose: Callable[..., GaussianWidths] = one_scale if constant else tightest_schedule
    return choose(blocks, answers, beta, slack=slack, threshold=threshold)


def _most_of_one_scale(blocks: IndependentBlocks, tolerance: float, beta: float) -> GaussianWidths | None:
    def fits(answers: int) -> bool:
        return one_scale(blocks, answers, beta).tolerance() <= tolerance

    if not fits(1):
        return None
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    return one_scale(blocks, bisect_integers(fits, high, low), beta)
