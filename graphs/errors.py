"""Errors of the dependence models.

::

    ArgumentError (ValueError)      an argument that cannot be used
    ├── RouteUnavailable            a route that a model does not have, with alternatives
    └── TooWide                     a network whose exact tables would be too large
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

__all__ = ["ArgumentError", "RouteUnavailable", "TooWide", "amount"]

# Names of types follow "a" in most messages.
_ARTICLE = re.compile(r"^a (?=[aeioAEIO]|ndarray|un(?!i))")


def amount(number: int, noun: str) -> str:
    """Return a number with its noun for a message: 1 query, 1,200 queries."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


class ArgumentError(ValueError):
    """Raised when an argument cannot be used.

    It is a `ValueError`, and the base class of all errors of `graphs`. The message states which values are accepted and
    which value was passed.

    Parameters
    ----------
    argument : str
        Name of the argument.
    seen : object
        Short description of the value that was passed, "nothing" if the argument is missing, or "unknown" if no such
        argument exists.
    expected : str
        The values that are accepted, as a noun phrase.
    advice : str, default ""
        Further sentences on how to obtain an accepted value.

    Attributes
    ----------
    argument : str
        Name of the argument.
    seen : object
        Description of the value that was passed.
    expected : str
        The values that are accepted.
    advice : str
        Further sentences, or an empty string.

    Examples
    --------
    >>> raise ArgumentError("transition", "row 2, whose sum is 0.97", "a table whose rows have the sum 1")
    Traceback (most recent call last):
    graphs.errors.ArgumentError: transition must be a table whose rows have the sum 1; got row 2, whose sum is 0.97.
    """

    def __init__(self, argument: str, seen: object, expected: str, advice: str = "") -> None:
        self.argument = argument
        self.seen = seen
        self.expected = expected
        self.advice = advice
        if seen == "nothing":
            fault = f"{argument} is missing: pass {expected}."
        elif seen == "unknown":
            fault = f"{argument} is not {expected}."
        else:
            fault = f"{argument} must be {expected}; got {_ARTICLE.sub('an ', str(seen))}."
        super().__init__(f"{fault} {advice}" if advice else fault)

    def __reduce__(self) -> tuple[type[ArgumentError], tuple[str, object, str, str]]:
        return (type(self), (self.argument, self.seen, self.expected, self.advice))


class RouteUnavailable(ArgumentError):
    """Raised when a requested route to a bound does not apply to a model.

    Models compute leakages, budgets and variance inflations by several routes, selected with `method=`. Catch this
    error to try another route, or pass ``method="best"``.

    Parameters
    ----------
    method : str
        Name of the requested route.
    reason : str
        Why the route does not apply.
    alternatives : sequence of str, default ()
        Names of routes that do apply.

    Attributes
    ----------
    method : str
        Name of the requested route.
    reason : str
        Why the route does not apply.
    alternatives : tuple of str
        Names of routes that do apply.

    Examples
    --------
    >>> from graphs import Groups
    >>> try:
    ...     Groups([0, 0, 1]).leakage(0.1, method="spectral-published")
    ... except RouteUnavailable as error:
    ...     print(error.method, error.alternatives)
    spectral-published ('best', 'group')
    """

    def __init__(self, method: str, reason: str, alternatives: Sequence[str] = ()) -> None:
        self.method = method
        self.reason = reason
        self.alternatives = tuple(alternatives)
        if len(self.alternatives) > 1:
            hint = f"one of {', '.join(map(repr, self.alternatives))}"
        else:
            hint = repr(self.alternatives[0]) if self.alternatives else "that of another model"
        super().__init__("method", f"{method!r}, which is not available: {reason}", hint)

    def __reduce__(self) -> tuple[type[RouteUnavailable], tuple[str, str, tuple[str, ...]]]:  # type: ignore[override]
        return (type(self), (self.method, self.reason, self.alternatives))


class TooWide(ArgumentError):
    """Raised when exact computations on a network would need tables that are too large.

    Exact marginals of a `FactorGraph` or `BayesianNetwork` use variable elimination, whose tables grow exponentially
    with the treewidth of the network. Bounds by messages (``method="messages"``) need no such tables.

    Parameters
    ----------
    entries : int
        Number of entries of the largest table that is needed.
    limit : int
        Largest number of entries that is allowed.

    Attributes
    ----------
    entries : int
        Number of entries of the largest table that is needed.
    limit : int
        Largest number of entries that is allowed.
    width : float
        Binary logarithm of `entries`, the number of binary variables in such a table.

    Examples
    --------
    >>> error = TooWide(2**40, 2**24)
    >>> print(error)
    factors must be a network whose tables have at most 2^24.0 entries; got one that needs 2^40.0. Use ...
    >>> error.width
    40.0
    """

    def __init__(self, entries: int, limit: int) -> None:
        self.entries = entries
        self.limit = limit
        self.width = math.log2(entries)
        super().__init__(
            "factors",
            f"one that needs 2^{self.width:.1f}",
            f"a network whose tables have at most 2^{math.log2(limit):.1f} entries",
            "Use fewer loops, smaller factors, or the route by messages.",
        )

    def __reduce__(self) -> tuple[type[TooWide], tuple[int, int]]:  # type: ignore[override]
        return (type(self), (self.entries, self.limit))
