"""Estimating dependence from data, and asking whether there is any."""

from __future__ import annotations

from graphs.estimation.baum_welch import HiddenFit, baum_welch

__all__ = ["HiddenFit", "baum_welch"]
