"""What a certificate is about: a dependence model and a guard's public parameters."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from thresholdout.certificates.largest_error import LargestError
from thresholdout.data.arguments import as_float
from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms import SparseVectorMechanism, SparseVectorParameters, interaction_epsilon, noise_slack

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["Setting", "check_confidence", "check_model", "declared_confidence", "within_limits"]


class Setting:
    """A model, a guard's parameters and a confidence, checked; derived quantities are computed once.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other, given what the analyst knows at the start.
    parameters : SparseVectorParameters
        Of the mechanism, in units of the query's range.
    confidence : float
        1 - beta, in (0, 1).

    Attributes
    ----------
    n : int
        Number of records.
    queries, budget : int or None
        Limits of the guard; no more answers come from the holdout than there are questions.
    beta : float
        1 - confidence.
    slack : float
        What integer and floating-point arithmetic add to an answer's error.
    levels : int
        K: how many values an answer from the holdout can take. Without an answer grid these are the points of the
        noise grid in [0, 1].

    Examples
    --------
    >>> from graphs import Independent
    >>> parameters = SparseVectorParameters(0.04, 0.001, budget=10, queries=100, grid=1 / 64)
    >>> setting = Setting(Independent(1000), parameters, 0.95)
    >>> setting.levels, setting.inflation, round(setting.epsilon, 3)
    (65, 1.0, 22.5)
    """

    def __init__(self, model: DependenceModel, parameters: SparseVectorParameters, confidence: float) -> None:
        self.model = check_model(model)
        self.parameters = parameters
        self.confidence = check_confidence(confidence)
        self.n = model.n
        self.queries, self.budget = parameters.queries, parameters.budget
        if self.queries is not None and self.budget is not None:
            self.budget = min(self.queries, self.budget)
        self.beta = 1.0 - self.confidence
        self.slack = noise_slack(self.n, parameters.noise_scale)
        grid = parameters.levels
        self.levels = round(1.0 / SparseVectorMechanism(parameters).resolution) + 1 if grid is None else grid

    @cached_property
    def inflation(self) -> float:
        """Lambda of the model, from 1 to n; n means that nothing is known."""
        return self.model.variance_inflation()

    @cached_property
    def epsilon(self) -> float:
        """Privacy eps' of the whole interaction about one record, nats; ``inf`` without a budget."""
        return interaction_epsilon(self.n, self.parameters.noise_scale, self.budget, self.parameters.ratios)

    @property
    def law(self) -> LargestError:
        """Law of the largest error that the noise causes, for sigma = 1; a budget must be declared."""
        assert self.budget is not None
        return LargestError(self.budget, self.parameters.ratios)

    def undeclared(self) -> str:
        """Return which limits are not declared, in words; empty when both are."""
        missing = [name for name in ("queries", "budget") if getattr(self, name) is None]
        return f"no limit is declared for {' and '.join(missing)}" if missing else ""


def leakage(
    model: DependenceModel, epsilon: float, adversary: Literal["informed", "uninformed"], method: str = "best"
) -> NDArray[np.float64]:
    """Leakage of an epsilon-DP mechanism; shape (n,), or (1,) when the records are independent.

    Examples
    --------
    >>> from graphs import Independent
    >>> leakage(Independent(10**12), 0.1, "informed")
    array([0.1])
    """
    from graphs import Independent

    if isinstance(model, Independent):
        return np.array([epsilon])
    return model.leakage(epsilon, method, adversary)


def within_limits(model: DependenceModel, confidence: object) -> tuple[DependenceModel, float]:
    """Charge the limits of a fitted model to the probability of error, before anything else.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other.
    confidence : float
        1 - beta.

    Returns
    -------
    model : graphs.DependenceModel
        The same, under the assumption that its limits hold.
    confidence : float
        1 less what is left of beta, rounded up; for a model that was not fitted, the confidence as it is.

    Raises
    ------
    InputError
        When the limits leave nothing.

    Notes
    -----
    The limits are a function of values of which the records are independent. Whatever these were, if the limits hold,
    the records' law is one for which the model's numbers are valid, and answers fail with probability at most
    ``beta - fit_failure``: PROOFS.md, "Fitted models".

    Examples
    --------
    >>> from graphs import GaussianField
    >>> from graphs.fitted_limits import FittedLimits
    >>> series = GaussianField.ar(0.7, 100).fitted(FittedLimits("autoregressions", 500, 0.01))
    >>> assumed, confidence = within_limits(series, 0.95)
    >>> assumed.fit_failure, round(confidence, 9)
    (0.0, 0.96)
    """
    stated, failure = check_confidence(confidence), check_model(model).fit_failure
    if not failure:
        return model, stated
    left = math.nextafter(1.0 - stated - failure, -math.inf)
    needed = math.nextafter(1.0 - left, math.inf)
    if not needed < 1.0 or left <= 0.0:
        seen = f"{stated!r} for a model whose limits fail with probability {failure:g}"
        raise InputError("confidence", seen, f"a confidence below {1.0 - failure:.6g}, or a smaller fit_failure=")
    return model.within_limits(), needed


def check_model(model: object) -> DependenceModel:
    """Return the model; InputTypeError when it is none."""
    from graphs import DependenceModel

    if not isinstance(model, DependenceModel):
        raise InputTypeError("model", f"a {type(model).__name__}", "a model of graphs, such as Independent(n)")
    return model


def check_confidence(confidence: object) -> float:
    """Return the confidence as a float in (0, 1).

    Examples
    --------
    >>> check_confidence(95)
    Traceback (most recent call last):
    thresholdout.errors.InputError: confidence: 95; expected: a probability between 0 and 1
    """
    expected = "a probability between 0 and 1"
    value = as_float(confidence)
    if value is None:
        raise InputTypeError("confidence", repr(confidence), expected)
    if not 1e-300 < 1.0 - value < 1.0:
        raise InputError("confidence", confidence, expected)
    return value


def declared_confidence(confidence: object) -> float:
    """Return the confidence that a user declares, in [0.5, 1): a smaller one is the risk, given for it by mistake.

    Examples
    --------
    >>> declared_confidence(0.05)
    Traceback (most recent call last):
    thresholdout.errors.InputError: confidence: 0.05; expected: a probability of at least 0.5, and below 1; 0.95?
    """
    value = check_confidence(confidence)
    if value < 0.5:
        raise InputError("confidence", confidence, f"a probability of at least 0.5, and below 1; {1.0 - value:.4g}?")
    return value
