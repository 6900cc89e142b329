"""How records depend on one another, and what that makes of a privacy budget."""

from __future__ import annotations

from graphs.chain import MarkovChain
from graphs.communities import Communities
from graphs.dependency import DependencyGraph
from graphs.emission import CategoricalEmission, GaussianEmission
from graphs.errors import ArgumentError, RouteUnavailable, TooWide
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
