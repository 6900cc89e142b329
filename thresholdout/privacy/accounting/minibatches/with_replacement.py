"""Renyi differential privacy of a Gaussian step on a batch drawn with replacement, under add/remove."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs.numerics.rounding import ULP
from thresholdout.data.arguments import check_word
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import (
    Floats,
    Orders,
    batch,
    like,
    orders,
    sigma_of,
)
from thresholdout.privacy.accounting.minibatches.quadrature import Ratio, log_excess
from thresholdout.privacy.accounting.minibatches.without_replacement import from_log

__all__ = [
    "Draws",
    "rdp_fswr",
]

_OMITTED = 60.0  # components below the largest by this factor, in nats, are left out of a ratio
_CHUNK = 64


class Draws:
    """The mixture of shifts of a record that is drawn a binomial number of times.

    Parameters
    ----------
    shift : float
        2 / sigma.
    batch_size, dataset_size : int
        Draws, and records to draw from.
    """

    def __init__(self, shift: float, batch_size: int, dataset_size: int) -> None:
        self.shift, self.top = shift, batch_size
        self.logs = log_weights(batch_size, dataset_size)
        self.weights = np.exp(self.logs)
        self.known = ULP * (64 * np.arange(1.0, batch_size + 2) + np.abs(self.logs))  # error of the logarithms
        self.after = np.append(np.cumsum(self.weights[::-1])[::-1], 0.0)  # weight of n or more
        self.counts = np.arange(batch_size + 1.0)
        self.touched = -math.expm1(batch_size * math.log1p(-1.0 / dataset_size))

    def at(self, nodes: Floats) -> Ratio:
        """Return the likelihood ratio to the standard normal law.

        Examples
        --------
        >>> ratio = Draws(1.0, 3, 10).at(np.array([-40.0]))
        >>> round(float(ratio.w[0]), 9)  # no draw: 0.9**3 - 1
        -0.271
        """
        parts = [self._chunk(nodes[i : i + _CHUNK]) for i in range(0, nodes.size, _CHUNK)]
        if not parts:
            return Ratio(np.empty(0), np.empty(0), np.empty(0))
        return Ratio(*(np.concatenate(piece) for piece in zip(*parts, strict=True)))

    def _window(self, low: float, high: float) -> tuple[int, int]:
        """Return the counts from 1 on that matter between two nodes; the log-terms are concave in the count."""
        step = self.shift * self.counts[1:]
        first = self.logs[1:] + step * (low - 0.5 * step)
        last = self.logs[1:] + step * (high - 0.5 * step)
        start = int(np.argmax(first >= first.max() - _OMITTED))
        stop = self.top - int(np.argmax(last[::-1] >= last.max() - _OMITTED))
        return start + 1, stop + 1

    def _chunk(self, nodes: Floats) -> tuple[Floats, Floats, Floats]:
        start, stop = self._window(float(nodes[0]), float(nodes[-1]))
        step = self.shift * self.counts[start:stop]
        exponent = step * (nodes[:, None] - 0.5 * step)
        noise = ULP * (8 + 2 * np.abs(exponent) + step**2)
        known = self.known[start:stop]
        capped = np.minimum(exponent, 600.0)
        ratio, less = np.exp(capped), np.expm1(capped)
        weights = self.weights[start:stop]
        left = (self.after[1] - self.after[start]) + self.after[stop]
        w = less @ weights - left
        error = np.abs(less) @ (weights * (known + 4 * ULP)) + (ratio * noise) @ weights + 64 * ULP * left
        error += self.top * math.exp(-_OMITTED) * (ratio @ weights)
        w = np.where(w >= 0, np.maximum(w, error), np.minimum(w, -error))
        share = error / np.abs(w)
        slack = np.where(share < 0.4, -np.log1p(-np.minimum(share, 0.4)), np.log1p(share))
        log = np.log1p(w)
        far = exponent.max(axis=1) > 600.0
        if far.any():
            terms_ = self.logs[start:stop] + exponent[far]
            peak = terms_.max(axis=1)
            log[far] = peak + np.log(np.exp(terms_ - peak[:, None]).sum(axis=1))
            w[far] = np.inf
            best = terms_.argmax(axis=1)
            slack[far] = (noise[far] + known)[np.arange(best.size), best] * 4
        return w, log, slack


def log_weights(batch_size: int, dataset_size: int) -> Floats:
    """Return the logarithms of the binomial probabilities that a record is drawn 0, ..., batch_size times.

    Examples
    --------
    >>> np.exp(log_weights(2, 4))
    array([0.5625, 0.375 , 0.0625])
    """
    n = np.arange(1, batch_size + 1)
    out = np.empty(batch_size + 1)
    out[0] = total = batch_size * math.log1p(-1.0 / dataset_size)
    lost = 0.0  # what rounding took off the total, so that the error grows with the count and not with its square
    for i, ratio in enumerate((np.log((batch_size - n + 1) / n) - math.log(dataset_size - 1)).tolist(), start=1):
        term = ratio + lost
        fresh = total + term
        part = fresh - total
        lost = (total - (fresh - part)) + (term - part)
        out[i] = total = fresh
    return out


def rdp_fswr(
    alpha: Orders,
    sigma: float,
    batch_size: int,
    dataset_size: int,
    *,
    direction: str = "both",
) -> Any:
    """Return the Renyi divergence that one step on a batch with replacement leaks, under add/remove.

    Notes
    -----
    Renyi differential privacy is the wrong tool here: that a record fills the whole batch has probability N**-B and
    makes the divergence huge past a critical order, though it matters nothing at any usual delta. Use the privacy-loss
    distribution for an epsilon. The value is attained, for every real order (PROOFS.md, F8).

    Examples
    --------
    >>> f"{rdp_fswr(2, 6, 120, 50_000):.9e}"
    '6.770992327e-07'
    """
    found, noise = orders(alpha), sigma_of(sigma)
    draws, records = batch(batch_size, dataset_size)
    check_word("direction", direction, ("both", "remove", "add"))
    mixture = Draws(math.nextafter(2.0 / noise, math.inf), draws, records)
    value = np.zeros_like(found)
    if direction != "add":
        value = from_log(np.array([each.upper for each in log_excess(mixture, found)]), found)
    ceiling = -draws * math.log1p(-1.0 / records) * (1 + 8 * ULP)  # the ratio is at least the weight of no draw
    todo = value < ceiling
    if direction != "remove" and todo.any():
        logs = np.array([each.upper for each in log_excess(mixture, 1.0 - found[todo])])
        value[todo] = np.maximum(value[todo], np.minimum(from_log(logs, found[todo]), ceiling))
    return like(alpha, value)
