"""What is said where something looks like a mistake. Public numbers decide: names, the training part, answers given."""

from __future__ import annotations

import functools
import math
import re
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.errors import InputError, InputTypeError, LikelyMistakeWarning, WideAnswersWarning, outside

if TYPE_CHECKING:
    from thresholdout.certificates import Certificate
    from thresholdout.guard.answer import Answer
    from thresholdout.mechanisms import Mechanism

__all__ = ["check_pair", "data_in_pairs", "named_as_one", "warn_of_columns", "warn_of_gap", "warn_of_width"]

_SCORE: Final = 0.8  # at which widths are looked at: intervals are narrower nearer to 1, and wider in the middle
_WIDE: Final = 0.1  # half-width from which on few differences of models are seen
_USELESS: Final = 0.25  # half-width of an interval over half of the range

_OWNERS: Final = (
    "account|author|child|client|clinic|customer|device|family|hospital|household|member|mother|participant|patient|"
    "person|plate|pupil|school|seller|session|site|speaker|store|student|subject|twin|user|vehicle|vendor|visitor"
)
_OWNER: Final = re.compile(
    rf"^(.*[_. -])?({_OWNERS})s?([_. -]?(id|ids|key|name|nr|no|number|code|uuid|guid))?$|^.*[_. -]?uuid$", re.IGNORECASE
)
_IDENTIFIER: Final = re.compile(r"^(id|.*[_. -]id|.*[a-z]ID|.*Id)$")

_PARTS: Final = tuple(
    f"thresholdout.guard.{name}"
    for name in ("asking", "column_questions", "comparing", "external_releases", "gating", "progress", "searching")
)
"""Modules of classes that are nothing but parts of a guard."""

Given = ParamSpec("Given")
Kind = TypeVar("Kind")


def data_in_pairs(init: Callable[Given, None]) -> Callable[Given, None]:
    """Let a constructor say what to write where X and y come as two arguments."""

    @functools.wraps(init)
    def checked(*given: Given.args, **named: Given.kwargs) -> None:
        if len(given) > 2:  # itself and the holdout
            expected = "a pair: Thresholdout((X, y), train=(X_train, y_train)); all else by name"
            raise InputTypeError("holdout", f"{len(given) - 1} arguments without a name", expected)
        init(*given, **named)

    return checked


def named_as_one(kind: type[Kind]) -> type[Kind]:
    """Let Python's own errors name the class, and not the ancestor that a method stands in."""
    for ancestor in kind.__mro__[1:]:
        for name, member in vars(ancestor).items():
            if isinstance(member, FunctionType) and ancestor.__module__.startswith(_PARTS):
                member.__qualname__ = f"{kind.__name__}.{name}"
    return kind


def check_pair(pair: object, argument: str) -> None:
    """Refuse ``(y, X)``: a pair of numbers whose first piece is one column, and whose second is a table.

    Raises
    ------
    InputError
        When it is one.
    """
    if not isinstance(pair, tuple) or len(pair) != 2:
        return
    first, second = (tuple(getattr(piece, "shape", ())) for piece in pair)
    text = getattr(getattr(pair[0], "dtype", None), "kind", "O") not in "biuf"
    if len(first) == 1 and not text and len(second) == 2 and second[1] > 1:
        seen = f"a pair of one column of numbers and a table of {second[1]} columns"
        raise InputError(argument, seen, "the features first: (X, y)")


def warn_of_width(mechanism: Mechanism[Any, Any], certificate: Certificate, queries: int | None) -> None:
    """Warn where the intervals to come say little.

    Parameters
    ----------
    mechanism : Mechanism
        Of the guard.
    certificate : Certificate
        What its answers are worth.
    queries : int or None
        As declared.
    """
    width = mechanism.first_half_width(_SCORE)
    if width is None:
        width = math.inf if certificate.chosen is None else certificate.expected_half_width(_SCORE)
        if width == math.inf and certificate.chosen is not None:  # it grows with the questions
            return
    if width < _WIDE:
        return
    asked = "any number of questions" if queries is None else f"{queries:,} question{'' if queries == 1 else 's'}"
    size = "nothing is certified" if width == math.inf else f"about ± {shown_above(width, 2)} at a score of {_SCORE:g}"
    paid = "; scores that were seen before (looks=) are part of it" if certificate.looks is not None else ""
    says = "say next to nothing" if width >= _USELESS else "be wide"
    warnings.warn(
        f"the answers of this guard will {says}: {size}, for {asked} to {certificate.records}{paid}. "
        "Narrower are: more records; fewer queries=; questions that are fixed together (score_all); one look at the "
        "end (final_check). thresholdout.plan says by how much",
        WideAnswersWarning,
        stacklevel=outside(),
    )


def warn_of_columns(X: Any) -> None:
    """Warn of columns that say that records belong together, or stand in time; features of the training part."""
    names, index = getattr(X, "columns", None), getattr(X, "index", None)
    if names is None or not hasattr(X, "dtypes"):
        return
    columns = [(name, X[name]) for name in names if isinstance(name, str)]
    named = getattr(index, "name", None)
    if isinstance(named, str):
        columns.append((named, index))
    for name, values in columns:
        if getattr(getattr(values, "dtype", None), "kind", "") == "M":
            seen, declare = "has dates, and no order is declared", f"order={name!r} and window="
            _warn(f"the column {name!r} {seen}: if records near in time are alike, intervals are too narrow; {declare}")
        elif _OWNER.match(name) or _IDENTIFIER.match(name):
            different, size = int(values.nunique()), len(values)
            if 1 < different < size:
                seen = f"{different:,} different values in {size:,} training records, and no groups are declared"
                alike = "if records with one of them are alike, intervals are too narrow"
                _warn(f"the column {name!r} has {seen}: {alike}; groups={name!r}")


def warn_of_gap(answer: Answer, expected: float, records: int | None, *, greater_is_better: bool) -> None:
    """Warn where the holdout is far from a cross-validated training value.

    Parameters
    ----------
    answer : Answer
        About a model or a difference.
    expected : float
        The training value, in the answer's units.
    records : int or None
        Of the training part.
    greater_is_better : bool
        Of the metric.
    """
    spread = answer.upper - answer.lower
    margin = spread * (
        0.02 + (0.0 if not records else 1.5 / math.sqrt(records))
    )  # three deviations of a coin, and more
    low, high = answer.interval
    if low - expected > margin or expected - high > margin:
        better = (low > expected) == greater_is_better
        found = f"at least {shown_below(low, 3)}" if low > expected else f"at most {shown_above(high, 3)}"
        why = (
            "was the model fitted to records of the holdout, or to copies of them?"
            if better
            else "do both parts have the same features in the same order, and are they from one population and time?"
        )
        _warn(
            f"{answer.candidate or answer.name}: the holdout says {found} where the training value is {expected:.3g}; "
            f"{why}"
        )


def _warn(text: str) -> None:
    silent = 'warnings.filterwarnings("ignore", category=thresholdout.LikelyMistakeWarning) silences this'
    warnings.warn(f"{text}. {silent}", LikelyMistakeWarning, stacklevel=outside())
