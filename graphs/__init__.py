"""How records depend on one another, and what that makes of a privacy budget.

Models are loaded when they are first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphs.errors import ArgumentError, RouteUnavailable, TooWide

if TYPE_CHECKING:
    from graphs.leakage.exact import exact_leakage
    from graphs.model import DependenceModel, Given
    from graphs.models.bayesian_network import BayesianNetwork, moralise
    from graphs.models.communities import Communities
    from graphs.models.dependency_graph import DependencyGraph
    from graphs.models.emission import CategoricalEmission, GaussianEmission
    from graphs.models.factor_graph import FactorGraph
    from graphs.models.hidden_markov import HiddenMarkov
    from graphs.models.law_free import Groups, Independent, MovingWindow
    from graphs.models.markov_chain import MarkovChain
    from graphs.models.markov_field import MarkovField
    from graphs.models.pedigree import pedigree

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
    "BayesianNetwork": "graphs.models.bayesian_network",
    "CategoricalEmission": "graphs.models.emission",
    "Communities": "graphs.models.communities",
    "DependenceModel": "graphs.model",
    "DependencyGraph": "graphs.models.dependency_graph",
    "FactorGraph": "graphs.models.factor_graph",
    "GaussianEmission": "graphs.models.emission",
    "Given": "graphs.model",
    "Groups": "graphs.models.law_free",
    "HiddenMarkov": "graphs.models.hidden_markov",
    "Independent": "graphs.models.law_free",
    "MarkovChain": "graphs.models.markov_chain",
    "MarkovField": "graphs.models.markov_field",
    "MovingWindow": "graphs.models.law_free",
    "exact_leakage": "graphs.leakage.exact",
    "moralise": "graphs.models.bayesian_network",
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
