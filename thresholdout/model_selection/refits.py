"""Fits of a search's candidates to all records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["estimator_parameters", "fit_candidate", "wants_groups", "with_parameters"]


def wants_groups(search: Any) -> bool:
    """Return whether the search's fit takes groups: always without metadata routing, otherwise on its request."""
    from sklearn import get_config
    from sklearn.utils.metadata_routing import get_routing_for_object

    if not get_config()["enable_metadata_routing"]:
        return True
    return "groups" in get_routing_for_object(search).consumes("fit", {"groups"})


def estimator_parameters(search: Any, fit_params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that the search would give to its estimator's fit."""
    from sklearn import get_config
    from sklearn.utils.metadata_routing import process_routing

    if get_config()["enable_metadata_routing"]:
        return dict(process_routing(search, "fit", **fit_params).estimator.fit)
    return {name: value for name, value in fit_params.items() if name != "groups"}


def with_parameters(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """Return a clone of an estimator with a candidate's parameters."""
    from sklearn.base import clone

    return clone(estimator).set_params(**clone(dict(parameters), safe=False))


def fit_candidate(estimator: Any, parameters: Mapping[str, Any], X: Any, y: Any, fit_params: Mapping[str, Any]) -> Any:
    """Fit a candidate."""
    return with_parameters(estimator, parameters).fit(X, y, **fit_params)
