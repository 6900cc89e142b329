"""Certified ranks of a leaderboard: ranks and ties from intervals.

All intervals of a guard hold at once, so of two teams whose intervals do not overlap one is better than the other, and
nothing certified separates teams whose intervals do. A value inside an interval depends on its team's anticipated
score, so ranks do not use it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, get_args

import numpy as np

from thresholdout.errors import InputError
from thresholdout.ledger.entry import Entry
from thresholdout.mechanisms.base import AnswerSource
from thresholdout.scoring.metrics import METRIC_NAMES, Metric, absolute_error, get_metric, log_loss, squared_error

__all__ = ["Standing", "Tally", "served_metric", "standings"]

_CLIPPED: Final = re.compile(r"(log_loss|squared_error|absolute_error)\(clip=([0-9.e+-]{1,30})\)")
_MADE: Final[dict[str, Callable[..., Metric]]] = {
    "log_loss": log_loss,
    "squared_error": squared_error,
    "absolute_error": absolute_error,
}
_EXPECTED: Final = f"one of {', '.join(METRIC_NAMES)}, or a clipped loss"
_ADVICE: Final = "Write a clipped loss as log_loss(clip=7), squared_error(clip=4) or absolute_error(clip=2)."


def served_metric(text: object) -> Metric:
    """Return the metric of a name, with its largest loss of one record in brackets where it needs one."""
    found = _CLIPPED.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        if isinstance(text, str) and text in METRIC_NAMES:
            return get_metric(text)
        raise InputError("metric", repr(text), _EXPECTED, _ADVICE)
    try:
        clip = float(found[2])
    except ValueError:
        raise InputError("metric", repr(text), _EXPECTED, _ADVICE) from None
    return _MADE[found[1]](clip=clip)


_ROUNDED_UP: Final = 1.0 + 1e-12
_ANSWERS: Final = frozenset(get_args(AnswerSource))


@dataclass(frozen=True, slots=True)
class Standing:
    """Certified standing of one team.

    Attributes
    ----------
    team : str
        Name of the team.
    first, last : int
        Best and worst possible rank: ``first - 1`` other teams are certified to be better, and all teams after ``last``
        to be worse. Equal ranks are shared.
    low, high : float
        Interval that contains the true score of the team's best submission.
    submissions : int
        Number of the team's submissions.
    best : str
        Name in the history of the submission that is certified to be the team's best.
    since : int
        Number of its query.
    """

    team: str
    first: int
    last: int
    low: float
    high: float
    submissions: int
    best: str
    since: int

    @property
    def ranks(self) -> str:
        """The possible ranks as text."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def standings(entries: Iterable[Entry], metric: str, *, greater_is_better: bool) -> list[Standing]:
    """Return the standings of clients, the best first; ties are in the order of their best submissions."""
    tally = Tally(metric, greater_is_better=greater_is_better)
    for entry in entries:
        tally.add(entry)
    return tally.standings()


class Tally:
    """The best submission of each client so far; `last` is the number of the last added query."""

    def __init__(self, metric: str, *, greater_is_better: bool) -> None:
        self.last = 0
        self._limits = (-math.inf, math.inf)
        self._proved = True
        self._metric = metric
        self._greater = greater_is_better
        self._found: dict[str, Standing] = {}

    def add(self, entry: Entry) -> None:
        """Add the next entry.

        A note gives the part of the range by which corrected labels can have moved a score: earlier intervals widened
        by it are about the current labels. After a note with the whole range nothing is certified, and no answer
        counts.
        """
        self.last = entry.query
        if entry.source == "note":
            self._widen(entry.value)
        named = entry.name == self._metric or entry.name.endswith(f" ({self._metric})")
        if entry.source not in _ANSWERS or not named or not self._proved:
            return
        self._limits = entry.lower, entry.upper
        before = self._found.get(entry.client)
        own = Standing(entry.client, 0, 0, entry.low, entry.high, 1, entry.name, entry.query)
        if before is not None:
            better = entry.low > before.low if self._greater else entry.high < before.high
            best = own if better else before
            low = best.low if self._greater else min(before.low, entry.low)
            high = max(before.high, entry.high) if self._greater else best.high
            own = replace(best, low=low, high=high, submissions=before.submissions + 1)
        self._found[entry.client] = own

    def _widen(self, moved: float) -> None:
        """Widen all intervals by a part of the range; by all of it, end the leaderboard."""
        if moved >= 1.0:
            self._proved = False
        elif self._found:
            lower, upper = self._limits
            by = moved * (upper - lower) * _ROUNDED_UP
            self._found = {
                client: replace(
                    one,
                    low=max(lower, math.nextafter(one.low - by, -math.inf)),
                    high=min(upper, math.nextafter(one.high + by, math.inf)),
                )
                for client, one in self._found.items()
            }

    def standings(self) -> list[Standing]:
        """Return the standings of clients; see `standings`."""
        found = list(self._found.values())
        ends = np.array([(one.low, one.high) if self._greater else (-one.high, -one.low) for one in found])
        lows, highs = ends.reshape(-1, 2).T
        better = len(found) - np.searchsorted(np.sort(lows), highs, side="right")  # all of these are above its interval
        worse = np.searchsorted(np.sort(highs), lows, side="left")
        ranks = zip(found, (1 + better).tolist(), (len(found) - worse).tolist(), strict=True)
        ranked = [replace(one, first=first, last=last) for one, first, last in ranks]
        return sorted(ranked, key=lambda one: (one.first, one.last, one.since))
