"""How records depend on one another, and what that makes of a privacy budget.

Models are loaded when they are first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphs.errors import ArgumentError, RouteUnavailable, TooWide

if TYPE_CHECKING:
    from graphs.chain import MarkovChain
    from graphs.communities import Communities
    from graphs.dependency import DependencyGraph
    from graphs.emission import CategoricalEmission, GaussianEmission
    from graphs.evidence import Given
    from graphs.exact import exact_leakage
    from graphs.factors import FactorGraph
    from graphs.field import MarkovField
    from graphs.hidden import HiddenMarkov
    from graphs.model import DependenceModel
    from graphs.network import BayesianNetwork, moralise
    from graphs.pedigree import pedigree
    from graphs.structures import Groups, Independent, MovingWindow

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
    "BayesianNetwork": "graphs.network",
    "CategoricalEmission": "graphs.emission",
    "Communities": "graphs.communities",
    "DependenceModel": "graphs.model",
    "DependencyGraph": "graphs.dependency",
    "FactorGraph": "graphs.factors",
    "GaussianEmission": "graphs.emission",
    "Given": "graphs.evidence",
    "Groups": "graphs.structures",
    "HiddenMarkov": "graphs.hidden",
    "Independent": "graphs.structures",
    "MarkovChain": "graphs.chain",
    "MarkovField": "graphs.field",
    "MovingWindow": "graphs.structures",
    "exact_leakage": "graphs.exact",
    "moralise": "graphs.network",
    "pedigree": "graphs.pedigree",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
