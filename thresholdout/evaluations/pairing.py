"""Matched items of two runs, and the tests of their differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from thresholdout.errors import EvaluationFileError, InputError, InputTypeError
from thresholdout.evaluations.scores import Scores, shown
from thresholdout.limits.binomial import log_one_law_tail
from thresholdout.limits.group_bets import log_difference_wealth
from thresholdout.limits.sign_flips import log_flip_tail
from thresholdout.limits.trinomial import difference_refuted

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Pairs", "keys", "pair"]

BETS: Final = "bets on cluster totals"
FLIPS: Final = "sign flips of cluster totals (exact where nothing changed)"
SIGNS: Final = "sign test"
TRINOMIAL: Final = "exact trinomial"
_MOST_MISSING: Final = 10.0  # percent; with more missing scores, their worst values decide "not worse"
ASSUMED: Final = "scores are treated as 0/1, since all of them are; with other values the level doubles"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Differences in [-1, 1], candidate less base, of the items that both runs have.

    `groups` has the number of each item's cluster; `unused` counts items of one run alone or without a score in one.
    `binary`: every item has one score in each run, 0 or 1. `two_valued`: the metric has no other scores, by definition.
    `worst` has all items of either run with missing scores at their worst for the candidate, its own at 0 and the
    base's at 1; None where nothing is missing.
    """

    items: tuple[str, ...]
    differences: NDArray[np.float64]
    groups: NDArray[np.int64]
    clustered: bool
    binary: bool
    two_valued: bool
    tags: tuple[str, ...] | None
    unused: int
    worst: Pairs | None = None

    @property
    def mean(self) -> float:
        """The mean difference."""
        return float(self.differences.mean())

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Number of items in each cluster."""
        return np.bincount(self.groups).astype(np.float64)

    @property
    def totals(self) -> NDArray[np.float64]:
        """Sum of the differences in each cluster."""
        return np.asarray(np.bincount(self.groups, weights=self.differences), dtype=np.float64)

    @property
    def error(self) -> float:
        """Clustered standard error of the mean difference; infinite for one cluster."""
        sizes, count = self.sizes, int(self.groups.max()) + 1
        if count < 2:
            return math.inf
        residuals = self.totals - sizes * self.mean
        return math.sqrt(count / (count - 1) * float(residuals @ residuals)) / self.differences.size

    @property
    def exact_binary(self) -> bool:
        """Whether the binomial and the trinomial law apply: one 0/1 score for each item, and no clusters."""
        return self.binary and not self.clustered

    def part(self, chosen: NDArray[np.bool_]) -> Pairs:
        """Return some of the items."""
        _, groups = np.unique(self.groups[chosen], return_inverse=True)
        at = np.flatnonzero(chosen)
        return Pairs(
            tuple(self.items[i] for i in at),
            self.differences[chosen],
            groups,
            self.clustered,
            self.binary,
            self.two_valued,
            None if self.tags is None else tuple(self.tags[i] for i in at),
            0,
        )

    def log_p_worse(self, any_laws: bool) -> float:
        """Return ln of a p-value of "not worse"; small where the candidate is worse."""
        if any_laws:
            return min(0.0, -log_difference_wealth(-self.totals, self.sizes))
        if self.exact_binary:
            # differences other than -1, 0 and 1 are rounded up, against the claim (PROOFS.md, "Tests")
            losses = int(np.count_nonzero(self.differences <= -1.0))
            return log_one_law_tail(losses, losses + int(np.count_nonzero(self.differences > 0.0)), 0.5)
        return log_flip_tail(-self.totals)

    def not_worse(self, margin: float, log_level: float, any_laws: bool) -> bool:
        """Return whether "not worse by the margin" passes at a level, for all values of the missing scores."""
        if self.worst is not None:
            return self.worst.not_worse(margin, log_level, any_laws)
        if self.exact_binary and not any_laws:
            # rounded down, against the claim
            wins = int(np.count_nonzero(self.differences >= 1.0))
            losses = int(np.count_nonzero(self.differences < 0.0))
            return difference_refuted(wins, losses, self.differences.size, -margin, log_level)
        return log_difference_wealth(self.totals, self.sizes, margin) >= -log_level

    def tests(self, any_laws: bool) -> tuple[str, str]:
        """Return the names of the tests of "worse" and of "not worse by the margin"."""
        if any_laws:
            return BETS, BETS
        return (SIGNS, TRINOMIAL) if self.exact_binary else (FLIPS, BETS)

    def assumption(self, any_laws: bool) -> str:
        """Return the assumption under which results do not choose the test; empty where none is needed."""
        return ASSUMED if self.exact_binary and not any_laws and not self.two_valued else ""


def keys(scores: Scores, others: Sequence[Scores] = ()) -> list[str]:
    """Return the names by which items are matched: contents where these differ in all runs, otherwise item names."""
    for each in (scores, *others):
        if "" in each.contents or len(set(each.contents)) < len(each.contents):
            return list(scores.items)
    return list(scores.contents)


def pair(base: Scores, candidate: Scores, allow_missing: float = 1.0, binary: bool | None = None) -> Pairs:
    """Match the items of two runs, and refuse runs that cannot be compared."""
    given: tuple[tuple[str, object], ...] = (("base", base), ("candidate", candidate))
    for argument, run in given:
        if not isinstance(run, Scores):
            seen = f"a {type(run).__name__}"
            raise InputTypeError(argument, seen, "the scores of a run", "Read them with thresholdout.evaluations.read.")
    if not 0.0 <= allow_missing <= 100.0:
        raise InputError("allow_missing", allow_missing, "from 0 to 100 percent")
    if base.name == candidate.name:
        base, candidate = replace(base, name="the base"), replace(candidate, name="the candidate")
    if base.metric != candidate.metric:
        raise InputError(
            "metric",
            f"{base.metric} in {base.name} and {candidate.metric} in {candidate.name}",
            "the same for both runs",
        )
    if base.scale != candidate.scale:
        raise InputError("range", f"{base.scale} and {candidate.scale}", "the same for both runs")
    if base.judge and candidate.judge and base.judge != candidate.judge:
        raise EvaluationFileError(
            candidate.name,
            f"The settings of scorer {base.metric} differ from those of {base.name}. Score both runs alike.",
        )
    first, second = keys(base, [candidate]), keys(candidate, [base])
    place = {key: number for number, key in enumerate(second)}
    both = [(i, place[key]) for i, key in enumerate(first) if key in place]
    if not both:
        raise EvaluationFileError(
            candidate.name,
            f"None of its items is in {base.name} (it has {shown(candidate.items)}, not {shown(base.items)}). "
            "Pass runs of one set, or name the field that identifies items by item=.",
        )
    every = len(first) + len(second) - len(both)
    used = [(i, j) for i, j in both if not (math.isnan(base.values[i]) or math.isnan(candidate.values[j]))]
    _check_contents(base, candidate, used)
    _check_errors(base, candidate, allow_missing)
    if 100.0 * (every - len(used)) > allow_missing * every:
        lost = f"{every - len(used)} of {every} items have no score in both runs"
        sizes = f"({base.name} has {len(base)} items, {candidate.name} {len(candidate)})"
        advice = _missing_advice(base, candidate, first, second, 100.0 * (every - len(used)) / every)
        raise EvaluationFileError(candidate.name, f"{lost} {sizes}. {advice}.")
    left, right = np.array([i for i, _ in used]), np.array([j for _, j in used])
    names = tuple(base.items[i] for i, _ in used)
    differences = candidate.values[right] - base.values[left]
    groups, clustered = _groups(base, candidate, used, names)
    tags = None if base.tags is None else tuple(base.tags[i] for i, _ in used)
    binary = base.binary and candidate.binary if binary is None else binary
    two_valued = base.two_valued and candidate.two_valued
    missing = every > len(used) or bool(base.missing[left].any() or candidate.missing[right].any())
    worst = _worst(base, candidate, first, second, clustered, binary) if missing else None
    return Pairs(names, differences, groups, clustered, binary, two_valued, tags, every - len(used), worst)


def _worst(
    base: Scores, candidate: Scores, first: list[str], second: list[str], clustered: bool, binary: bool
) -> Pairs:
    """Return all items of either run, with missing scores at their worst for the candidate."""
    highest, lowest = _filled(base, first, 1.0), _filled(candidate, second, 0.0)
    every = list(highest | lowest)
    differences = np.array([lowest.get(key, 0.0) - highest.get(key, 1.0) for key in every])
    units = dict(zip(second, candidate.clusters or second, strict=True))
    units |= dict(zip(first, base.clusters or first, strict=True))
    _, groups = np.unique(np.array([units[key] for key in every]), return_inverse=True)
    return Pairs(tuple(every), differences, np.asarray(groups), clustered, binary, False, None, 0)


def _filled(scores: Scores, names: list[str], missing: float) -> dict[str, float]:
    """Return each item's mean with its missing samples at a given score."""
    totals = np.where(scores.samples > 0, np.nan_to_num(scores.values), 0.0) * scores.samples + missing * scores.missing
    return dict(zip(names, (totals / (scores.samples + scores.missing)).tolist(), strict=True))


def _check_contents(base: Scores, candidate: Scores, used: list[tuple[int, int]]) -> None:
    changed = [
        base.items[i]
        for i, j in used
        if base.contents[i] and candidate.contents[j] and base.contents[i] != candidate.contents[j]
    ]
    if changed:
        raise EvaluationFileError(
            candidate.name,
            f"Item {changed[0]!r} has other content than in {base.name} ({len(changed)} such items). "
            "Run both on the same set.",
        )


def _check_errors(base: Scores, candidate: Scores, allow_missing: float) -> None:
    for scores in (base, candidate):
        total = scores.errors + int(scores.samples.sum())
        if 100.0 * scores.errors > allow_missing * total:
            lost = [item for item, missing in zip(scores.items, scores.missing, strict=True) if missing]
            # the base may be a guard's secret: a message names no item of it
            where = f", at items {shown(lost)}" if scores is candidate else ""
            raise EvaluationFileError(
                scores.name,
                f"{scores.errors} of {total} samples have no score{where}. Run them again"
                f"{_allowing(100.0 * scores.errors / total)}.",
            )


def _missing_advice(base: Scores, candidate: Scores, first: list[str], second: list[str], percent: float) -> str:
    """Return the probable mistake where items of one run are not in the other, with an example from each side."""
    lost, added = _alone(base, first, second), _alone(candidate, second, first)
    if base.known_as is not None:  # a guarded set, whose items a message does not name
        lost = []
    if not added:
        return f"Run the missing ones{f', such as {lost[0]!r}' if lost else ''}{_allowing(percent)}"
    ours = f"Only {base.name} has {lost[0]!r}, and only" if lost else "Only"
    return (
        f"{ours} {candidate.name} has {added[0]!r}. Pass runs of the same items, or name the field that identifies "
        f"items by item={_allowing(percent)}"
    )


def _alone(run: Scores, own: list[str], others: list[str]) -> list[str]:
    """Return the items of a run whose keys another run lacks."""
    known = set(others)
    return [item for item, key in zip(run.items, own, strict=True) if key not in known]


def _allowing(percent: float) -> str:
    """Return the advice to allow this percentage, where the verdict still means something."""
    return f", or pass allow_missing={math.ceil(percent)}" if percent <= _MOST_MISSING else ""


def _groups(
    base: Scores, candidate: Scores, used: list[tuple[int, int]], names: tuple[str, ...]
) -> tuple[NDArray[np.int64], bool]:
    if base.clusters is None and candidate.clusters is None:
        return np.arange(len(used)), False
    if base.clusters is None or candidate.clusters is None:
        raise InputError("cluster", "clusters in one run only", "the same field for both runs")
    for (i, j), name in zip(used, names, strict=True):
        if base.clusters[i] != candidate.clusters[j]:
            raise EvaluationFileError(
                candidate.name,
                f"Item {name!r} is in cluster {candidate.clusters[j]!r}, but in {base.clusters[i]!r} in {base.name}. "
                "Name a field that is equal in both runs by cluster=.",
            )
    _, groups = np.unique(np.array([base.clusters[i] for i, _ in used]), return_inverse=True)
    return np.asarray(groups), True
