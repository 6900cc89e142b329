"""Pictures of the comparison tables. Every function takes ``ax=None`` and returns the axes it drew on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thresholdout.errors import ThresholdoutError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plot_composition", "plot_high_probability", "plot_kl", "plot_on_average"]


def _axes(ax: Any) -> Any:
    """Return ``ax``, or the axes of a new figure that needs no screen."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ThresholdoutError("pictures need matplotlib: pip install 'thresholdout[plot]'") from None
    return Figure(figsize=(8.0, 4.5), layout="constrained").add_subplot()


def _finish(ax: Any, x: str, y: str) -> Any:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_high_probability(table: pd.DataFrame, ax: Any = None) -> Any:
    """Draw the errors of `compare_high_probability`; dotted where they say nothing.

    Parameters
    ----------
    table : DataFrame
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from thresholdout.accounting.comparison import compare_high_probability
    >>> plot_high_probability(compare_high_probability([0.02, 0.05], 1e-6, 20000, 0.1)).get_xlabel()
    'epsilon'
    """
    ax = _axes(ax)
    for k, (rule, rows) in enumerate(table.groupby("rule", sort=False)):
        ax.loglog(rows["eps"], rows["error"], ":", color=f"C{k}", label=None)
        useful = rows[~rows["vacuous"]]
        ax.loglog(useful["eps"], useful["error"], "-o", color=f"C{k}", markersize=3, label=str(rule))
    ax.axhline(1.0, color="#8a8a8a", linewidth=0.8)
    return _finish(ax, "epsilon", "error (dotted: vacuous)")


def plot_on_average(table: pd.DataFrame, ax: Any = None) -> Any:
    """Draw the rules and the measured gap of `compare_on_average`.

    Parameters
    ----------
    table : DataFrame
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from thresholdout.accounting.comparison import compare_on_average
    >>> plot_on_average(compare_on_average([0.05, 0.2], 0.0, draws=5)).get_ylabel()
    'mean gap'
    """
    ax = _axes(ax)
    for rule in [column for column in table.columns if column != "eps"]:
        ax.loglog(table["eps"], table[rule], "k--" if rule == "measured" else "-", label=rule)
    return _finish(ax, "epsilon", "mean gap")


def plot_kl(table: pd.DataFrame, ax: Any = None) -> Any:
    """Draw the rules of `compare_kl`.

    Parameters
    ----------
    table : DataFrame
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from thresholdout.accounting.comparison import compare_kl
    >>> plot_kl(compare_kl([0.1, 1.0])).get_xlabel()
    'epsilon'
    """
    ax = _axes(ax)
    for rule in [column for column in table.columns if column not in ("eps", "ratio")]:
        ax.loglog(table["eps"], table[rule], label=rule)
    return _finish(ax, "epsilon", "Kullback-Leibler divergence (nats)")


def plot_composition(table: pd.DataFrame, ax: Any = None) -> Any:
    """Draw the deltas of `compare_composition` in units of the smallest valid one; below 1 is no guarantee.

    Parameters
    ----------
    table : DataFrame
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from thresholdout.accounting.comparison import compare_composition
    >>> plot_composition(compare_composition(0.1, 1e-6, [50, 100], 1e-6)).get_xlabel()
    'steps'
    """
    ax = _axes(ax)
    for rule, rows in table.groupby("rule", sort=False):
        style = "-o" if bool(rows["sound"].all()) else "--x"
        ax.semilogx(rows["T"], rows["delta"] / rows["optimal_delta"], style, markersize=3, label=str(rule))
    ax.axhline(1.0, color="#8a8a8a", linewidth=0.8)
    return _finish(ax, "steps", "delta / smallest valid delta at its epsilon")
