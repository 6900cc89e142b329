"""Numbers in texts that come from experiments: ``<!-- experiment: coverage.broken -->0.003`` names its source.

The comment stands right before the number. A number followed by % is a hundredth of what is shown. It agrees when it is
within three standard errors and half a unit of its last digit of the result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

MARK = re.compile(r"<!--\s*experiment:\s*(?P<key>[\w.]+)\s*-->")
NUMBER = re.compile(r"\s*(?:\*\*|`)?(?P<number>[-+\N{MINUS SIGN}]?\d[\d,]*(?:\.(?P<digits>\d+))?)\s*(?P<percent>%)?")


class Marked(NamedTuple):
    """A number in a text, where it says to come from, and what rounding may have done to it."""

    key: str
    value: float
    rounding: float


def marked(text: str) -> Iterator[Marked]:
    """Find all numbers with a mark.

    Raises
    ------
    ValueError
        When no number follows a mark, or a mark is not readable.

    Examples
    --------
    >>> list(marked("Optimism <!-- experiment: feature_selection.optimism_guard -->0.25 or so"))
    [Marked(key='feature_selection.optimism_guard', value=0.25, rounding=0.005)]
    """
    if len(re.findall(r"<!--\s*experiment", text)) != len(found := list(MARK.finditer(text))):
        raise ValueError("a mark that is not of the form <!-- experiment: name.quantity -->")
    for mark in found:
        number = NUMBER.match(text, mark.end())
        if number is None:
            raise ValueError(f"no number follows the mark of {mark['key']}")
        scale = 0.01 if number["percent"] else 1.0
        digits = len(number["digits"] or "")
        value = float(number["number"].replace(",", "").replace("\N{MINUS SIGN}", "-"))
        yield Marked(mark["key"], scale * value, 0.5 * scale * 10.0**-digits)


def disagreements(text: str, results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say which marked numbers differ from the results by more than their stated errors.

    Examples
    --------
    >>> results = {"a.b": {"value": 0.30, "se": 0.01}}
    >>> disagreements("<!-- experiment: a.b -->0.32 and <!-- experiment: a.b -->0.34", results)
    ['a.b: the text says 0.34, the result is 0.3 +- 0.01']
    """
    found = []
    for key, value, rounding in marked(text):
        if key not in results:
            found.append(f"{key}: there is no such result")
            continue
        known, error = float(results[key]["value"]), float(results[key]["se"])
        if not (math.isfinite(error) and abs(value - known) <= 3.0 * error + rounding * (1 + 1e-9) + 1e-12):
            found.append(f"{key}: the text says {value:g}, the result is {known:g} +- {error:g}")
    return found
