"""Results of audits."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.privacy.accounting.bound_arguments import positive, probability
from thresholdout.privacy.auditing.claim_audits import GaussianBound, lower_curve
from thresholdout.privacy.auditing.error_counts import Method, audit_delta, audit_epsilon

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AuditResult"]


@dataclass(frozen=True, eq=False)
class AuditResult:
    """A lower bound on the leakage about one pair of data sets, with the errors that it rests on.

    Attributes
    ----------
    measured : {"epsilon", "delta"}
        The parameter that was bounded at a given value of the other.
    epsilon, delta : float
        At the last stage. With probability `confidence` or more, the mechanism has no privacy of the given one together
        with anything below the measured one.
    confidence : float
        Of each stage alone. **Curves are pointwise**: all stages at once hold with less.
    method : {"clopper-pearson", "joint"}
        How the error rates were bounded; see `audit_epsilon`.
    stages : tuple
        Names of the stages, such as epochs; most audits have one.
    bounds : ndarray, shape (stages,)
        The measured parameter by stage.
    fp, fn : ndarray of int, shape (stages,)
        Outputs on the first data set that were assigned to the second one, and the reverse.
    n_fp, n_fn : int
        Outputs on each data set that were tried, all of them new to the attack.
    cuts : ndarray, shape (stages,)
        Thresholds on the score, or on its negative, fixed on other outputs.
    by_family : GaussianBound or None
        The bound for the declared family, at the last stage: ``by_family.epsilon(delta)``.

    Examples
    --------
    >>> from thresholdout.privacy.auditing import audit_sampler
    >>> result = audit_sampler(lambda size, rng: rng.normal(size=size), lambda size, rng: rng.normal(1, size=size),
    ...                        delta=1e-3, random_state=0)
    >>> result
    <epsilon >= 2.09 at delta 0.001, confidence 0.9; 10000 and 10000 outputs show 9.07 at most>
    >>> result.contradicts(1.0, 1e-3), result.contradicts(4.0, 1e-3)
    (True, False)
    """

    measured: str
    epsilon: float
    delta: float
    confidence: float
    method: Method
    stages: tuple[Hashable, ...]
    bounds: NDArray[np.float64]
    fp: NDArray[np.int64]
    n_fp: int
    fn: NDArray[np.int64]
    n_fn: int
    cuts: NDArray[np.float64]
    by_family: GaussianBound | None = None

    def __float__(self) -> float:
        return float(self.bounds[-1])

    def __repr__(self) -> str:
        given = ("delta", self.delta) if self.measured == "epsilon" else ("epsilon", self.epsilon)
        least, most = shown_below(float(self)), shown_above(self.largest)
        found = f"{self.measured} >= {least} at {given[0]} {given[1]:g}, confidence {self.confidence:g}"
        if self.by_family is not None:
            shown = shown_below(self.by_family.epsilon(self.delta)) if self.measured == "epsilon" else "bounded too"
            found += f"; {shown} for the {self.by_family.family} family"
        return f"<{found}; {self.n_fp} and {self.n_fn} outputs show {most} at most>"

    @property
    def table(self) -> pd.DataFrame:
        """One row for each stage: errors, their shares, the threshold and the bound."""
        import pandas as pd

        return pd.DataFrame(
            {
                "fp": self.fp,
                "fn": self.fn,
                "fp_rate": self.fp / self.n_fp,
                "fn_rate": self.fn / self.n_fn,
                "cut": self.cuts,
                self.measured: self.bounds,
            },
            index=pd.Index(self.stages, name="stage"),
        )

    def lower_curve(self, epsilons: Any) -> NDArray[np.float64]:
        """Return lower bounds on delta of the last stage at some epsilons, which hold together with `confidence`."""
        last = int(self.fp[-1]), self.n_fp, int(self.fn[-1]), self.n_fn
        return lower_curve([last], epsilons, self.confidence)

    @property
    def largest(self) -> float:
        """The largest bound that this many outputs can show: that of an attack without errors.

        A claim beyond it cannot be refuted by them; `models_needed` returns the number that can.
        """
        errors = 0, self.n_fp, 0, self.n_fn
        if self.measured == "delta":
            return audit_delta(*errors, self.epsilon, self.confidence, method=self.method)
        return audit_epsilon(*errors, self.delta, self.confidence, method=self.method)

    def contradicts(self, epsilon: float, delta: float) -> bool:
        """Return whether a claim about the last stage is refuted.

        Parameters
        ----------
        epsilon : float
            The claimed epsilon, at least 0.
        delta : float
            The claimed delta, in [0, 1).

        Returns
        -------
        bool
            True if no mechanism with this privacy makes so few errors likely: a true claim that was fixed before the
            audit is refuted with probability at most ``1 - confidence``. False proves nothing: another attack or
            another pair of data sets may show more, and the claim may be beyond the `largest` bound.
        """
        claimed = positive(epsilon, "epsilon", zero=True), probability(delta, "delta")
        last = int(self.fp[-1]), self.n_fp, int(self.fn[-1]), self.n_fn
        if self.measured == "delta":
            return audit_delta(*last, claimed[0], self.confidence, method=self.method) > claimed[1]
        return audit_epsilon(*last, claimed[1], self.confidence, method=self.method) > claimed[0]

    def plot(self, ax: Any = None) -> Any:
        """Draw the bound by stage; for one stage, the error rates and their border under the bound.

        Parameters
        ----------
        ax : matplotlib axes, optional
            A new figure by default.

        Returns
        -------
        matplotlib axes
        """
        from thresholdout.privacy.auditing.claim_audits import plot_errors, plot_stages

        return plot_stages(self, ax) if len(self.stages) > 1 else plot_errors(self, ax)
