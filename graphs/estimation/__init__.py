"""Estimating dependence from data, and asking whether there is any.

A fitted model is an estimate. What is computed from it, a budget or a leakage, is a guarantee for the fitted law; for
the law that the data came from it holds as far as the two agree. `budget_interval` says how far the budget moves.
"""

from __future__ import annotations

from graphs.estimation.confidence import budget_interval
from graphs.estimation.diagnosis import diagnose
from graphs.estimation.pseudo_likelihood import fit_ising, fit_potts
from graphs.models.baum_welch import baum_welch

__all__ = [
    "baum_welch",
    "budget_interval",
    "diagnose",
    "fit_ising",
    "fit_potts",
]
