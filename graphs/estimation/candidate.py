"""A model that a diagnosis fitted, and what it would cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphs.errors import RouteUnavailable
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

    def half_width(self, confidence: float) -> float:
        """Return the half-width of one question that was fixed in advance: an accuracy, whatever it is.

        sqrt(Lambda ln(2 / beta) / (2 n)), with beta = 1 - confidence less the probability that fitted limits fail; 1
        where nothing is left of beta.

        Examples
        --------
        >>> from graphs import Independent
        >>> round(Candidate("independent", Independent(800)).half_width(0.95), 4)
        0.048
        """
        beta = 1.0 - confidence - self.model.fit_failure
        if not beta > 0:
            return 1.0
        return min(math.sqrt(self.model.variance_inflation() * math.log(2 / beta) / (2 * self.model.n)), 1.0)

    def records_for(self, half_width: float, confidence: float) -> float:
        """Return how many records of this kind give a half-width, when the variance inflation stays what it is.

        Infinite where all records hang together as one group, so that more of them need not help.
        """
        inflation, n = self.model.variance_inflation(), self.model.n
        beta = 1.0 - confidence - self.model.fit_failure
        if not beta > 0 or inflation >= n:
            return math.inf
        return math.ceil(inflation * math.log(2 / beta) / (2 * half_width**2))
