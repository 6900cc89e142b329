"""Tables that compare the bounds of this package with one another and with the published ones."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.adaptive_steps import (
    compose_basic,
    compose_chernoff,
    compose_dwork_roth,
    compose_kov,
)
from thresholdout.privacy.accounting.bound_arguments import count, open_unit, positive, probability, unit
from thresholdout.privacy.accounting.generalization_bounds import (
    high_probability_bound,
    kl_bound,
    on_average_bound,
)
from thresholdout.privacy.accounting.optimal_composition import compose_optimal_delta, compose_optimal_epsilon
from thresholdout.privacy.accounting.published_bounds import (
    compose_he,
    dwork2015_bound,
    nissim_stemmer_bound,
    oneto_risk_bound,
    oneto_variance_bound,
)
from thresholdout.privacy.accounting.results import Composition, GeneralizationBound, UnsoundBoundWarning
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "compare_composition",
    "compare_high_probability",
    "compare_kl",
    "compare_on_average",
    "exponential_mechanism_gap",
]

_ON_AVERAGE = ("theorem2", "corollary1", "nissim_stemmer", "tight")
_KL = ("he", "dwork_rothblum", "dwork_rothblum_vadhan")


def _grid(values: Iterable[float], name: str) -> list[float]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InputTypeError(name, f"a {type(values).__name__}", "a list of numbers")
    found = [positive(value, name) for value in values]
    if not found:
        raise InputError(name, "no values", "at least one")
    return found


def compare_high_probability(eps_grid: Iterable[float], delta: float, n: int, emp_risk: float) -> pd.DataFrame:
    """Compare bounds on the population risk that hold with high probability.

    Parameters
    ----------
    eps_grid : iterable of float
        Above 0.
    delta : float
        In [0, 1).
    n : int
        Records, at least 2.
    emp_risk : float
        In [0, 1]; losses are taken to be 0 or 1 for the bound by their variance.

    Returns
    -------
    DataFrame
        One row for each epsilon and rule: ``eps, rule, error, failure, vacuous, applicable``. Theorem 1 has delta
        inflated where n is too small; the bounds of Oneto et al. ignore delta, and all but Theorem 1 are as quoted,
        without the conditions of their originals.

    Examples
    --------
    >>> compare_high_probability([0.05], 1e-6, 20000, 0.1)[["rule", "vacuous"]].values.tolist()[0]
    ['theorem1', False]
    """
    import pandas as pd

    delta, n, emp_risk = probability(delta, "delta"), count(n, "n", least=2), unit(emp_risk, "emp_risk")
    variance = emp_risk * (1 - emp_risk) * n / (n - 1)
    rows = []
    for eps in _grid(eps_grid, "eps_grid"):
        bounds: list[GeneralizationBound] = [
            high_probability_bound(eps, delta, n, on_small_n="inflate"),
            dwork2015_bound(eps, delta),
            nissim_stemmer_bound(eps, delta),
            oneto_risk_bound(eps, n, emp_risk),
            oneto_variance_bound(eps, n, variance),
        ]
        for found in bounds:
            row = (eps, found.rule, found.error, found.failure, found.vacuous, found.applicable)
            rows.append(row)
    return pd.DataFrame(rows, columns=["eps", "rule", "error", "failure", "vacuous", "applicable"])


def exponential_mechanism_gap(
    eps: float, *, records: int = 100, features: int = 1000, draws: int = 200, seed: int = 0
) -> float:
    """Measure the mean gap of a learner that chooses among fair coins by the exponential mechanism.

    Parameters
    ----------
    eps : float
        Of the mechanism, which chooses a feature with weight ``exp(eps records mean/2)``; above 0.
    records, features : int
        Size of the data, all fair coins.
    draws : int
        How many data sets to average over.
    seed : int
        Of the data.

    Returns
    -------
    float
        Mean of the chosen feature less 1/2, with the choice averaged exactly.

    Examples
    --------
    >>> 0.02 < exponential_mechanism_gap(0.2, draws=50) < 0.03
    True
    """
    eps, records, features = positive(eps, "eps"), count(records, "records"), count(features, "features")
    rng = np.random.default_rng(seed)
    wins = rng.binomial(records, 0.5, size=(count(draws, "draws"), features))
    weight = np.exp(eps / 2 * (wins - wins.max(axis=1, keepdims=True)))
    return float(((weight * wins).sum(axis=1) / weight.sum(axis=1)).mean() / records - 0.5)


def compare_on_average(
    eps_grid: Iterable[float], delta: float, k: int = 1, *, draws: int = 200, seed: int = 0
) -> pd.DataFrame:
    """Compare bounds on the mean gap, and the gap of a learner that fits noise as well as its epsilon lets it.

    Parameters
    ----------
    eps_grid : iterable of float
        Above 0.
    delta : float
        In [0, 1).
    k : int
        Databases.
    draws, seed : int
        For the measured gap; see `exponential_mechanism_gap`.

    Returns
    -------
    DataFrame
        One row for each epsilon: ``eps``, one column for each rule of `on_average_bound`, and ``measured``.

    Examples
    --------
    >>> table = compare_on_average([0.05, 0.2], 0.0, draws=20)
    >>> bool((table["measured"] < table["tight"]).all())
    True
    """
    import pandas as pd

    rows = [
        {"eps": eps}
        | {rule: on_average_bound(eps, delta, k, rule) for rule in _ON_AVERAGE}
        | {"measured": exponential_mechanism_gap(eps, draws=draws, seed=seed)}
        for eps in _grid(eps_grid, "eps_grid")
    ]
    return pd.DataFrame(rows)


def compare_kl(eps_grid: Iterable[float]) -> pd.DataFrame:
    """Compare bounds on the Kullback-Leibler divergence of private mechanisms.

    Parameters
    ----------
    eps_grid : iterable of float
        Above 0.

    Returns
    -------
    DataFrame
        One row for each epsilon: ``eps``, one column for each rule of `kl_bound`, and ``ratio``, of the second to the
        first, which is ``(1 + e^eps)/2``.

    Examples
    --------
    >>> round(float(compare_kl([1.0])["ratio"][0]), 9)
    1.859140914
    """
    import pandas as pd

    rows = [{"eps": eps} | {rule: kl_bound(eps, rule) for rule in _KL} for eps in _grid(eps_grid, "eps_grid")]
    table = pd.DataFrame(rows)
    table["ratio"] = table["dwork_rothblum"] / table["he"]
    return table


def compare_composition(eps: float, delta: float, T_grid: Iterable[int], dt: float) -> pd.DataFrame:
    """Compare rules of composition for equal steps.

    Parameters
    ----------
    eps, delta : float
        Of each step; eps above 0, delta in [0, 1).
    T_grid : iterable of int
        Numbers of steps.
    dt : float
        Slack in (0, 1).

    Returns
    -------
    DataFrame
        One row for each number of steps and rule: ``T, rule, eps, delta, sound``, with ``optimal_delta``, the smallest
        valid delta at that epsilon, ``leak_lower_bound = 1 - (1 - delta)^T``, which no valid delta is below,
        ``below_leak`` and ``violates`` for deltas that are below these, and for II ``claimed_gain = delta tanh(eps/2)(T
        - m)``, by which the paper says that it is better than `compose_kov`. Rule "optimal" has the delta of
        `compose_kov` and the smallest epsilon with it.

    Examples
    --------
    >>> table = compare_composition(0.1, 1e-6, [100], 1e-6).set_index("rule")
    >>> bool(table.loc["II", "below_leak"]), bool(table.loc["kov", "below_leak"])
    (True, False)
    """
    import pandas as pd

    eps, delta, dt = positive(eps, "eps"), probability(delta, "delta"), open_unit(dt, "dt")
    sizes = [count(T, "T_grid") for T in T_grid]
    if not sizes:
        raise InputError("T_grid", "no values", "at least one")
    rows = []
    for T in sizes:
        leak = -math.expm1(T * math.log1p(-delta))
        for rule, found in _rules(eps, delta, T, dt).items():
            best = compose_optimal_delta(eps, delta, found.eps, T) if math.isfinite(found.eps) else leak
            gain = delta * math.tanh(eps / 2) * (T - found.details["m"]) if rule == "II" else math.nan
            below = found.delta < leak * (1 - 1e-9)
            row = (T, rule, found.eps, found.delta, found.sound, best, leak, below, found.delta < best * (1 - 1e-9))
            rows.append((*row, gain))
    columns = ["T", "rule", "eps", "delta", "sound", "optimal_delta", "leak_lower_bound", "below_leak", "violates"]
    return pd.DataFrame(rows, columns=[*columns, "claimed_gain"])


def _rules(eps: float, delta: float, T: int, dt: float) -> dict[str, Composition]:
    kov = compose_kov(eps, delta, dt, T)
    best = min(kov.eps, compose_optimal_epsilon(eps, delta, kov.delta, T)) if 0 < kov.delta < 1 else kov.eps
    found = {
        "basic": compose_basic(eps, delta, T),
        "dwork_roth": compose_dwork_roth(eps, delta, dt, T),
        "kov": kov,
        "chernoff": compose_chernoff(eps, delta, T, dt),
        "optimal": Composition(best, kov.delta, "optimal", True),
    }
    with suppress_warnings(UnsoundBoundWarning):
        for variant in ("I", "II", "III"):
            found[variant] = compose_he(eps, delta, dt, T, variant=variant, formula="paper")
    return found
