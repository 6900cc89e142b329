"""Pictures of the comparison tables. Every function takes ``ax=None`` and returns the axes it drew on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thresholdout.plotting import GREY, axes, finish

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plot_composition", "plot_high_probability", "plot_kl", "plot_on_average"]


def _lines(ax: Any, table: pd.DataFrame, columns: list[str], y: str) -> Any:
    """Draw columns over epsilon, what was measured dashed."""
    ax = axes(ax)
    for column in columns:
        ax.loglog(table["eps"], table[column], "k--" if column == "measured" else "-", label=column)
    return finish(ax, "epsilon", y)


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
    >>> from benchmarks.papers.bound_tables import compare_high_probability
    >>> plot_high_probability(compare_high_probability([0.02, 0.05], 1e-6, 20000, 0.1)).get_xlabel()
    'epsilon'
    """
    ax = axes(ax)
    for k, (rule, rows) in enumerate(table.groupby("rule", sort=False)):
        ax.loglog(rows["eps"], rows["error"], ":", color=f"C{k}", label=None)
        useful = rows[~rows["vacuous"]]
        ax.loglog(useful["eps"], useful["error"], "-o", color=f"C{k}", markersize=3, label=str(rule))
    ax.axhline(1.0, color=GREY, linewidth=0.8)
    return finish(ax, "epsilon", "error (dotted: vacuous)")


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
    >>> from benchmarks.papers.bound_tables import compare_on_average
    >>> plot_on_average(compare_on_average([0.05, 0.2], 0.0, draws=5)).get_ylabel()
    'mean gap'
    """
    return _lines(ax, table, [column for column in table.columns if column != "eps"], "mean gap")


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
    >>> from benchmarks.papers.bound_tables import compare_kl
    >>> plot_kl(compare_kl([0.1, 1.0])).get_xlabel()
    'epsilon'
    """
    columns = [column for column in table.columns if column not in ("eps", "ratio")]
    return _lines(ax, table, columns, "Kullback-Leibler divergence (nats)")


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
    >>> from benchmarks.papers.bound_tables import compare_composition
    >>> plot_composition(compare_composition(0.1, 1e-6, [50, 100], 1e-6)).get_xlabel()
    'steps'
    """
    ax = axes(ax)
    for rule, rows in table.groupby("rule", sort=False):
        style = "-o" if bool(rows["sound"].all()) else "--x"
        ax.semilogx(rows["T"], rows["delta"] / rows["optimal_delta"], style, markersize=3, label=str(rule))
    ax.axhline(1.0, color=GREY, linewidth=0.8)
    return finish(ax, "steps", "delta / smallest valid delta at its epsilon")
