"""How wide answers will be at the score that is likely, for each way of asking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from thresholdout.errors import InputError
from thresholdout.limits.binomial import binomial_lower, binomial_upper
from thresholdout.mechanisms.base import Known
from thresholdout.mechanisms.claims.guess import Memory, forecast, learn
from thresholdout.mechanisms.claims.interval import MeanTest, ones
from thresholdout.mechanisms.claims.reading import variance_of
from thresholdout.mechanisms.claims.score import first_window
from thresholdout.mechanisms.precision import check_count, check_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Outlook", "Way", "outlook"]

_USELESS: Final = 0.1  # a half-width that settles nothing between models
_BINARY: Final = Known(binary=True)


@dataclass(frozen=True, slots=True)
class Way:
    """One way of asking.

    Attributes
    ----------
    name : str
        What it is called.
    half_width : float
        Half the length of an interval at the likely score, on the average over the questions.
    needs : str
        What has to be so.
    """

    name: str
    half_width: float
    needs: str


@dataclass(frozen=True)
class Outlook:
    """What answers will be worth.

    Attributes
    ----------
    records, train_records, queries : int
        As given.
    expected, confidence : float
        As given.
    ways : tuple of Way
        Every way of asking, the narrowest first.

    Examples
    --------
    >>> view = outlook(n=1000, queries=100, expected=0.95)
    >>> [(way.name, round(way.half_width, 3)) for way in view.ways]
    [('one final look', 0.014), ('a fixed list', 0.025), ('a guard', 0.042)]
    """

    records: int
    train_records: int
    queries: int
    expected: float
    confidence: float
    ways: tuple[Way, ...]

    @property
    def table(self) -> pd.DataFrame:
        """Every way of asking, one row each: half_width, needs."""
        import pandas as pd

        index = pd.Index([way.name for way in self.ways], name="way")
        return pd.DataFrame(
            [(way.half_width, way.needs) for way in self.ways], index=index, columns=["half_width", "needs"]
        )

    @property
    def recommendation(self) -> str:
        """What to do, in words."""
        widths = {way.name: way.half_width for way in self.ways}
        guard, listed, final = widths["a guard"], widths["a fixed list"], widths["one final look"]
        setting = f"{self.records:,} records and {self.queries:,} questions at a score near {self.expected:g}"
        said = (
            f"{setting}: a guard that may "
            f"be asked adaptively answers within about {guard:.3f}; a list that is fixed before the first answer, "
            f"within {listed:.3f}; one final look, within {final:.3f}."
        )
        if guard > _USELESS:
            said += (
                " That settles little: these are too few records for adaptive questions about single scores. Compare"
            )
            said += " models with each other, cross-validate, and look once at the end."
        elif final < 0.6 * guard:
            said += (
                " Where questions can be fixed in advance, use score_all; where cross-validation can choose, look once."
            )
        if self.train_records < self.records:
            said += " More training records than holdout records would narrow the guard's answers."
        return said

    def __repr__(self) -> str:
        return f"<Outlook: {self.recommendation}>"


def outlook(
    *, n: int, queries: int, expected: float, train_records: int | None = None, confidence: float = 0.95
) -> Outlook:
    """Say how wide intervals will be for questions about right and wrong, at the score that is likely.

    Parameters
    ----------
    n : int
        Independent records in the holdout.
    queries : int
        m.
    expected : float
        The likely score, in (0, 1).
    train_records : int, optional
        Records from which training values come; as many as in the holdout by default.
    confidence : float
        1 - beta.

    Returns
    -------
    Outlook

    Notes
    -----
    *A guard*: what its answers are when all is as expected: claims are confirmed, but for the share that is kept for
    failures, which costs what it costs on the average. Real searches differ by some ten per cent. *A fixed list*:
    exact limits at ``beta/m`` (`Thresholdout.score_all` with ``keep=0``). *One final look*: exact limits at beta.

    Examples
    --------
    >>> outlook(n=10_000, queries=20, expected=0.9).ways[-1].half_width < 0.02
    True
    """
    records, asked = check_count("n", n), check_count("queries", queries)
    training = records if train_records is None else check_count("train_records", train_records)
    below = math.nextafter(1.0, 0.0)
    score = check_number("expected", expected, 0.0, below, "a score in (0, 1)")
    beta = 1.0 - check_number("confidence", confidence, 0.0, below, "a number in (0, 1)")
    if score * records < 1.0:
        raise InputError("expected", expected, f"a score that {records} records can show: at least {1 / records:g}")
    ways = (
        Way("one final look", _exact(records, score, math.log(beta / 2.0)), "cross-validation chooses; one question"),
        Way("a fixed list", _exact(records, score, math.log(beta / (2.0 * asked))), "all questions fixed beforehand"),
        Way("a guard", _adaptive(records, training, asked, score, beta), "nothing; any question at any time"),
    )
    return Outlook(records, training, asked, score, 1.0 - beta, tuple(sorted(ways, key=lambda way: way.half_width)))


def _exact(n: int, score: float, log_level: float) -> float:
    count = round(n * score)
    return 0.5 * (binomial_upper(count, n, log_level) - binomial_lower(count, n, log_level))


def _adaptive(n: int, training: int, queries: int, score: float, beta: float) -> float:
    """Follow a guard through questions that are all answered as expected, and average the half-widths."""
    claim, memory, log_risk, total = MeanTest(n, 0, ones(n)), Memory(), math.log(beta), 0.0
    variance = variance_of(score, _BINARY, n)
    for asked in range(queries):
        made = forecast(memory, score, variance, n, training)
        window = first_window(made.mean * n, made.deviation * n, n, asked, None)
        log_risk += math.log1p(-window.share)
        low, high = claim.interval(window.lo, window.hi, log_risk, ())
        total += 0.5 * (high - low)
        log_risk -= window.share * math.log(2.0 / window.share)
        memory = learn(memory, made, (window.lo - 0.5) / n, (window.hi + 0.5) / n)
    return total / queries
