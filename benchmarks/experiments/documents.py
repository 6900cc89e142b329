"""Numbers in pages that come from experiments.

``results/quoted_PAGE.txt`` has the passages of a page that quote results, one a line and in the page's order, with
``{experiment.quantity}`` in place of each number. A number followed by % is a hundredth of its value. It agrees when
it is within three standard errors and half a unit of its last digit of the result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_KEY = re.compile(r"\{([\w.]+)\}")
_NUMBER = r"(?:\*\*|`)?([-+\N{MINUS SIGN}]?\d[\d,]*(?:\.\d+)?(?:\s*%)?)(?!\.?\d)"


class Quoted(NamedTuple):
    """A number in a text, the result that it quotes, and the largest error of its rounding."""

    key: str
    value: float
    rounding: float


def quoted(text: str, passages: str) -> Iterator[Quoted]:
    r"""Find the numbers of all passages in a text, in their order; line breaks in the text count as spaces.

    Raises
    ------
    ValueError
        When a passage names no number, or the text does not have it behind the passage before.

    Examples
    --------
    >>> list(quoted("Optimism is 0.25\nor so.", "Optimism is {feature_selection.optimism_guard} or so"))
    [Quoted(key='feature_selection.optimism_guard', value=0.25, rounding=0.005)]
    """
    whole, place = " ".join(text.split()), 0
    for passage in passages.splitlines():
        literal, *rest = _KEY.split(passage)
        keys, literals = rest[::2], rest[1::2]
        pattern = re.escape(literal) + "".join(_NUMBER + re.escape(part) for part in literals)
        found = re.compile(pattern).search(whole, place)
        if not keys or found is None:
            raise ValueError(f"{passage!r} names no number, or the text does not have it behind the passage before")
        place = found.end()
        for key, shown in zip(keys, found.groups(), strict=True):
            scale = 0.01 if shown.endswith("%") else 1.0
            number = shown.rstrip("% ").replace(",", "").replace("\N{MINUS SIGN}", "-")
            digits = len(number.partition(".")[2])
            yield Quoted(key, scale * float(number), 0.5 * scale * 10.0**-digits)


def disagreements(text: str, passages: str, results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say which quoted numbers differ from the results by more than their stated errors.

    Examples
    --------
    >>> results = {"a.b": {"value": 0.30, "se": 0.01}}
    >>> disagreements("It is 0.32, later 0.34.", "It is {a.b}, later {a.b}.", results)
    ['a.b: the text says 0.34, the result is 0.3 +- 0.01']
    """
    found = []
    for key, value, rounding in quoted(text, passages):
        if key not in results:
            found.append(f"{key}: there is no such result")
            continue
        known, error = float(results[key]["value"]), float(results[key]["se"])
        if not (math.isfinite(error) and abs(value - known) <= 3.0 * error + rounding * (1 + 1e-9) + 1e-12):
            found.append(f"{key}: the text says {value:g}, the result is {known:g} +- {error:g}")
    return found
