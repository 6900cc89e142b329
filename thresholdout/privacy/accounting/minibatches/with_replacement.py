"""Renyi differential privacy of a Gaussian step on a batch drawn with replacement, under add/remove."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from graphs.numerics.rounding import ULP
from thresholdout.data.arguments import check_word
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import (
    Floats,
    Orders,
    batch,
    like,
    order,
    orders,
    sigma_of,
    terms,
)
from thresholdout.privacy.accounting.minibatches.moments import Moments
from thresholdout.privacy.accounting.minibatches.quadrature import Ratio, log_excess, log_sum
from thresholdout.privacy.accounting.minibatches.without_replacement import from_log, taylor_log

__all__ = ["Draws", "rdp_fswr", "rdp_fswr_lower"]

_OMITTED = 60.0  # components below the largest by this factor, in nats, are left out of a ratio
_CHUNK = 64  # nodes that share a window of components


class Draws:
    """The mixture of shifts, multiples of ``2 / sigma``, of a record that is drawn a binomial number of times."""

    def __init__(self, shift: float, batch_size: int, dataset_size: int) -> None:
        self.shift, self.top = shift, batch_size
        self.logs = log_weights(batch_size, dataset_size)
        self.weights = np.exp(self.logs)
        self.known = ULP * (64 * np.arange(1.0, batch_size + 2) + np.abs(self.logs))  # error of the logarithms
        self.after = np.append(np.cumsum(self.weights[::-1])[::-1], 0.0)  # weight of n or more
        self.counts = np.arange(batch_size + 1.0)
        self.touched = -math.expm1(batch_size * math.log1p(-1.0 / dataset_size))

    def at(self, nodes: Floats) -> Ratio:
        """Return the likelihood ratio to the standard normal law."""
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
        # |w| is at least its own error, so that the relative error below is at most 1.
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
    """Return the logarithms of the binomial probabilities that a record is drawn 0, ..., batch_size times."""
    n = np.arange(1, batch_size + 1)
    out = np.empty(batch_size + 1)
    out[0] = total = batch_size * math.log1p(-1.0 / dataset_size)
    lost = 0.0  # the rounding error of the total, carried along: the error grows with the count, not with its square
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
    method: str = "exact",
    m: int = 4,
    K: int | None = None,
    direction: str = "both",
) -> Any:
    """Return the Renyi divergence that one step on a batch with replacement leaks, under add/remove, rounded up.

    Notes
    -----
    "exact" is attained, for every real order (PROOFS.md, F8). "paper" is the bound of [B24, Thm 3.6], soon far above
    it; m are its Taylor terms, and K the largest number of draws that it expands. Direction "both" is the larger one,
    and the guarantee.

    Renyi differential privacy is the wrong tool here: a record fills the whole batch with probability N**-B, which
    makes the divergence huge past a critical order and is irrelevant at any usual delta. The privacy-loss distribution
    gives a usable epsilon.
    """
    found, noise = orders(alpha), sigma_of(sigma)
    draws, records = batch(batch_size, dataset_size)
    check_word("method", method, ("exact", "paper"))
    check_word("direction", direction, ("both", "remove", "add"))
    highest = min(terms(m) - 1, draws) if K is None else count(K, "K")
    if highest > draws:
        raise InputError("K", str(K), f"at most batch_size = {draws}")
    if method == "paper":
        published = [_paper(float(a), noise, draws, records, m, highest) / (float(a) - 1) for a in found]
        return like(alpha, np.array(published) * (1 + 8 * ULP))
    mixture = Draws(math.nextafter(2.0 / noise, math.inf), draws, records)
    value = np.zeros_like(found)
    if direction != "add":
        value = from_log(np.array([each.upper for each in log_excess(mixture, found)]), found)
    ceiling = -draws * math.log1p(-1.0 / records) * (1 + 8 * ULP)  # the ratio is at least the weight of no draw
    todo = value < ceiling  # elsewhere the direction "add" cannot be the larger one
    if direction != "remove" and todo.any():
        logs = np.array([each.upper for each in log_excess(mixture, 1.0 - found[todo])])
        value[todo] = np.maximum(value[todo], np.minimum(from_log(logs, found[todo]), ceiling))
    return like(alpha, value)


def _paper(alpha: float, sigma: float, draws: int, records: int, m: int, highest: int) -> float:
    """Return the logarithm in [B24, (112)], as log1p of a sum whose weights add up to 1."""
    logs = log_weights(draws, records)
    s = np.exp(logs[1 : highest + 1]).sum()
    rate = float(s / (math.exp(logs[0]) + s))
    parts = []
    for n in range(1, draws + 1):
        exponent = 2 * alpha * (alpha - 1) * n * n / sigma**2
        log = exponent if exponent > 600 else math.log(math.expm1(exponent))
        if n <= highest:
            taylor = taylor_log(alpha, rate, m, Moments(sigma / n))
            log = min(log, taylor if taylor > 600 else math.log(math.expm1(taylor))) - math.log(rate)
        parts.append(logs[n] + log + ULP * (64 * n + abs(float(logs[n]))))
    value = log_sum(np.array(parts))
    return float(np.logaddexp(0.0, value + 1e-12 + 64 * ULP * abs(value)))


def rdp_fswr_lower(
    alpha: int,
    sigma: float,
    batch_size: int,
    dataset_size: int,
    *,
    indices: Collection[int] | None = None,
) -> float:
    """Return the lower bound of Theorem 3.7 by its recursion, rounded down; without `indices` it is the exact value.

    Notes
    -----
    `indices` restricts the numbers of draws in each sum beyond the innermost two, such as ``{0, 1, 2, B}``. A learner
    leaks this much only if its clipped gradients can oppose each other at full norm. The recursion [B24, (122), (123)]
    needs its second argument at multiples of the first only, so it is a table and no nested sum. The formula (126)
    lacks the logarithm and the division of 4 by sigma squared.
    """
    if float(order(alpha)) != math.floor(alpha):
        raise InputError("alpha", repr(alpha), "an integer of at least 2")
    noise, (draws, records) = sigma_of(sigma), batch(batch_size, dataset_size)
    chosen = None if indices is None else sorted({count(i, "indices", least=0) for i in indices})
    if chosen is not None and (not chosen or chosen[-1] > draws):
        raise InputError("indices", repr(chosen), f"some numbers between 0 and batch_size = {draws}")
    top, c = int(alpha), 4.0 / noise**2
    logs = log_weights(draws, records)
    j = np.arange((top - 1) * draws + 1)
    table = _log_expm1(draws * _log1p_exp(_log_expm1(c * j) - math.log(records)))  # F_1 - 1
    first = table
    n = np.arange(draws + 1)
    for level in range(2, top + 1):
        size = (top - level) * draws + 1
        if chosen is not None and level > 2:
            if level == 3:
                table = np.logaddexp(0.0, table)
            n = np.array(chosen)
        inner = logs[n] + c * j[:size, None] * n + table[j[:size, None] + n]
        peak = inner.max(axis=1)
        fresh = peak + np.log(np.exp(inner - peak[:, None]).sum(axis=1))
        table = fresh if chosen is not None and level > 2 else np.logaddexp(first[:size], fresh)
    slack = ULP * 32 * (c * top * draws**2 + 2 * top * draws + 400)
    value = float(table[0]) - slack
    logarithm = max(0.0, value) if chosen is not None and top > 2 else float(np.logaddexp(0.0, value))
    return logarithm / (top - 1) * (1 - 8 * ULP)


def _log_expm1(x: Any) -> Floats:
    with np.errstate(divide="ignore"):
        value: Floats = np.where(x > 600.0, x, np.log(np.expm1(np.minimum(x, 600.0))))
    return value


def _log1p_exp(x: Floats) -> Floats:
    value: Floats = np.logaddexp(0.0, x)
    return value
