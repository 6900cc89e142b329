"""Pictures of audits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.plotting import BLUE, GREY, ORANGE, axes, finish

if TYPE_CHECKING:
    from thresholdout.privacy.auditing.audit_result import AuditResult
    from thresholdout.privacy.auditing.claim_audits import ClaimAudit

__all__ = ["plot_curve", "plot_errors", "plot_stages"]


def plot_stages(result: AuditResult, ax: Any = None) -> Any:
    """Draw the bound of each stage, and the largest one that so many outputs can show."""
    ax = axes(ax)
    numeric = all(isinstance(stage, (int, float)) for stage in result.stages)
    x = list(result.stages) if numeric else list(range(1, len(result.stages) + 1))
    label = f"lower bound, {result.confidence:.4g} confidence at each stage alone"
    ax.plot(x, result.bounds, "-o", color=BLUE, markersize=4, label=label)
    if result.measured == "epsilon":
        label = f"largest possible with {result.n_fp} + {result.n_fn} outputs"
        ax.axhline(result.largest, color=GREY, linestyle="--", linewidth=0.9, label=label)
    unit = "epsilon (nats)" if result.measured == "epsilon" else "delta"
    return finish(ax, "stage", unit)


def plot_errors(result: AuditResult, ax: Any = None) -> Any:
    """Draw the error rates of the attack, and the rates that are possible under the epsilon and delta it bounds."""
    ax = axes(ax)
    fp = np.linspace(0.0, 1.0, 401)
    factor = math.exp(result.epsilon)
    least = np.maximum(1.0 - result.delta - factor * fp, (1.0 - result.delta - fp) / factor).clip(0.0)
    ax.plot(fp, 1.0 - fp, ":", color=GREY, linewidth=0.9, label="guessing")
    ax.plot(fp, least, color=BLUE, label=f"border of epsilon {result.epsilon:.3g}, delta {result.delta:.3g}")
    rates = result.fp[-1] / result.n_fp, result.fn[-1] / result.n_fn
    ax.plot(*rates, "D", color=ORANGE, markersize=6, label=f"the attack, {result.n_fp} + {result.n_fn} outputs")
    ax.set_aspect("equal")
    return finish(ax, "share of first taken for second", "share of second taken for first")


def plot_curve(result: ClaimAudit, ax: Any = None) -> Any:
    """Draw a claimed curve delta(epsilon), the measured lower bound, and the point that was tested."""
    ax = axes(ax)
    claim = result.claim
    grid = np.linspace(0.0, max(1.0, 1.05 * float(claim.epsilons.max())), 200)
    style = "-o" if len(claim.points) == 1 else "-"
    ax.plot(claim.epsilons, claim.deltas, style, color=GREY, markersize=4, label="claimed: at most")
    label = f"measured: at least, confidence {result.confidence:.4g}"
    ax.plot(grid, result.lower_curve(grid), color=BLUE, label=label)
    ax.plot(result.at.epsilon, result.delta, "D", color=ORANGE, markersize=6, label="the point that was tested")
    ax.set_ylim(0.0, None)
    return finish(ax, "epsilon (nats)", "delta")
