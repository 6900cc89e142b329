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

__all__ = ["ArgumentError", "RouteUnavailable", "TooWide"]

# Names of types follow "a" in most messages.
_ARTICLE = re.compile(r"^a (?=[aeioAEIO]|nd|un(?!i))")


class ArgumentError(ValueError):
    """An argument that cannot be used.

    Parameters
    ----------
    argument : str
        Name of the argument.
    seen : object
        The value in few words; "nothing" for an argument that is missing.
    expected : str
        The values that are accepted, as a noun phrase.
    advice : str, default ""
        Sentences that say how to get such a value.

    Attributes
    ----------
    argument, seen, expected, advice
        As given.

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
        else:
            fault = f"{argument} must be {expected}; got {_ARTICLE.sub('an ', str(seen))}."
        super().__init__(f"{fault} {advice}" if advice else fault)

    def __reduce__(self) -> tuple[type[ArgumentError], tuple[str, object, str, str]]:
        return (type(self), (self.argument, self.seen, self.expected, self.advice))


class RouteUnavailable(ArgumentError):
    """A route that does not apply to a model.

    Parameters
    ----------
    method : str
        The requested route.
    reason : str
        Why it does not apply.
    alternatives : sequence of str
        Routes that do apply.

    Attributes
    ----------
    method, reason, alternatives
        As given.

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
    """A network whose exact tables would be too large.

    Parameters
    ----------
    entries : int
        Entries of the largest table needed.
    limit : int
        Largest number of entries allowed.

    Attributes
    ----------
    entries, limit
        As given.
    width : float
        Binary logarithm of `entries`: how many binary variables the table has.

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
