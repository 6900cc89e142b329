"""Confidence intervals for the privacy budget of a fitted model, by the parametric bootstrap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError
from graphs.model import Adversary, DependenceModel
from graphs.numerics.arguments import FloatArray, check_count, check_target
from graphs.progress_bar import progress_bar

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BudgetInterval", "budget_interval"]


@dataclass(frozen=True, slots=True)
class BudgetInterval:
    """A privacy budget computed from a fitted model, with a confidence interval."""

    budget: float  # of the fitted model
    inflation: float  # of the fitted model
    # shape (draws,): of the refitted models; epsilon / n and n where no model could be fitted or it leaves no more,
    # which hold for all n records as one group
    budgets: FloatArray
    inflations: FloatArray  # shape (draws,): the same for the variance inflation
    epsilon: float  # target for the leakage, nats
    confidence: float  # level of the intervals

    @property
    def low(self) -> float:
        """Lower end for the privacy budget: the conservative end."""
        return self._ends(self.budget, self.budgets)[0]

    @property
    def high(self) -> float:
        """Upper end for the privacy budget."""
        return self._ends(self.budget, self.budgets)[1]

    @property
    def inflation_low(self) -> float:
        """Lower end for the variance inflation, at least 1."""
        return max(self._ends(self.inflation, self.inflations)[0], 1.0)

    @property
    def inflation_high(self) -> float:
        """Upper end for the variance inflation: the conservative end."""
        return self._ends(self.inflation, self.inflations)[1]

    @property
    def words(self) -> str:
        """The result in words."""
        level = f"{100 * self.confidence:g}% interval"
        return (
            f"budget {self.budget:.4g} for a leakage of {self.epsilon:g} nats ({level} {self.low:.4g} to "
            f"{self.high:.4g}),\nvariance inflation {self.inflation:.4g} ({self.inflation_low:.4g} to "
            f"{self.inflation_high:.4g}). The model is an estimate: numbers computed from it hold for the fitted "
            "law,\nand for the unknown one only as far as the two agree and the model is of the right kind."
        )

    def table(self) -> pd.DataFrame:
        """Return one row for each draw: its privacy budget and its variance inflation."""
        import pandas as pd

        return pd.DataFrame({"budget": self.budgets, "inflation": self.inflations})

    def _ends(self, seen: float, drawn: FloatArray) -> tuple[float, float]:
        tail = (1 - self.confidence) / 2
        quantiles = np.quantile(drawn, [tail, 1 - tail], method="inverted_cdf")
        ends = np.concatenate([quantiles, seen**2 / quantiles])
        return min(float(ends.min()), seen), max(float(ends.max()), seen)

    def __str__(self) -> str:
        return self.words


def budget_interval(
    model: DependenceModel,
    fit: Callable[[npt.NDArray[Any]], DependenceModel],
    epsilon: float,
    *,
    confidence: float = 0.95,
    draws: int = 200,
    adversary: Adversary = "informed",
    seed: int = 0,
) -> BudgetInterval:
    """Estimate how much the privacy budget of a fitted model varies, by the parametric bootstrap.

    Use it after `MarkovChain.fit`, `fit_ising` or another estimator. The number `model.budget` holds for the fitted
    distribution only. The interval shows how far the budget, and the variance inflation, move when the model is fitted
    to other data of the same size.

    Parameters
    ----------
    model : DependenceModel
        Fitted model.
    fit : callable
        Function that estimates a model from a data set of the form that `model.sample` draws, such as
        `MarkovChain.fit`.
    epsilon : float
        Target for the largest leakage, in nats.
    confidence : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    draws : int, default 200
        Number of data sets drawn from the fitted model.
    adversary : {"informed", "uninformed"}, default "informed"
        Prior knowledge of the adversary. "informed": may know any set of other records. "uninformed": knows the model
        only.
    seed : int, default 0
        Seed of the draws.

    Returns
    -------
    BudgetInterval
        Attributes `budget`, `low` and `high` hold the privacy budget and its interval, `inflation`, `inflation_low` and
        `inflation_high` the same for the variance inflation. `table()` lists the draws, `str` gives a summary.

    Raises
    ------
    ArgumentError
        If an argument cannot be used.

    Notes
    -----
    Each data set is drawn from the fitted model, and the model is fitted to it anew. The interval covers two intervals:
    the quantiles of the refitted budgets, and the basic bootstrap interval, which inverts the ratios of refitted to
    fitted budgets [Davison and Hinkley 1997, sections 5.2 and 5.3]. A draw to which no model can be fitted counts as n
    records in one group. The level is approximate, for a model of the right kind and enough data. The interval does not
    account for a model of the wrong kind.

    Examples
    --------
    >>> from graphs import MarkovChain
    >>> data = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=500).sample(np.random.default_rng(1))
    >>> found = budget_interval(MarkovChain.fit(data), MarkovChain.fit, 0.5, draws=20)
    >>> found.low < found.budget < found.high
    True
    """
    target = check_target(epsilon)
    if not 0 < confidence < 1:
        raise ArgumentError("confidence", repr(confidence), "a number between 0 and 1")
    rng = np.random.default_rng(seed)
    budgets = np.full(check_count("draws", draws, 2), target / model.n * (1 - 2.0**-50))
    inflations = np.full(draws, float(model.n))
    for draw in progress_bar(range(draws), doing="bootstrap", unit="draws"):
        try:
            again = fit(model.sample(rng))
        except ArgumentError:
            continue
        inflations[draw] = again.variance_inflation()
        budgets[draw] = max(budgets[draw], again.budget(target, adversary=adversary))
    return BudgetInterval(
        model.budget(target, adversary=adversary),
        model.variance_inflation(),
        budgets,
        inflations,
        target,
        float(confidence),
    )
