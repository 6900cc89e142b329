"""Pictures. Every function takes ``ax=None`` and returns the axes it drew on; matplotlib is the ``plot`` extra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thresholdout.errors import ThresholdoutError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["axes", "drawable", "finish", "plot_history"]

_LARGEST = 1e100
BLUE, ORANGE, GREY = "#0b6fa4", "#d95f02", "#8a8a8a"


def axes(ax: Any = None) -> Any:
    """Return ``ax``, or the axes of a new figure that needs no screen.

    Raises
    ------
    ThresholdoutError
        When matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ThresholdoutError("pictures need matplotlib: pip install 'thresholdout[plot]'") from None
    return Figure(figsize=(8.0, 4.5), layout="constrained").add_subplot()


def finish(ax: Any, x: str, y: str) -> Any:
    """Label the axes, with a legend and without a frame, and return them."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small")
    return ax


def drawable(history: pd.DataFrame) -> pd.DataFrame:
    """Return the answers whose numbers a picture has room for; what was imported may be of any size."""
    columns = ["train", "value", "low", "high", "lower", "upper"]
    return history[history["source"].isin(["train", "holdout"]) & (history[columns].abs() <= _LARGEST).all(axis=1)]


def plot_history(history: pd.DataFrame, ax: Any = None) -> Any:
    """Draw a guard's history: training values, answers with their half-widths, and where the holdout was used.

    Parameters
    ----------
    history : DataFrame
        `Thresholdout.history`.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes
        Its figure is ``ax.figure``; save it with ``ax.figure.savefig("history.png")``.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Thresholdout
    >>> guard = Thresholdout(np.arange(1000.0), queries=10, budget=2)
    >>> answer = guard.ask(0.25, np.arange(1000) < 250)
    >>> plot_history(guard.history).get_xlabel()
    'question'
    """
    ax = axes(ax)
    history = drawable(history)
    query = history["query"].astype(float)
    ax.vlines(
        query,
        history["low"],
        history["high"],
        color=BLUE,
        alpha=0.25,
        linewidth=1.5,
        label="certified interval",
    )
    ax.plot(query, history["train"], ".", color=GREY, markersize=4, label="training value")
    for source, colour, marker in (("train", BLUE, "o"), ("holdout", ORANGE, "D")):
        rows = history["source"] == source
        if rows.any():
            ax.plot(
                query[rows], history["value"][rows], marker, color=colour, markersize=4, label=f"answer, from {source}"
            )
    ax.set_xlabel("question")
    ax.set_ylabel("answer")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small")
    return ax
