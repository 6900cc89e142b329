from .errors import (
    ArgumentError as ArgumentError,
    RouteUnavailable as RouteUnavailable,
    TooWide as TooWide,
)
from .leakage.exact import exact_leakage as exact_leakage
from .model import (
    DependenceModel as DependenceModel,
    Given as Given,
)
from .models.bayesian_network import BayesianNetwork as BayesianNetwork
from .models.communities import Communities as Communities
from .models.crossed import Crossed as Crossed
from .models.dependency_graph import DependencyGraph as DependencyGraph
from .models.emission import (
    CategoricalEmission as CategoricalEmission,
    GaussianEmission as GaussianEmission,
)
from .models.factor_graph import FactorGraph as FactorGraph
from .models.gaussian_field import GaussianField as GaussianField
from .models.hidden_markov import HiddenMarkov as HiddenMarkov
from .models.law_free import (
    Groups as Groups,
    Independent as Independent,
)
from .models.markov_chain import MarkovChain as MarkovChain
from .models.markov_field import MarkovField as MarkovField
from .models.panel import Panel as Panel
from .models.mixing_series import MixingSeries as MixingSeries
from .models.moving_window import MovingWindow as MovingWindow
from .models.bayesian_network import pedigree as pedigree

__all__: list[str]
