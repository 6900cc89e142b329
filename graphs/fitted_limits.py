"""The family of laws and the failure probability of a model fitted by confidence limits."""

from __future__ import annotations

from dataclasses import dataclass

from graphs.errors import ArgumentError

__all__ = ["FittedLimits"]


@dataclass(frozen=True, slots=True)
class FittedLimits:
    """Upper confidence limits on which a fitted model rests: `DependenceModel.fitted_limits`.

    Attributes
    ----------
    family : str
        Family of laws for which the limits are exact, in words.
    count : int
        Number of values that the model was fitted to.
    failure : float
        Probability with which the limits may fail, over the draw of these values.
    """

    family: str
    count: int
    failure: float

    def __post_init__(self) -> None:
        if not isinstance(self.failure, float) or not 0.0 <= self.failure <= 1.0:
            raise ArgumentError("failure", repr(self.failure), "a probability from 0 to 1")

    @property
    def words(self) -> str:
        """The guarantee's condition, to be read after "the promise is"."""
        return (
            f"for laws of this family: {self.family}; that limits fitted to {self.count:,} values, of which the "
            f"records have to be independent, fail has a probability of at most {self.failure:g}, which is counted"
        )
