"""What is said, once, when a guard is made that will not do what its user may expect of it."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Final

from graphs.numerics.rounding import shown_above
from thresholdout.errors import WideAnswersWarning, outside

if TYPE_CHECKING:
    from thresholdout.certificates import Certificate
    from thresholdout.mechanisms import Mechanism

__all__ = ["warn_of_width"]

_SCORE: Final = 0.8  # at which widths are looked at: intervals are narrower nearer to 1, and wider in the middle
_USELESS: Final = 0.25  # half-width of an interval over half of the range


def warn_of_width(mechanism: Mechanism[Any, Any], certificate: Certificate, queries: int | None) -> None:
    """Warn where the intervals to come say next to nothing.

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
    if width < _USELESS:
        return
    asked = "any number of questions" if queries is None else f"{queries:,} question{'' if queries == 1 else 's'}"
    size = "nothing is certified" if width == math.inf else f"about ± {shown_above(width, 2)} at a score of {_SCORE:g}"
    paid = "; scores that were seen before (looks=) are part of it" if certificate.looks is not None else ""
    warnings.warn(
        f"the answers of this guard will say next to nothing: {size}, for {asked} to {certificate.records}{paid}. "
        "Narrower are: more records; fewer queries=; questions that are fixed together (score_all); one look at the "
        "end (final_check). thresholdout.plan says by how much",
        WideAnswersWarning,
        stacklevel=outside(),
    )
