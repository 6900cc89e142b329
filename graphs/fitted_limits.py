"""What a fitted model says of itself: its family, and how likely its limits are to fail."""

from __future__ import annotations

from dataclasses import dataclass

from graphs.errors import ArgumentError

__all__ = ["FittedLimits"]


@dataclass(frozen=True, slots=True)
class FittedLimits:
    """Upper confidence limits on which a fitted model rests.

    Parameters
    ----------
    family : str
        The laws for which the limits are exact, in words.
    count : int
        Number of values that they were fitted to.
    failure : float
        Probability with which they may not hold, over the draw of those values.

    Raises
    ------
    ArgumentError
        For what is no probability.

    Examples
    --------
    >>> FittedLimits("series of one kind", 500, 0.01).words[:44]
    'for laws of this family: series of one kind;'
    """

    family: str
    count: int
    failure: float

    def __post_init__(self) -> None:
        if not isinstance(self.failure, float) or not 0.0 <= self.failure <= 1.0:
            raise ArgumentError("failure", repr(self.failure), "a probability, from 0 to 1")

    @property
    def words(self) -> str:
        """What is promised, to be read after "the promise is"."""
        return (
            f"for laws of this family: {self.family}; that limits fitted to {self.count:,} values, of which the "
            f"records have to be independent, fail has a probability of at most {self.failure:g}, which is counted"
        )
