"""Estimates of dependence from data, tests for it, and confidence limits.

Numbers computed from a fitted model are guarantees for the fitted law only. `budget_interval` estimates how far they
move. Limits (`autoregression_limit`, `panel_limits`, `crossed_limits`, `intraclass_limit`, `range_limit`) are exact for
the laws of a family. Models at limits (`fit_autoregression`, `fit_components`, `fit_kernel`, `fit_panel`) hold for all
laws within the limits.
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
