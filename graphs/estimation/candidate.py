"""A model that a diagnosis fitted, and what it would cost."""

from __future__ import annotations

from dataclasses import dataclass

from graphs.errors import RouteUnavailable
from graphs.inflation.half_widths import answer_half_width, mean_half_width
from graphs.model import DependenceModel

__all__ = ["Candidate"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fitted model.

    Parameters
    ----------
    name : str
        In few words.
    model : DependenceModel
        The model.
    bic : float
        Bayesian information criterion for the values that were given; missing where there is no likelihood for them.
    p_value : float
        Share of series drawn from the model that are as far from it as the data are; missing where none were drawn.
    preferred : bool
        Whether it is the one of its structure that a diagnosis recommends.
    """

    name: str
    model: DependenceModel
    bic: float = float("nan")
    p_value: float = float("nan")
    preferred: bool = True

    def budget(self, epsilon: float) -> float:
        """Return the privacy budget at a target leakage, 0 where the model leaves none."""
        try:
            return self.model.budget(epsilon)
        except RouteUnavailable:
            return 0.0

    def half_width(self, confidence: float, records: int) -> float:
        """Return the half-width of one question that was fixed in advance, for some records of this kind.

        Examples
        --------
        >>> from graphs import Independent
        >>> round(Candidate("independent", Independent(200)).half_width(0.95, 800), 4)
        0.048
        """
        return mean_half_width(records, self._inflation_of(records), confidence, self.model.fit_failure)

    def noisy_half_width(self, epsilon: float, confidence: float, records: int) -> float:
        """Return the half-width of one answer whose noise keeps a target leakage, for some records of this kind."""
        budget = self.budget(epsilon)
        if not budget > 0.0:
            return 1.0
        inflation = self._inflation_of(records)
        return answer_half_width(records, inflation, budget, confidence, self.model.fit_failure)

    def _inflation_of(self, records: int) -> float:
        """Return the variance inflation, which stays what it is, but where all records are one group."""
        inflation = self.model.variance_inflation()
        return float(records) if inflation >= self.model.n > 1 else inflation
