"""How records depend on one another, and what that makes of a privacy budget.

Models are loaded when they are first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphs.errors import ArgumentError, RouteUnavailable, TooWide

if TYPE_CHECKING:
    from graphs.leakage.exact import exact_leakage
    from graphs.model import DependenceModel
    from graphs.models.chain import MarkovChain
    from graphs.models.communities import Communities
    from graphs.models.dependency import DependencyGraph
    from graphs.models.emission import CategoricalEmission, GaussianEmission
    from graphs.models.evidence import Given
    from graphs.models.factors import FactorGraph
    from graphs.models.field import MarkovField
    from graphs.models.hidden import HiddenMarkov
    from graphs.models.network import BayesianNetwork, moralise
    from graphs.models.pedigree import pedigree
    from graphs.models.structures import Groups, Independent, MovingWindow

__all__ = [
    "ArgumentError",
    "BayesianNetwork",
    "CategoricalEmission",
    "Communities",
    "DependenceModel",
    "DependencyGraph",
    "FactorGraph",
    "GaussianEmission",
    "Given",
    "Groups",
    "HiddenMarkov",
    "Independent",
    "MarkovChain",
    "MarkovField",
    "MovingWindow",
    "RouteUnavailable",
    "TooWide",
    "exact_leakage",
    "moralise",
    "pedigree",
]

_HOMES = {
    "BayesianNetwork": "graphs.models.network",
    "CategoricalEmission": "graphs.models.emission",
    "Communities": "graphs.models.communities",
    "DependenceModel": "graphs.model",
    "DependencyGraph": "graphs.models.dependency",
    "FactorGraph": "graphs.models.factors",
    "GaussianEmission": "graphs.models.emission",
    "Given": "graphs.models.evidence",
    "Groups": "graphs.models.structures",
    "HiddenMarkov": "graphs.models.hidden",
    "Independent": "graphs.models.structures",
    "MarkovChain": "graphs.models.chain",
    "MarkovField": "graphs.models.field",
    "MovingWindow": "graphs.models.structures",
    "exact_leakage": "graphs.leakage.exact",
    "moralise": "graphs.models.network",
    "pedigree": "graphs.models.pedigree",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
