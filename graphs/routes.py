"""The routes from a privacy budget to leakage and to variance inflation: names, sources, standing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["INFLATIONS", "ROUTES", "InflationRoute", "Route"]


@dataclass(frozen=True, slots=True)
class Route:
    """One way to bound what a mechanism leaks about a record.

    Parameters
    ----------
    published : bool
        Kept as printed in the literature, for comparison; nothing in this project builds on it.
    source : str
        Where it comes from, in few words.
    """

    published: bool
    source: str


@dataclass(frozen=True, slots=True)
class InflationRoute:
    """One way to bound the variance inflation.

    Parameters
    ----------
    bounded_differences : bool
        Whether it holds for every statistic with bounded differences, or for means of per-record values only.
    source : str
        Where it comes from, in few words.
    """

    bounded_differences: bool
    source: str


#: Every route to a leakage, by the name that `method=` takes.
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

#: Every route to a variance inflation, by the name that `method=` takes.
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
        "smoothing": InflationRoute(True, "McDiarmid, and Gaussian concentration of what noise leaves smooth"),
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
        "emission": InflationRoute(True, "records independent given their states, and what the states move"),
        "emission-spectral": InflationRoute(False, "the same, with the spectral number of the states"),
    }
)
