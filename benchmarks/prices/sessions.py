"""Sessions with a guard, and what their intervals have cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.prices.candidates import BETA, Candidate, half_length, simulated
from thresholdout import BudgetExhausted, Thresholdout
from thresholdout.mechanisms.claims import ClaimsParameters
from thresholdout.mechanisms.claims.kinds import guard_width

__all__ = ["Kind", "Run", "after_attack", "beside_plan", "checked", "compared", "listed", "searched"]

_LIKELY: Final = 0.85

Kind: TypeAlias = Literal["population", "win_rate", "given features"]


@dataclass(frozen=True)
class Run:
    """One session: prices of its queries, how many intervals had no truth in them, nats told, half lengths."""

    prices: tuple[float, ...]
    missed: int
    told: float = np.nan
    half_lengths: tuple[float, ...] = ()

    @property
    def price(self) -> float:
        """The mean of the prices."""
        return float(np.mean(self.prices))


def opened(n: int, n_train: int, **settings: Any) -> Thresholdout:
    """Open a guard with defaults; records are their numbers."""
    return Thresholdout(np.arange(float(n)), train=np.arange(float(n), float(n + n_train)), **settings)


def _run(
    intervals: Sequence[tuple[float, float]], candidates: Sequence[tuple[float, float | None]], told: float | None
) -> Run:
    """Put together half lengths that were promised, baselines with truths, and what was told."""
    halves = tuple((high - low) / 2 for low, high in intervals)
    prices, missed = [], 0
    for half, (low, high), (base, truth) in zip(halves, intervals, candidates, strict=True):
        prices.append(half / base)
        missed += truth is not None and not low <= truth <= high
    return Run(tuple(prices), missed, np.nan if told is None else told, halves)


def searched(candidates: Iterable[Candidate], n: int, n_train: int, queries: int) -> Run:
    """Ask a default guard about candidates, one after another; a refused query has the width 1."""
    guard = opened(n, n_train)
    intervals: list[tuple[float, float]] = []
    asked = []
    for candidate in candidates:
        try:
            intervals.append(guard.ask(candidate.train, candidate.holdout, binary=True).interval)
        except BudgetExhausted:
            intervals.append((0.0, 1.0))
        score = float(candidate.holdout.mean()) if candidate.truth is None else candidate.truth
        asked.append((half_length(score, n, BETA / queries), candidate.truth))
    return _run(intervals, asked, guard.status.information_released)


def beside_plan(candidates: Sequence[Candidate], n: int, n_train: int, similarity: float) -> tuple[float, float]:
    """Return the mean half length of a search's intervals over the planned one, and its price over a fixed list."""
    run = searched(candidates, n, n_train, len(candidates))
    score = float(np.mean([candidate.train.mean() for candidate in candidates]))
    planned = guard_width(ClaimsParameters(n_train=n_train), n, len(candidates), score, similarity)
    return float(np.mean(run.half_lengths)) / planned, run.price


def listed(candidates: Sequence[Candidate], n: int, n_train: int, reserve: float) -> Run:
    """Ask a default guard about a list that was fixed before."""
    guard = opened(n, n_train)
    answers = guard.ask_all([(c.train, c.holdout) for c in candidates], binary=True, reserve=reserve)
    assert all(candidate.truth is not None for candidate in candidates)
    asked = [(half_length(c.truth or 0.0, n, BETA / len(candidates)), c.truth) for c in candidates]
    return _run([answer.interval for answer in answers], asked, guard.status.information_released if reserve else None)


class _Recorded:
    """A classifier that says something about each record."""

    def __init__(self, said: NDArray[np.int64]) -> None:
        self.classes_ = np.array([0, 1])
        self._said = said

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self._said[X[:, 0].astype(int)]
        return found


def compared(kind: Kind, n: int, n_train: int, queries: int, disagreement: float, seed: int) -> Run:
    """Compare models that say different things about a share of the records, and win there three to seven times of ten.

    A record's label is the likely one with probability 0.85, whatever the models say. The baseline is the exact sign
    test at 0.05/m: limits of a win rate given the number of differing records.
    """
    rng = np.random.default_rng([seed, queries, n])
    size = n + n_train
    X, likely = np.arange(float(size))[:, None], rng.integers(0, 2, size)
    y = np.where(rng.random(size) < _LIKELY, likely, 1 - likely)
    settings: dict[str, Any] = {"win_rate": {"sampling": "iid"}, "given features": {"sampling": "fixed_features"}}
    guard = Thresholdout((X[:n], y[:n]), train=(X[n:], y[n:]), **settings.get(kind, {}))
    intervals, asked = [], []
    for _ in range(queries):
        share = float(rng.uniform(0.3, 0.7))
        differ = rng.random(size) < disagreement
        well = rng.random(size) < (share - 1 + _LIKELY) / (2 * _LIKELY - 1)
        new = np.where(differ & ~well, 1 - likely, likely)
        old = np.where(differ, 1 - new, new)
        about: Literal["win_rate", "difference"] = "win_rate" if kind == "win_rate" else "difference"
        intervals.append(guard.compare(_Recorded(new), _Recorded(old), about=about, cv="training").interval)
        half = half_length(share, disagreement * n, BETA / queries)
        if kind == "win_rate":
            asked.append((half, share))
            continue
        truth = disagreement * (2 * share - 1)
        if kind == "given features":
            truth = float(np.mean((differ * np.where(well, 1.0, -1.0))[:n]) * (2 * _LIKELY - 1))
        asked.append((2 * disagreement * half, truth))
    return _run(intervals, asked, guard.status.information_released)


def checked(n: int, n_train: int, queries: int, seed: int) -> Run:
    """Search with a guard that keeps some risk for a final check, and make it of the best; its baseline is alone."""
    rng = np.random.default_rng([seed, n])
    size = n + n_train
    X, y = np.arange(float(size))[:, None], rng.integers(0, 2, size)
    guard = Thresholdout((X[:n], y[:n]), train=(X[n:], y[n:]), final_check=True)
    best, value = None, -1.0
    for candidate in simulated(n, n_train, queries, seed):
        answer = guard.ask(candidate.train, candidate.holdout, binary=True)
        if answer.value > value:
            best, value = candidate, answer.value
    told = guard.status.information_released
    assert best is not None
    right = np.concatenate([best.holdout, best.train])
    interval = guard.final_check(_Recorded(np.where(right, y, 1 - y)), cv="training").interval
    return _run([interval], [(half_length(best.truth or 0.0, n, BETA), best.truth)], told)


def after_attack(n: int, queries: int, attack: str, seed: int) -> tuple[float, float, float]:
    """Return the half length of an honest answer after an attack, that of a new guard, and the nats told.

    The honest query is about a model that is right about nine records of ten, on both parts.
    """
    rng = np.random.default_rng([seed, queries, n])
    guard, fresh = opened(n, 2 * n), opened(n, 2 * n)
    votes: list[NDArray[np.bool_]] = []
    for number in range(queries):
        if attack == "misleading":  # training values that have nothing to do with the holdout
            guard.ask(float(rng.random()), rng.random(n) < rng.choice([0.1, 0.5, 0.9]), binary=True)
            continue
        coin = rng.random(n) < 0.5  # useless features, kept or turned round by their answers; then their majority
        if number % 5 == 4 and votes:
            guard.ask(0.5, np.mean(votes, axis=0) > 0.5, binary=True)
            continue
        answer = guard.ask(0.5 + (0.2 if number % 2 else -0.2), coin, binary=True)
        votes.append(coin if answer.value > 0.5 else ~coin)
    right = np.arange(3 * n) % 10 > 0
    halves = []
    for one in (guard, fresh):
        low, high = one.ask(right[n:], right[:n], binary=True).interval
        halves.append((high - low) / 2)
    return halves[0], halves[1], guard.status.information_released or 0.0
