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
    """Result of `audit_outputs`, `audit_sampler` or `audit_learner` without a claim: a lower bound on the leakage.

    The bound is about one pair of neighbouring data sets and one attack. The attack assigns each output of the
    mechanism to one of the two data sets, and few errors prove that the mechanism leaks. ``float(result)`` is the bound
    at the last stage.

    Attributes
    ----------
    measured : {"epsilon", "delta"}
        The parameter that was bounded, at a given value of the other one.
    epsilon, delta : float
        The bound at the last stage and the given value. With probability `confidence` or more, the mechanism is not
        private with the given value together with any smaller value of the measured one.
    confidence : float
        Probability with which the bound of one stage holds. **Curves are pointwise**: the bounds of all stages hold
        together with a lower probability.
    method : {"clopper-pearson", "joint"}
        How the error rates of the attack were bounded: by one limit for each rate, or by a joint confidence set. See
        `audit_epsilon`.
    stages : tuple
        Names of the stages of a training, such as epochs. Most audits have one stage.
    bounds : ndarray, shape (stages,)
        The measured parameter at each stage.
    fp, fn : ndarray of int, shape (stages,)
        Errors of the attack at each stage: outputs on the first data set that it assigned to the second one, and
        outputs on the second data set that it assigned to the first one.
    n_fp, n_fn : int
        Number of outputs on the first and on the second data set from which errors were counted. The attack was not
        fitted on any of them.
    cuts : ndarray, shape (stages,)
        Thresholds on the score of the attack, or on its negative. They were chosen on other outputs.
    by_family : GaussianBound or None
        With ``family="gaussian"``, the bound at the last stage under the assumption of a Gaussian mechanism. Call
        ``by_family.epsilon(delta)`` or ``by_family.delta(epsilon)``.

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
        """Errors, error rates, threshold and bound of each stage, as a DataFrame with one row for each stage."""
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
        """Return lower bounds on delta at several epsilons, for the last stage.

        Parameters
        ----------
        epsilons : array_like of float
            Epsilons in nats, at least 0.

        Returns
        -------
        ndarray, shape (k,)
            A lower bound on delta at each epsilon. All of them hold together with probability `confidence` or more.
        """
        last = int(self.fp[-1]), self.n_fp, int(self.fn[-1]), self.n_fn
        return lower_curve([last], epsilons, self.confidence)

    @property
    def largest(self) -> float:
        """Largest bound that this number of outputs can show, reached by an attack without errors.

        These outputs cannot refute a claim beyond it. `models_needed` returns the number of models that can.
        """
        errors = 0, self.n_fp, 0, self.n_fn
        if self.measured == "delta":
            return audit_delta(*errors, self.epsilon, self.confidence, method=self.method)
        return audit_epsilon(*errors, self.delta, self.confidence, method=self.method)

    def contradicts(self, epsilon: float, delta: float) -> bool:
        """Return whether the audit refutes a claimed pair (epsilon, delta) for the last stage.

        Parameters
        ----------
        epsilon : float
            The claimed epsilon in nats, at least 0.
        delta : float
            The claimed delta, in [0, 1).

        Returns
        -------
        bool
            True if the attack made fewer errors than a mechanism with this privacy allows. A true claim that was fixed
            before the audit is refuted with probability at most ``1 - confidence``. False proves nothing: another
            attack or another pair of data sets may show more, and the claim may be beyond the `largest` bound.
        """
        claimed = positive(epsilon, "epsilon", zero=True), probability(delta, "delta")
        last = int(self.fp[-1]), self.n_fp, int(self.fn[-1]), self.n_fn
        if self.measured == "delta":
            return audit_delta(*last, claimed[0], self.confidence, method=self.method) > claimed[1]
        return audit_epsilon(*last, claimed[1], self.confidence, method=self.method) > claimed[0]

    def plot(self, ax: Any = None) -> Any:
        """Draw the bound at each stage or, for a single stage, the error rates of the attack.

        The drawing of error rates shows the border of the rates that are possible under the bound.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on. If None, a new figure is made.

        Returns
        -------
        matplotlib axes
            The axes with the drawing.
        """
        from thresholdout.privacy.auditing.claim_audits import plot_errors, plot_stages

        return plot_stages(self, ax) if len(self.stages) > 1 else plot_errors(self, ax)
