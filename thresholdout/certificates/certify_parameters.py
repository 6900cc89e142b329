"""`certify_parameters`: the certificate of any mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from thresholdout.certificates.certificate import Certificate, certify, estimand_of
from thresholdout.certificates.problem import bayesian_epsilon, within_limits
from thresholdout.certificates.route import ConstantWidth, Route, StatedWidth
from thresholdout.mechanisms.catalogue import kind_of

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.mechanisms import FinalCheck, SparseVectorParameters
    from thresholdout.mechanisms.kind import Parameters

__all__ = ["Theorems", "certify_parameters"]


def certify_parameters(model: DependenceModel, parameters: Parameters, confidence: float = 0.95) -> Certificate:
    """Certify the answers of a guard with any mechanism."""
    assumed, needed = within_limits(model, confidence)
    found = kind_of(parameters).certify(parameters, Theorems(assumed, parameters, needed))
    return found.charged(model, confidence, needed)


@dataclass(frozen=True, slots=True)
class Theorems:
    """The theorems that mechanisms are certified with: a `thresholdout.mechanisms.kind.Certifier`.

    Limits of a fitted model are assumed to hold.
    """

    model: DependenceModel
    parameters: Parameters
    confidence: float

    def stated(
        self,
        name: str,
        tolerance: float,
        assumes: str,
        source: str,
        *,
        confidence: float,
        likely: Callable[[float], float] | None = None,
        why_not: str = "",
        final: FinalCheck | None = None,
        epsilon: float | None = None,
    ) -> Certificate:
        """Certify a mechanism that states the interval of each answer itself."""
        widths = ConstantWidth(tolerance) if likely is None else StatedWidth(tolerance, likely)
        approximation = self.parameters.approximation
        route = Route(name, tolerance, not approximation, assumes, source, widths=widths)
        if why_not:
            route = Route.missing(name, why_not, sound=not approximation, assumes=assumes, source=source)
        declared = bool(approximation) and route.applies  # approximate, and named so
        chosen = route if route.eligible or declared else None
        estimand = estimand_of(self.model, self.parameters)
        with_dependants = None if epsilon is None else bayesian_epsilon(self.model, epsilon)
        return Certificate(
            confidence,
            (route,),
            chosen,
            self.model.describe(),
            estimand,
            final,
            epsilon,
            bayesian_epsilon=with_dependants,
            approximation=approximation,
        )

    def algorithm_1(self, parameters: SparseVectorParameters) -> Certificate:
        """Certify Algorithm 1 by the best of its routes."""
        return certify(
            self.model,
            threshold=parameters.threshold,
            noise_scale=parameters.noise_scale,
            budget=parameters.budget,
            queries=parameters.queries,
            confidence=self.confidence,
            grid=parameters.grid,
            ratios=parameters.ratios,
        )
