"""Estimating dependence from data, and asking whether there is any.

A fitted model is an estimate. What is computed from it, a privacy budget or a leakage, is a guarantee for the fitted
law; for the law that the data came from it holds as far as the two agree. `budget_interval` says how far it moves.
Limits (`autoregression_limit`, `panel_limits`, `crossed_limits`, `intraclass_limit`, `range_limit`) are exact for the
laws of a family, and models at limits (`fit_autoregression`, `fit_components`, `fit_kernel`, `fit_panel`) hold for all.
"""

from __future__ import annotations

from graphs.estimation.autoregression import autoregression_limit
from graphs.estimation.confidence import budget_interval
from graphs.estimation.diagnosis import diagnose
from graphs.estimation.fitted_fields import fit_autoregression, fit_components, fit_kernel, fit_panel
from graphs.estimation.pseudo_likelihood import fit_ising, fit_potts
from graphs.estimation.spatial_range import range_limit
from graphs.estimation.variance_ratios import crossed_limits, intraclass_limit, panel_limits
from graphs.models.baum_welch import baum_welch

__all__ = [
    "autoregression_limit",
    "baum_welch",
    "budget_interval",
    "crossed_limits",
    "diagnose",
    "fit_autoregression",
    "fit_components",
    "fit_ising",
    "fit_kernel",
    "fit_panel",
    "fit_potts",
    "intraclass_limit",
    "panel_limits",
    "range_limit",
]
