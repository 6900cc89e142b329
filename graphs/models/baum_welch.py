"""The Baum-Welch algorithm: hidden Markov chains from observed sequences [Baum, Petrie, Soules, Weiss 1970]."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from graphs.errors import ArgumentError
from graphs.models.emission import CategoricalEmission, Emission, GaussianEmission, real_values
from graphs.numerics.arguments import LEAST_PROBABILITY, FloatArray, IntArray, check_count, check_word
from graphs.structure.labelled_values import refuse_unordered

__all__ = ["HiddenFit", "baum_welch", "state_probabilities"]

#: Least standard deviation, relative to that of all records: the likelihood is unbounded at 0.
NARROWEST = 1e-3


@dataclass(frozen=True, slots=True)
class HiddenFit:
    """A hidden Markov chain fitted by the Baum-Welch algorithm."""

    transition: FloatArray  # shape (k, k): transition matrix of the states
    initial: FloatArray  # shape (k,): law of the first state of a sequence
    emission: Emission  # law of a record given its state
    log_likelihood: float  # of all sequences, nats, at the estimate
    history: FloatArray  # shape (iterations,): log-likelihood before each step of the best start; it does not fall
    # shape (restarts,): log-likelihood that each start ended with: where they differ, there are several local maxima
    likelihoods: FloatArray
    converged: bool  # whether the best start settled before the largest number of iterations
    lengths: tuple[int, ...]  # number of records of each sequence

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        k = len(self.initial)
        of_emission = 2 * k
        if isinstance(self.emission, CategoricalEmission):
            of_emission = k * (self.emission.matrix.shape[1] - 1)
        return k * (k - 1) + k - 1 + of_emission

    @property
    def bic(self) -> float:
        """Bayesian information criterion, -2 ln L + p ln N: smaller is better."""
        return -2 * self.log_likelihood + self.parameters * float(np.log(sum(self.lengths)))


def baum_welch(
    *sequences: Iterable[Any],
    states: int = 2,
    emission: Literal["gaussian", "categorical"] = "gaussian",
    restarts: int = 8,
    iterations: int = 500,
    tolerance: float = 1e-7,
    seed: int = 0,
) -> HiddenFit:
    """Fit a hidden Markov chain by maximum likelihood, from several random starts (Baum-Welch algorithm).

    Use it for the details of a fit. `HiddenMarkov.fit` calls it and returns the dependence model.

    Parameters
    ----------
    *sequences : iterables
        Observed records, in order: numbers for "gaussian", hashable values for "categorical".
    states : int, default 2
        Number k of hidden states.
    emission : {"gaussian", "categorical"}, default "gaussian"
        Distribution of a record given its state. "gaussian": a normal distribution per state. "categorical": a table of
        probabilities.
    restarts : int, default 8
        Number of random starts. All are updated together.
    iterations : int, default 500
        Maximum number of steps of each start.
    tolerance : float, default 1e-7
        A start has converged when a step raises its log-likelihood per record by less than this.
    seed : int, default 0
        Seed of the random starts.

    Returns
    -------
    HiddenFit
        Fit of the start with the largest likelihood, with the attributes `transition`, `initial`, `emission`,
        `log_likelihood`, `history`, `likelihoods` (of all starts), `bic` and `converged`. States are in increasing
        order of their mean, or of the probability of the last symbol.

    Raises
    ------
    ArgumentError
        If an argument cannot be used, a sequence has fewer than two records, or there are more states than different
        values.

    Notes
    -----
    Each step computes the distributions of states and of pairs of neighbours given the records, forward and backward.
    Scaling at each record, with log-likelihoods shifted by their maximum, prevents underflow. The step then maximises
    the expected log-likelihood, so the likelihood does not fall. A standard deviation stays above a thousandth of that
    of all records, since the likelihood of normal records is unbounded at zero; the maximum is then one under a
    constraint. A row of the transition matrix without expected counts stays unchanged.

    Examples
    --------
    >>> records = np.repeat([0.0, 5.0, 0.0, 5.0], 50) + np.random.default_rng(1).standard_normal(200)
    >>> found = baum_welch(records)
    >>> found.transition.round(2)
    array([[0.98, 0.02],
           [0.01, 0.99]])
    >>> bool((np.diff(found.history) > -1e-9).all())
    True
    """
    k = check_count("states", states)
    starts = check_count("restarts", restarts)
    steps = check_count("iterations", iterations)
    if not sequences:
        raise ArgumentError("sequences", "nothing", "at least one sequence of records")
    check_word("emission", emission, ("gaussian", "categorical"))
    for sequence in sequences:
        refuse_unordered("sequences", sequence, "a sequence of records")
    rng = np.random.default_rng(seed)
    laws: _Laws
    if emission == "gaussian":
        laws = _Normal([real_values(s) for s in sequences], k, starts, rng)
    else:
        laws = _Table(sequences, k, starts, rng)
    if min(laws.lengths) < 2:
        raise ArgumentError("sequences", "one with fewer than two records", "sequences of two records or more")
    # starts favour staying in a state: sequences with memory are the usual case
    transition = rng.dirichlet(np.ones(k), size=(starts, k)) * 0.5 + np.eye(k) * 0.5
    initial = np.full((starts, k), 1.0 / k)
    total = sum(laws.lengths)
    history = np.full((starts, steps), np.nan)
    reached = np.full(starts, -np.inf)
    settled = np.zeros(starts, dtype=np.bool_)
    for step in range(steps):
        active = np.flatnonzero(~settled)
        if not len(active):
            break
        found = _expectations(transition[active], initial[active], laws.log_likelihoods(active), laws.lengths)
        history[active, step] = found.log_likelihood
        settled[active] = found.log_likelihood - reached[active] <= tolerance * total
        reached[active] = found.log_likelihood
        moving = ~settled[active] & (step < steps - 1)
        chosen = active[moving]
        transition[chosen] = _normalised(found.pairs[moving], transition[chosen])
        initial[chosen] = _normalised(found.first[moving], initial[chosen])
        laws.update(chosen, found.states[moving])
    best = int(np.argmax(reached))
    order = laws.order(best)
    return HiddenFit(
        transition[best][np.ix_(order, order)],
        initial[best][order],
        laws.emission(best, order),
        float(reached[best]),
        history[best][~np.isnan(history[best])],
        reached,
        bool(settled[best]),
        tuple(laws.lengths),
    )


def state_probabilities(transition: FloatArray, initial: FloatArray, logs: FloatArray) -> FloatArray:
    """Return P(state | all records), shape (T, k), given ln p(record | state) of one sequence."""
    found = _expectations(transition[None], initial[None], logs[None], [len(logs)])
    if not np.isfinite(found.log_likelihood[0]):
        expected = "records of positive probability"
        raise ArgumentError("records", "a sequence that is impossible under the model", expected)
    probabilities: FloatArray = found.states[0]
    return probabilities


@dataclass(frozen=True, slots=True)
class _Expectations:
    """Expected counts given the records, for R starts: states (R, T, k), pairs (R, k, k), first (R, k)."""

    log_likelihood: FloatArray
    states: FloatArray
    pairs: FloatArray
    first: FloatArray


def _expectations(transition: FloatArray, initial: FloatArray, logs: FloatArray, lengths: list[int]) -> _Expectations:
    """Run forward and backward over all sequences, concatenated in `logs`, shape (R, T, k)."""
    shift = logs.max(axis=2)
    weights = np.exp(logs - np.where(np.isfinite(shift), shift, 0.0)[..., None])
    forward, scales, backward = np.empty_like(weights), np.empty(shift.shape), np.empty_like(weights)
    pairs, first = np.zeros_like(transition), np.zeros_like(initial)
    start = 0
    with np.errstate(invalid="ignore", divide="ignore"):
        for length in lengths:
            stop = start + length
            law = initial
            for t in range(start, stop):
                joint = law * weights[:, t]
                scales[:, t] = joint.sum(axis=1)
                forward[:, t] = joint / scales[:, t, None]
                law = np.einsum("rj,rjk->rk", forward[:, t], transition)
            backward[:, stop - 1] = 1.0
            for t in range(stop - 1, start, -1):
                ahead = weights[:, t] * backward[:, t] / scales[:, t, None]
                backward[:, t - 1] = np.einsum("rjk,rk->rj", transition, ahead)
            inside = slice(start + 1, stop)
            ahead = weights[:, inside] * backward[:, inside] / scales[:, inside, None]
            pairs += np.einsum("rtj,rtk->rjk", forward[:, start : stop - 1], ahead) * transition
            first += forward[:, start] * backward[:, start]
            start = stop
        likelihood = (np.log(scales) + shift).sum(axis=1)
    likelihood = np.where(np.isnan(likelihood), -np.inf, likelihood)
    return _Expectations(likelihood, forward * backward, pairs, first)


def _normalised(counts: FloatArray, before: FloatArray) -> FloatArray:
    """Return rows divided by their sums, subnormal entries as zeros; rows without counts are unchanged."""
    sums = counts.sum(axis=-1, keepdims=True)
    kept: FloatArray = np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), before)
    return np.where(kept < LEAST_PROBABILITY, 0.0, kept)


class _Laws(Protocol):
    """Emission laws of R starts, with the records of the fit."""

    lengths: list[int]

    def log_likelihoods(self, starts: IntArray) -> FloatArray:
        """Return ln p(value | state) by the laws of some starts, shape (starts, records, states)."""

    def update(self, starts: IntArray, states: FloatArray) -> None:
        """Fit the laws of some starts to the probabilities of the states, of the same shape."""

    def order(self, start: int) -> IntArray:
        """Return the states of a start in a canonical order."""

    def emission(self, start: int, order: IntArray) -> Emission:
        """Return the laws of a start as an emission, with the states in an order."""


class _Normal:
    """Normal laws; started at random records, with the standard deviation of all of them."""

    def __init__(self, sequences: list[FloatArray], k: int, starts: int, rng: np.random.Generator) -> None:
        self.lengths = [len(s) for s in sequences]
        self.values = np.concatenate(sequences)
        different = np.unique(self.values)
        _check_variety(len(different), k)
        spread = float(self.values.std())
        self.narrowest = NARROWEST * spread
        self.means = np.array([rng.choice(different, size=k, replace=False) for _ in range(starts)])
        self.deviations = np.full((starts, k), spread)

    def log_likelihoods(self, starts: IntArray) -> FloatArray:
        """Return the logarithms of normal densities of all values."""
        laws = [GaussianEmission(self.means[r], self.deviations[r]) for r in starts]
        return np.array([law.log_likelihood(self.values) for law in laws])

    def update(self, starts: IntArray, states: FloatArray) -> None:
        """Fit means and standard deviations; states that do not occur keep theirs."""
        if not len(starts):
            return
        weight = states.sum(axis=1)
        used = weight > 0
        safe = np.where(used, weight, 1.0)
        means = np.einsum("rtk,t->rk", states, self.values) / safe
        centred = (self.values[None, :, None] - means[:, None, :]) ** 2
        deviations = np.sqrt(np.einsum("rtk,rtk->rk", states, centred) / safe)
        self.means[starts] = np.where(used, means, self.means[starts])
        self.deviations[starts] = np.where(used, np.maximum(deviations, self.narrowest), self.deviations[starts])

    def order(self, start: int) -> IntArray:
        """Return the states by their means."""
        return np.argsort(self.means[start], kind="stable")

    def emission(self, start: int, order: IntArray) -> Emission:
        """Return the laws of a start, with the states in an order."""
        return GaussianEmission(self.means[start][order], self.deviations[start][order])


class _Table:
    """Laws over finitely many symbols; started at random."""

    def __init__(
        self, sequences: tuple[Iterable[Hashable], ...], k: int, starts: int, rng: np.random.Generator
    ) -> None:
        items = [s.tolist() if hasattr(s, "tolist") else list(s) for s in sequences]
        self.lengths = [len(s) for s in items]
        flat = [item for s in items for item in s]
        try:
            seen: dict[Any, None] = dict.fromkeys(flat)
        except TypeError:
            raise ArgumentError("sequences", "values that cannot be hashed", "hashable values") from None
        for item in seen:
            if item is None or item != item:
                raise ArgumentError("sequences", f"a missing value ({item!r})", "values without gaps")
        try:
            self.symbols: tuple[Hashable, ...] = tuple(sorted(seen))
        except TypeError:
            self.symbols = tuple(seen)
        _check_variety(len(self.symbols), k)
        number = {symbol: v for v, symbol in enumerate(self.symbols)}
        self.codes = np.array([number[item] for item in flat], dtype=np.int64)
        self.shown = np.eye(len(self.symbols))[self.codes]
        self.tables = rng.dirichlet(np.ones(len(self.symbols)), size=(starts, k))

    def log_likelihoods(self, starts: IntArray) -> FloatArray:
        """Return the logarithms of the symbols' probabilities."""
        with np.errstate(divide="ignore"):
            found: FloatArray = np.log(self.tables[starts]).transpose(0, 2, 1)[:, self.codes]
        return found

    def update(self, starts: IntArray, states: FloatArray) -> None:
        """Fit the tables to expected counts."""
        counts = np.einsum("rtk,tv->rkv", states, self.shown)
        self.tables[starts] = _normalised(counts, self.tables[starts])

    def order(self, start: int) -> IntArray:
        """Return the states by the probability of the last symbol."""
        return np.argsort(self.tables[start][:, -1], kind="stable")

    def emission(self, start: int, order: IntArray) -> Emission:
        """Return the laws of a start, with the states in an order."""
        return CategoricalEmission(self.tables[start][order], self.symbols)


def _check_variety(different: int, k: int) -> None:
    if different < k:
        expected = f"at most the number of different values among the records ({different})"
        raise ArgumentError("states", k, expected)
