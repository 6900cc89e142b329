"""Names, sources and validity of the routes to leakage and to variance inflation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["INFLATIONS", "ROUTES", "InflationRoute", "Route"]


@dataclass(frozen=True, slots=True)
class Route:
    """A bound on the leakage of a mechanism about a record."""

    published: bool  # as printed in the literature, for comparison only
    source: str  # where it comes from, in few words


@dataclass(frozen=True, slots=True)
class InflationRoute:
    """A bound on the variance inflation."""

    # whether it holds for every statistic with bounded differences, or for means of per-record values only
    bounded_differences: bool
    source: str  # where it comes from, in few words


#: Every route to a leakage, by its name in `method=`.
ROUTES: Mapping[str, Route] = MappingProxyType(
    {
        "group": Route(False, "group privacy of the records that are connected"),
        "quilt": Route(False, "Markov quilts, factor 2 (factor 1 for an uninformed adversary)"),
        "quilt-contracted": Route(False, "Markov quilts whose ends leak, contracted by their diameter"),
        "messages": Route(False, "message passing with projective diameters"),
        "self-avoiding": Route(False, "message passing that remembers the way around loops"),
        "long-edges": Route(False, "message passing over several steps of a chain at once"),
        "blanket-published": Route(True, "[Z17, Lemma 3]"),
        "quilt-published": Route(True, "[Z17, Lemma 2]"),
        "spectral-published": Route(True, "[Z17, Lemma 4]"),
    }
)

#: Every route to a variance inflation, by its name in `method=`.
INFLATIONS: Mapping[str, InflationRoute] = MappingProxyType(
    {
        "components": InflationRoute(True, "McDiarmid over independent groups"),
        "parts": InflationRoute(True, "the best route for each independent part"),
        "colouring": InflationRoute(False, "fractional colouring of the dependency graph [Janson 2004]"),
        "crossed": InflationRoute(True, "McDiarmid over crossed effects and single records"),
        "crossed-means": InflationRoute(False, "Hoelder's inequality over crossed effects [Finner 1992]"),
        "copula": InflationRoute(
            False, "diagonal matrix above the correlations of Gaussians [Chen, Dafnis, Paouris 2015]"
        ),
        "smoothing": InflationRoute(True, "McDiarmid, and Gaussian concentration of the smoothed statistic"),
        "elimination": InflationRoute(
            True, "Azuma along an elimination order of the dependency graph [Zhang, Liu, Wang, Wang 2019]"
        ),
        "folds": InflationRoute(False, "out-of-fold values: the widths of the folds add up"),
        "mixing": InflationRoute(True, "futures that differ little given two pasts, in blocks [Rio 2000]"),
        "spectral": InflationRoute(False, "norm of the kernel on mean-zero functions [Fan, Jiang, Sun 2021]"),
        "interdependence": InflationRoute(True, "interdependence matrix [Dobrushin; Chatterjee 2005]"),
        "ordered": InflationRoute(True, "messages of expected changes, records revealed in an order"),
        "forward": InflationRoute(True, "changes coupled from parents to children, Azuma's inequality"),
        "dobrushin": InflationRoute(True, "Dobrushin coefficient, Marton couplings [Paulin 2015]"),
        "coupling": InflationRoute(True, "Dobrushin coefficients of all powers, maximal coupling [Griffeath 1975]"),
        "evidence": InflationRoute(True, "kernels between known records, maximal couplings"),
        "influences": InflationRoute(False, "pairwise influences under every field, total variation"),
        "emission": InflationRoute(True, "records independent given their states, and the effect of the states"),
        "emission-spectral": InflationRoute(False, "the same, with the spectral number of the states"),
    }
)
