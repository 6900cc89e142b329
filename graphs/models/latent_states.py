"""Base of models whose records depend on unobserved states.

Given the states, the records are independent, and each depends on one state only. A mechanism f on the records,
averaged over them, is a mechanism on the states. Its privacy in one state follows from the leakage through the records
of that state. So every bound for the model of the states carries over to the records (`graphs/PROOFS.md`, section on
latent states).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from graphs.errors import RouteUnavailable
from graphs.inflation.chain_evidence import contraction
from graphs.known_records import BoolArray
from graphs.leakage.messages import phi
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel
from graphs.models.emission import Emission
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up, upward_sum

__all__ = ["LatentModel"]

#: Routes of a model of states that hold for any known records: these multiply the law of the states by a weight for
#: each state, which changes no diameter of an edge and no component.
UNDER_WEIGHTS = ("group", "messages", "self-avoiding")


class LatentModel(DependenceModel):
    """Records that depend on unobserved states.

    With D the diameter of the edge between a record and its state, each record leaks at most phi(D, eps'_j) about its
    state; let mu be the sum for each state. If every mechanism that is mu_c-private in state c leaks at most A_c
    about it, then the leakage about record i of state c is at most eps'_i + phi(D, A_c - phi(D, eps'_i)). States are
    no records and leak nothing of their own.
    """

    methods: ClassVar[tuple[str, ...]] = ("group", "messages", "long-edges", "quilt", "quilt-contracted")

    def __init__(self, states: DependenceModel, emission: Emission, assignment: IntArray | None = None) -> None:
        super().__init__(states.n if assignment is None else len(assignment))
        if "self-avoiding" in states.methods:
            self.methods = (*self.methods, "self-avoiding")  # type: ignore[misc]
        self._of_states = states
        self._emission = emission
        self._assignment = assignment
        self._sizes = (
            np.ones(states.n, dtype=np.int64)
            if assignment is None
            else np.bincount(assignment, minlength=states.n).astype(np.int64)
        )

    @property
    def emission(self) -> Emission:
        """Distribution of a record given its hidden state."""
        return self._emission

    # Variance inflation ------------------------------------------------------------------------------------

    def _influences(self, weights: FloatArray, known: BoolArray | None = None) -> FloatArray | None:
        of_states = self._influences_of_states(weights)
        if of_states is None:
            return None
        passed = float(contraction(np.array([self._emission.diameter]))[0])
        # the record itself counts with its own weight, not through its state; a difference of rounded numbers
        others = up(np.maximum(of_states - weights, 0.0) + 2 * UNIT * of_states, 2)
        rows: FloatArray = up(weights + passed**2 * others, 4)
        return rows

    def _influences_of_states(self, weights: FloatArray) -> FloatArray | None:
        """Return the weighted influences of each state on the states of all records; known records weigh 0."""
        if self._assignment is None:
            return self._of_states._influences(weights)
        sums: FloatArray = np.bincount(self._assignment, weights=weights, minlength=self._of_states.n).astype(
            np.float64
        )
        rows = self._of_states._influences(up(sums, float(self._sizes.max())))
        return None if rows is None else rows[self._assignment]

    def _influence_inflation(self, known: BoolArray | None = None) -> float:
        records: FloatArray = np.ones(self.n) if known is None else (~known).astype(np.float64)
        of_states = self._influences_of_states(records)
        alike = super()._influence_inflation(known)
        if of_states is None:
            return alike
        spread = self._emission.spread
        mixed = up(1 + spread**2 * upward_sum(of_states[records > 0]) / float(records.sum()), 6)
        return min(alike, mixed if spread else 1.0)

    # Leakage -----------------------------------------------------------------------------------------------

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        shown = phi(self._emission.diameter, epsilon)
        own: float | FloatArray = float(shown) if isinstance(epsilon, float) else shown
        about = self._about_states(method, self._state_budgets(own), adversary)
        if self._assignment is None and isinstance(own, float):
            return Profile(self._leaked(epsilon, own, about.values), about.counts, about.index)
        values = about.expand()
        if self._assignment is None:
            return Profile.of(self._leaked(epsilon, own, values))
        if isinstance(own, float):
            return Profile(self._leaked(epsilon, own, values), self._sizes, self._assignment)
        return Profile.of(self._leaked(epsilon, own, values[self._assignment]))

    def _leaked(self, epsilon: float | FloatArray, own: float | FloatArray, about: FloatArray) -> FloatArray:
        """Return eps' + phi(D, A - own): own is part of A, and a difference of floats is off by one rounding."""
        others = up(np.maximum(about - own, 0.0), 1)
        return np.where(others == 0, epsilon, up(epsilon + phi(self._emission.diameter, others), 2))

    def _state_budgets(self, own: float | FloatArray) -> float | FloatArray:
        """Return the privacy budget of each state through its records, as a float when all are the same."""
        if self._assignment is None:
            if isinstance(own, float):
                return own
            sums = own
        elif isinstance(own, float):
            sums = self._sizes.astype(np.float64) * own
        else:
            sums = np.bincount(self._assignment, weights=own, minlength=len(self._sizes)).astype(np.float64)
        sums = np.where(self._sizes <= 1, sums, up(sums, float(self._sizes.max())))
        return float(sums[0]) if (sums == sums[0]).all() else sums

    def _about_states(self, method: str, budgets: float | FloatArray, adversary: Adversary) -> Profile:
        """Return the leakage of a mechanism with these budgets about each state."""
        model = self._of_states
        if method not in model.methods:
            reason = f"the states have no such route ({model.describe()})"
            raise RouteUnavailable(method, reason, self._others(method))
        if adversary == "informed" and method not in UNDER_WEIGHTS:
            reason = "known records weigh the states between, which changes more than one step of the states' law"
            raise RouteUnavailable(method, reason, ("best", *UNDER_WEIGHTS))
        return model._profile(method, budgets, adversary)

    def _content(self) -> Mapping[str, Any]:
        own = {"states of records": np.arange(self.n) if self._assignment is None else self._assignment}
        states = {"states": self._of_states.fingerprint()}
        return own | states | dict(self._emission.content())
