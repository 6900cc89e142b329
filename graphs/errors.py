"""Errors of the dependence models.

::

    ArgumentError (ValueError)      an argument that cannot be used
    ├── RouteUnavailable            a route that a model does not have, and what to use instead
    └── TooWide                     a network whose exact tables would be too large
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["ArgumentError", "RouteUnavailable", "TooWide"]


class ArgumentError(ValueError):
    """An argument that cannot be used.

    Parameters
    ----------
    argument : str
        Name of the argument.
    seen : object
        What was given, in few words.
    expected : str
        What would have been accepted, and what to do.

    Attributes
    ----------
    argument, seen, expected
        As given.

    Examples
    --------
    >>> raise ArgumentError("transition", "row 2 sums to 0.97", "each row must sum to 1")
    Traceback (most recent call last):
    graphs.errors.ArgumentError: transition: row 2 sums to 0.97; expected: each row must sum to 1
    """

    def __init__(self, argument: str, seen: object, expected: str) -> None:
        self.argument = argument
        self.seen = seen
        self.expected = expected
        super().__init__(f"{argument}: {seen}; expected: {expected}")

    def __reduce__(self) -> tuple[type[ArgumentError], tuple[str, object, str]]:
        return (type(self), (self.argument, self.seen, self.expected))


class RouteUnavailable(ArgumentError):
    """A route that does not apply to a model.

    Parameters
    ----------
    method : str
        The route that was asked for.
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
        hint = f"one of {', '.join(map(repr, self.alternatives))}" if self.alternatives else "another model"
        super().__init__("method", f"{method!r} is not available: {reason}", hint)

    def __reduce__(self) -> tuple[type[RouteUnavailable], tuple[str, str, tuple[str, ...]]]:  # type: ignore[override]
        return (type(self), (self.method, self.reason, self.alternatives))


class TooWide(ArgumentError):
    """A network whose exact tables would be too large.

    Parameters
    ----------
    entries : int
        Entries of the largest table that is needed.
    limit : int
        Most entries allowed.

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
    factors: a network that needs a table of 2^40.0 entries; expected: at most 2^24.0: ...
    >>> error.width
    40.0
    """

    def __init__(self, entries: int, limit: int) -> None:
        self.entries = entries
        self.limit = limit
        self.width = math.log2(entries)
        seen = f"a network that needs a table of 2^{self.width:.1f} entries"
        super().__init__(
            "factors", seen, f"at most 2^{math.log2(limit):.1f}: fewer loops, smaller factors, or messages"
        )

    def __reduce__(self) -> tuple[type[TooWide], tuple[int, int]]:  # type: ignore[override]
        return (type(self), (self.entries, self.limit))
