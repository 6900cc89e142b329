"""Comparisons of runs: a difference, its interval, and a verdict."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from thresholdout.errors import InputError, LikelyMistakeWarning, outside
from thresholdout.evaluations.pairing import Pairs, pair
from thresholdout.evaluations.scores import Scores, samples_each

__all__ = ["Difference", "Ranking", "Slice", "check_margin", "diff", "rank"]

SCHEMA: Final = "thresholdout.eval.diff/1"
_POWER: Final = 0.8  # of the test against the smallest drop; the usual choice in the planning of trials
_IDENTICAL: Final = "identical files"
_USUAL_MARGINS: Final = (0.001, 0.2)  # beyond them points and fractions were probably confused
_UNSEEN: Final = 3.0  # rule of three: 0 differing items among n are compatible with a share of 3/n

Verdict = Literal["worse", "not worse", "unclear"]


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice of the items; `worse` is corrected for the number of slices."""

    name: str
    items: int
    difference: float
    low: float
    high: float
    worse: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """Result of `diff`: the difference of two runs, its interval, and a verdict.

    Attributes
    ----------
    base, candidate : str
        Names of the runs.
    metric : str
        Name of the metric.
    items : int
        Number of items that both runs score.
    clusters : int
        Number of clusters of these items. Without declared clusters it equals `items`.
    clustered : bool
        Whether clusters are declared.
    samples : tuple of float
        Mean number of samples per item, of the base and of the candidate.
    errors : tuple of int
        Number of samples without a score, of the base and of the candidate.
    difference : float
        Mean of the candidate minus mean of the base over the items, as a fraction of the range of scores.
    low, high : float
        Ends of the 95 % interval of the difference under a normal approximation: Student's t on cluster totals, with
        one degree of freedom less than clusters.
    verdict : {"worse", "not worse", "unclear"}
        "worse" if the candidate is shown to be worse, "not worse" if a drop by the margin or more is refuted, otherwise
        "unclear". Each is the result of a one-sided test at `level`. Identical files are "not worse" without a test.
    test : str
        Name of the test that gave the verdict. If the verdict is "unclear", the names of both tests. "identical files"
        if nothing was tested.
    margin, level : float
        Margin and level of the tests, as passed to `diff`.
    smallest_drop : float or None
        Approximate smallest drop that would be called "worse" with probability .8. None if no drop can be.
    slices : tuple of Slice
        Difference in each slice of the items, with `worse` corrected for the number of slices. Empty unless `read` was
        given a field ``by=``.
    assumption : str
        Assumption about the metric under which the stated level holds. Empty if none is needed.

    Examples
    --------
    >>> import pandas as pd
    >>> from thresholdout.evaluations import diff, read
    >>> base = pd.DataFrame({"id": range(100), "score": [1] * 80 + [0] * 20})
    >>> candidate = pd.DataFrame({"id": range(100), "score": [1] * 65 + [0] * 35})
    >>> found = diff(read(base), read(candidate))
    >>> found.verdict, found.test, found.difference
    ('worse', 'sign test', -0.15)
    """

    base: str
    candidate: str
    metric: str
    items: int
    clusters: int
    clustered: bool
    samples: tuple[float, float]
    errors: tuple[int, int]
    difference: float
    low: float
    high: float
    verdict: Verdict
    test: str
    margin: float
    level: float
    smallest_drop: float | None
    slices: tuple[Slice, ...] = ()
    assumption: str = ""

    def exit(self, allow_unclear: bool = False) -> int:
        """Return the exit code for a command line or CI: 0 if the candidate passes, 1 for "worse", 3 for "unclear".

        With ``allow_unclear=True`` the code for "unclear" is 0.
        """
        if self.verdict == "unclear":
            return 0 if allow_unclear else 3
        return 1 if self.verdict == "worse" else 0

    def as_dict(self, allow_unclear: bool = False) -> dict[str, Any]:
        """Return the result as a dict for JSON. Differences are fractions of the range of scores."""
        found: dict[str, Any] = {
            "schema": SCHEMA,
            "metric": self.metric,
            "items": self.items,
            "samples": {"base": _whole(self.samples[0]), "candidate": _whole(self.samples[1])},
            "errors": {"base": self.errors[0], "candidate": self.errors[1]},
            "clusters": self.clusters,
            "difference": self.difference,
            "interval": {"low": self.low, "high": self.high, "level": 0.95},
            "verdict": self.verdict,
            "test": self.test,
            "margin": self.margin,
            "smallest_drop": self.smallest_drop,
            "exit": self.exit(allow_unclear),
        }
        if self.assumption:
            found["assumption"] = self.assumption
        if self.slices:
            found["slices"] = [
                {
                    "name": each.name,
                    "items": each.items,
                    "difference": each.difference,
                    "interval": {"low": each.low, "high": each.high, "level": 0.95},
                    "worse": each.worse,
                }
                for each in self.slices
            ]
        return found


@dataclass(frozen=True, slots=True)
class Ranking:
    """Result of `rank`: comparisons of several candidates with one baseline, and the possible ranks of all runs.

    Attributes
    ----------
    differences : tuple of Difference
        Comparison of each candidate with the baseline, the best mean first, each at the level divided by the number of
        candidates.
    ranks : tuple of (str, int, int)
        Name, best rank and worst rank of each run, the baseline first. All ranks are correct at once with probability
        at least 1 - level.

    Examples
    --------
    >>> import pandas as pd
    >>> from thresholdout.evaluations import rank, read
    >>> runs = [pd.DataFrame({"id": range(300), "score": [1] * k + [0] * (300 - k)}) for k in (150, 60, 156)]
    >>> base, *candidates = (read(run) for run in runs)
    >>> [(found.difference < 0, found.verdict) for found in rank(base, candidates).differences]
    [(False, 'not worse'), (True, 'worse')]
    """

    differences: tuple[Difference, ...]
    ranks: tuple[tuple[str, int, int], ...]

    def exit(self, allow_unclear: bool = False) -> int:
        """Return the exit code for a command line or CI: 0 if a candidate passes, 1 if all are worse, 3 otherwise.

        With ``allow_unclear=True`` an unclear candidate passes, too.
        """
        exits = {each.exit(allow_unclear) for each in self.differences}
        return 0 if 0 in exits else 1 if exits == {1} else 3


def diff(
    base: Scores,
    candidate: Scores,
    *,
    margin: float = 0.02,
    level: float = 0.05,
    any_laws: bool = False,
    allow_missing: float = 1.0,
) -> Difference:
    """Compare a candidate's run with a baseline's on the same items.

    The verdict is "worse", "not worse" (by more than a margin) or "unclear". It is valid for one comparison of two runs
    that were not chosen by these scores. Use `rank` for several candidates at once, and `EvaluationGuard` for changes
    that follow one another.

    Parameters
    ----------
    base, candidate : Scores
        Runs of the same set with the same metric, from `read`.
    margin : float, default 0.02
        Largest drop that is acceptable for "not worse", as a fraction of the range of scores.
    level : float, default 0.05
        Largest probability of a wrong "worse", and of a wrong "not worse", each.
    any_laws : bool, default False
        Whether to use distribution-free tests (bets on cluster totals), which assume only that items or clusters are
        independent. If False, runs with one 0/1 score per item and no clusters are compared by exact tests for items of
        one distribution (sign test and trinomial test). For other runs, "worse" is tested by sign flips, which are
        approximate for skewed totals, and "not worse" by bets.
    allow_missing : float, default 1
        Maximum percentage (0 to 100) of items, and of samples of each run, that may lack a score. A "not worse" holds
        for all values of missing scores.

    Returns
    -------
    Difference
        Its `verdict`, and the `difference` of the means with the interval from `low` to `high`.

    Raises
    ------
    EvaluationFileError
        If the runs cannot be compared: they share no items, the content of an item or the settings of the scorer
        differ, or too many scores are missing.
    InputError
        If an argument cannot be used, or if the runs have different metrics or ranges.

    Examples
    --------
    >>> import pandas as pd
    >>> from thresholdout.evaluations import read
    >>> frame = pd.DataFrame({"id": range(200), "score": [1, 0] * 100})
    >>> diff(read(frame), read(frame)).verdict
    'not worse'
    """
    check_margin(margin)
    _check_level(level)
    pairs = pair(base, candidate, allow_missing)
    slices = _slices(pairs, level, any_laws) if pairs.tags is not None else ()
    return _difference(pairs, base, candidate, margin, level, any_laws, slices)


def rank(
    base: Scores,
    candidates: Sequence[Scores],
    *,
    margin: float = 0.02,
    level: float = 0.05,
    any_laws: bool = False,
    allow_missing: float = 1.0,
) -> Ranking:
    """Compare several candidates with a baseline and with each other.

    Parameters
    ----------
    base : Scores
        Baseline run, as returned by `read`.
    candidates : sequence of Scores
        Runs to compare with the baseline, of the same evaluation set and metric. Runs with equal names are numbered.
    margin : float, default 0.02
        Non-inferiority margin: the largest drop that is still reported as "not worse", as a fraction of the range of
        scores.
    level : float, default 0.05
        Family-wise error rate, controlled separately for "worse" verdicts, "not worse" verdicts and ranks.
    any_laws : bool, default False
        Whether to use distribution-free tests (bets on cluster totals), which assume only that items or clusters are
        independent. See `diff`.
    allow_missing : float, default 1
        Maximum percentage (0 to 100) of items, and of samples of each run, that may lack a score.

    Returns
    -------
    Ranking
        Comparisons with the baseline in ``differences``, and the best and worst possible rank of each run in ``ranks``.

    Raises
    ------
    EvaluationFileError
        If two runs cannot be compared, as in `diff`.
    InputError
        If there are no candidates, or if an argument cannot be used.

    Examples
    --------
    >>> import pandas as pd
    >>> from thresholdout.evaluations import read
    >>> frame = pd.DataFrame({"id": range(200), "score": [1, 0] * 100})
    >>> rank(read(frame), [read(frame)]).ranks
    (('the base', 1, 2), ('candidate 1', 1, 2))
    """
    check_margin(margin)
    _check_level(level)
    if not candidates:
        raise InputError("candidates", "an empty sequence", "at least one run")
    if len({run.name for run in (base, *candidates)}) <= len(candidates):
        base = replace(base, name="the base")
        candidates = [replace(run, name=f"candidate {k}") for k, run in enumerate(candidates, 1)]
    each = level / len(candidates)
    differences = [
        _difference(pair(base, candidate, allow_missing), base, candidate, margin, each, any_laws)
        for candidate in candidates
    ]
    runs = [base, *candidates]
    found = []
    for i, first in enumerate(runs):
        for j, second in enumerate(runs):
            if i != j:
                found.append((pair(first, second, allow_missing).log_p_worse(any_laws), i, j))
    above = [0] * len(runs)
    below = [0] * len(runs)
    for worse, better in _holm([p for p, _, _ in found], level, [(j, i) for _, i, j in found]):
        above[worse] += 1
        below[better] += 1
    ranks = tuple((run.name, 1 + above[k], len(runs) - below[k]) for k, run in enumerate(runs))
    differences.sort(key=lambda found: -found.difference)
    return Ranking(tuple(differences), ranks)


def _whole(number: float) -> float:
    return int(number) if number.is_integer() else number


def check_margin(margin: float) -> None:
    """Refuse a margin that is no share of the range, and warn about one that looks like another unit."""
    if not 0.0 < margin < 1.0:
        raise InputError("margin", margin, "between 0 and 1", "Pass 0.02 for a margin of two points.")
    low, high = _USUAL_MARGINS
    if not low <= margin <= high:
        warnings.warn(
            f"The margin is {100.0 * margin:g} points, which is {margin:g} of the range of scores. For two points pass "
            "0.02 in Python and 2 on the command line.",
            LikelyMistakeWarning,
            stacklevel=outside(),
        )


def _check_level(level: float) -> None:
    if not 0.0 < level <= 0.25:
        raise InputError("level", level, "a probability above 0 and at most 0.25")


def _difference(
    pairs: Pairs,
    base: Scores,
    candidate: Scores,
    margin: float,
    level: float,
    any_laws: bool,
    slices: tuple[Slice, ...] = (),
) -> Difference:
    log_level = math.log(level)
    worse_test, margin_test = pairs.tests(any_laws)
    verdict: Verdict = "unclear"
    test = worse_test if worse_test == margin_test else f"{worse_test}; {margin_test}"
    if base.file_digest and base.file_digest == candidate.file_digest and base.fields == candidate.fields:
        verdict, test = "not worse", _IDENTICAL
    elif pairs.log_p_worse(any_laws) <= log_level:
        verdict, test = "worse", worse_test
    elif pairs.not_worse(margin, log_level, any_laws):
        verdict, test = "not worse", margin_test
    low, high = interval(pairs)
    return Difference(
        base.name,
        candidate.name,
        base.metric,
        pairs.differences.size,
        int(pairs.groups.max()) + 1,
        pairs.clustered,
        (samples_each(base), samples_each(candidate)),
        (base.errors, candidate.errors),
        pairs.mean,
        low,
        high,
        verdict,
        test,
        margin,
        level,
        smallest_drop(pairs, log_level, any_laws),
        slices,
        "" if test == _IDENTICAL else pairs.assumption(any_laws),
    )


def interval(pairs: Pairs) -> tuple[float, float]:
    """Return the normal 95 % interval of the mean difference: Student's t on cluster totals."""
    error = pairs.error
    if math.isinf(error):
        return -1.0, 1.0
    from scipy.special import stdtrit

    half = float(stdtrit(int(pairs.groups.max()), 0.975)) * error
    return max(-1.0, pairs.mean - half), min(1.0, pairs.mean + half)


def smallest_drop(pairs: Pairs, log_level: float, any_laws: bool) -> float | None:
    """Return about the drop that is called worse with probability .8; None where the test cannot reach the level."""
    from scipy.special import ndtri

    groups, n = int(pairs.groups.max()) + 1, pairs.differences.size
    # the sign test of k differing clusters, all of them losses, has the p-value 2^-k
    needed = math.ceil(-log_level / math.log(2.0))
    if groups < needed:
        return None
    z = _upper(log_level) if not any_laws else math.sqrt(-2.0 * log_level)
    error = pairs.error
    if error == 0.0:
        # nothing differs: standard error of the sum over _UNSEEN differing clusters of the largest size
        error = math.sqrt(_UNSEEN) / n * float(pairs.sizes.max())
    drop = max((z + float(ndtri(_POWER))) * error, needed / n)
    return drop if drop < 1.0 else None


def _upper(log_level: float) -> float:
    """Return the standard normal quantile with this probability above it."""
    from scipy.special import ndtri_exp

    return -float(ndtri_exp(log_level))


def _slices(pairs: Pairs, level: float, any_laws: bool) -> tuple[Slice, ...]:
    tags = np.array(pairs.tags)
    names = sorted(set(pairs.tags or ()))
    parts = [pairs.part(tags == name) for name in names]
    worse = set(_holm([part.log_p_worse(any_laws) for part in parts], level, names))
    found = []
    for name, part in zip(names, parts, strict=True):
        low, high = interval(part)
        found.append(Slice(name, part.differences.size, part.mean, low, high, name in worse))
    return tuple(found)


def _holm(log_ps: Sequence[float], level: float, names: Sequence[Any]) -> list[Any]:
    """Return the names that Holm's procedure rejects: any false rejection has probability at most the level."""
    order = sorted(range(len(log_ps)), key=lambda k: log_ps[k])
    rejected = []
    for rank, k in enumerate(order):
        if log_ps[k] > math.log(level / (len(order) - rank)):
            break
        rejected.append(names[k])
    return rejected
