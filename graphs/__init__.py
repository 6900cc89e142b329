"""How records depend on one another, and what that makes of a privacy budget."""

from __future__ import annotations

from graphs.chain import MarkovChain
from graphs.communities import Communities
from graphs.emission import CategoricalEmission, GaussianEmission
from graphs.errors import ArgumentError, RouteUnavailable
from graphs.evidence import Given
from graphs.exact import exact_leakage
from graphs.hidden import HiddenMarkov
from graphs.model import DependenceModel
from graphs.structures import Groups, Independent, MovingWindow

__all__ = [
    "ArgumentError",
    "CategoricalEmission",
    "Communities",
    "DependenceModel",
    "GaussianEmission",
    "Given",
    "Groups",
    "HiddenMarkov",
    "Independent",
    "MarkovChain",
    "MovingWindow",
    "RouteUnavailable",
    "exact_leakage",
]
