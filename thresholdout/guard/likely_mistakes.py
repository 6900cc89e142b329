"""Warnings of likely mistakes, from public values alone: names, the training part, answers given."""

from __future__ import annotations

import functools
import inspect
import math
import re
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, ParamSpec

import numpy as np

from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.errors import InputError, InputTypeError, LikelyMistakeWarning, WideAnswersWarning, outside

if TYPE_CHECKING:
    from thresholdout.certificates import Certificate
    from thresholdout.guard.answer import Answer
    from thresholdout.mechanisms import Mechanism

__all__ = [
    "check_pair",
    "checked_call",
    "warn_of_classes",
    "warn_of_columns",
    "warn_of_gap",
    "warn_of_labels",
    "warn_of_verdict",
    "warn_of_width",
]

_SCORE: Final = 0.8  # score whose half-width is judged: intervals are narrower nearer to 1, and wider in the middle
_WIDE: Final = 0.1  # half-width from which on few differences of models are detected
_USELESS: Final = 0.25  # half-width of an interval over half of the range

_OWNERS: Final = (
    "account|author|child|client|clinic|customer|device|family|hospital|household|member|mother|participant|patient|"
    "person|plate|pupil|school|seller|session|site|speaker|store|student|subject|twin|user|vehicle|vendor|visitor"
)
_OWNER: Final = re.compile(
    rf"^(.*[_. -])?({_OWNERS})s?([_. -]?(id|ids|key|name|nr|no|number|code|uuid|guid))?$|^.*[_. -]?uuid$", re.IGNORECASE
)
_FEW: Final = 300  # records below which even a single evaluation is too wide for most differences of models
_SAMPLE: Final = 10_000  # records from which the kind of a column is inferred
_FORESEEN: Final = (0.05, 0.99999)
"""Probabilities beyond which a verdict is unexpected. Gates evaluate the holdout from 0.0003 on. The best of many
candidates looks better in cross-validation than it is, so the upper one is close to 1."""

_IDENTIFIER: Final = re.compile(r"^(id|.*[_. -]id|.*[a-z]ID|.*Id)$")

_ALIKE: Final = (
    "Do both parts have the same features in the same order and the same classes, and are they from one population "
    "and time?"
)
_SEEN: Final = "Was the model fitted to records of the holdout, or to copies of them?"

Given = ParamSpec("Given")


def checked_call(call: str, **instead: str) -> Callable[[Callable[Given, None]], Callable[Given, None]]:
    """Make a constructor explain its positional arguments, and name all of them where one is unknown."""

    def checks(init: Callable[Given, None]) -> Callable[Given, None]:
        known = inspect.signature(init).parameters
        _, *positional = [each.name for each in known.values() if each.kind is each.POSITIONAL_OR_KEYWORD]

        @functools.wraps(init)
        def checked(*given: Given.args, **named: Given.kwargs) -> None:
            if len(given) > 1 + len(positional):
                one = "one argument, a pair" if len(positional) == 1 else f"passed with {positional[-1]} alone"
                advice = f"Write {call}, with all other arguments by name."
                raise InputTypeError(positional[0], f"{len(given) - 1} positional arguments", one, advice)
            for name in named:
                if name not in known:
                    near = get_close_matches(name, known, 1)
                    meant = f"Did you mean {near[0]}=? " if near else ""
                    advice = instead.get(name) or f"{meant}The arguments are {', '.join(list(known)[1:])}."
                    raise InputTypeError(name, "unknown", f"an argument of {call.partition('(')[0]}", advice)
            init(*given, **named)

        return checked

    return checks


def check_pair(pair: object, argument: str) -> None:
    """Refuse ``(y, X)``: a column before a table of features."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        return
    first, second = (tuple(getattr(piece, "shape", ())) for piece in pair)
    if len(second) != 2 or not (len(first) == 1 or (len(first) == 2 and first[1] == 1)):
        return
    number = getattr(getattr(pair[0], "dtype", None), "kind", "O") in "biuf"
    if (len(first) == 1 and number and second[1] > 1) or (_like_labels(pair[0]) and _like_features(pair[1])):
        columns = "1 column" if second[1] == 1 else f"{second[1]} columns"
        seen = f"a column of {'numbers' if number else 'labels'} before a table of {columns}"
        raise InputError(argument, seen, "a pair (X, y), with the features first")


def _like_labels(column: Any) -> bool:
    """Whether a column has no fractions, and most of its first values occur more than once."""
    values = np.asarray(column[:_SAMPLE]).ravel()
    return values.dtype.kind != "f" and 2 * len(set(values.tolist())) <= values.size


def _like_features(table: Any) -> bool:
    """Whether a table has fractions among its first rows; labels of several outputs are usually integers."""
    values = np.asarray(table[:_SAMPLE])
    return values.dtype.kind == "f" and bool((values[np.isfinite(values)] % 1.0 != 0.0).any())


def warn_of_width(mechanism: Mechanism[Any, Any], certificate: Certificate, queries: int | None, records: int) -> None:
    """Warn if intervals will be wide, or if there are few records."""
    width = mechanism.first_half_width(_SCORE)
    if width is None:
        width = math.inf if certificate.chosen is None else certificate.expected_half_width(_SCORE)
        if width == math.inf and certificate.chosen is not None:  # the width grows without limit with the queries
            return
    if width < _WIDE and records >= _FEW:
        return
    asked = "any number of queries" if queries is None else f"{queries:,} {'query' if queries == 1 else 'queries'}"
    size = "nothing is certified" if width == math.inf else f"about ± {shown_above(width, 2)} at a score of {_SCORE:g}"
    paid = ", and scores that were seen before (prior_queries=)" if certificate.prior_queries is not None else ""
    says = "useless" if width >= _USELESS else "wide"
    warnings.warn(
        f"The intervals of this guard will be {says}: {size}, for {asked} to {certificate.records}{paid}. "
        "They are narrower with more records, with fewer queries=, and in Python for a batch of queries (score_all) or "
        "one final check (final_check). `thresholdout plan` computes by how much.",
        WideAnswersWarning,
        stacklevel=outside(),
    )


def warn_of_columns(X: Any, time_order: str = "dependence=TimeOrder({!r}, window=...)") -> None:
    """Warn of training columns that suggest groups of records or a time order."""
    names, index = getattr(X, "columns", None), getattr(X, "index", None)
    if names is None or not hasattr(X, "dtypes"):
        return
    columns = [(name, X[name]) for name in names if isinstance(name, str)]
    named = getattr(index, "name", None)
    if isinstance(named, str):
        columns.append((named, index))
    for name, values in columns:
        if getattr(getattr(values, "dtype", None), "kind", "") == "M":
            seen, declare = "has dates, and no order is declared", time_order.format(name)
            alike = "Intervals are too narrow if records near in time are alike"
            _warn(f"The column {name!r} {seen}. {alike}; then pass {declare}.")
        elif _OWNER.match(name) or _IDENTIFIER.match(name):
            different, size = int(values.nunique()), len(values)
            if different == size > 1 and _OWNER.match(name):
                seen = "has a different value in each training record, and no groups are declared"
                shared = "If the holdout has some of these values, too, answers do not hold for new ones"
                _warn(f"The column {name!r} {seen}. {shared}; groups={name!r} refuses such parts.")
            elif 1 < different < size:
                seen = f"{different:,} different values in {size:,} training records, and no groups are declared"
                alike = "Intervals are too narrow if records with the same value are alike"
                _warn(f"The column {name!r} has {seen}. {alike}; then pass groups={name!r}.")


def warn_of_classes(train: Any, holdout: Any) -> None:
    """Warn of classes that the type of the holdout's labels declares and no training record has."""
    declared = getattr(getattr(holdout, "dtype", None), "categories", None)
    if declared is None:
        return
    found = set(np.unique(np.asarray(train)).tolist())
    missing = [one for one in declared if one not in found]
    if missing:
        names = ", ".join(map(repr, missing[:3])) + (", ..." if len(missing) > 3 else "")
        _warn(
            f"The labels of the holdout are declared to have classes that no training record has: {names}. A model "
            "that was fitted to these never predicts them. If none occurs, call y.cat.remove_unused_categories()."
        )


def warn_of_labels(seen: str) -> None:
    """Warn of dependence among training labels beyond the declared one, if any was found."""
    if seen:
        _warn(seen)


def warn_of_verdict(name: str, foreseen: float, *, confirmed: bool) -> None:
    """Warn of a verdict that the training part made unlikely."""
    if confirmed and foreseen < _FORESEEN[0]:
        seen, why = f"was confirmed, with a predicted probability of {foreseen:.1g} from cross-validation", _SEEN
    elif not confirmed and foreseen > _FORESEEN[1]:
        seen, why = "was not confirmed, although cross-validation predicted it with certainty", _ALIKE
    else:
        return
    _warn(f"{name} {seen}. {why}")


def warn_of_gap(answer: Answer, expected: float, records: int | None, *, greater_is_better: bool) -> None:
    """Warn if the holdout's interval is far from a cross-validated training value, both in the answer's units."""
    spread = answer.upper - answer.lower
    # Three standard deviations of a mean of values in the range, and 2 % for differences between folds and the whole.
    margin = spread * (0.02 + (0.0 if not records else 1.5 / math.sqrt(records)))
    low, high = answer.interval
    if low - expected > margin or expected - high > margin:
        better = (low > expected) == greater_is_better
        found = f"at least {shown_below(low, 3)}" if low > expected else f"at most {shown_above(high, 3)}"
        named = answer.candidate or answer.name
        _warn(
            f"{named} is {found} on the holdout, and {expected:.3g} on the training part. {_SEEN if better else _ALIKE}"
        )


def _warn(text: str) -> None:
    silent = 'warnings.filterwarnings("ignore", category=thresholdout.LikelyMistakeWarning) silences this warning.'
    warnings.warn(f"{text} {silent}", LikelyMistakeWarning, stacklevel=outside())
