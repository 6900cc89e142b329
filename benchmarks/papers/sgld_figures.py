"""Figure 1 of the paper in its two possible versions, and the table of its theorem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.plotting import axes, finish
from thresholdout.privacy.learning.sgld.iterate_law import proof_epoch
from thresholdout.privacy.learning.sgld.lower_bounds import eps_chernoff, eps_tail, worst_epoch
from thresholdout.privacy.learning.sgld.regression_model import step_size
from thresholdout.privacy.learning.sgld.worst_case_pair import posterior_pair_epsilon

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["figure1_curves", "growth_table", "plot_figure1", "plot_growth"]

RECORDS, ALPHA, BETA, LARGEST, DELTA = 17_864_389, 2.0, 1.0, 1.8, 0.001
"""What the caption of figure 1 says: n, alpha, beta, x_h and delta. It leaves out c."""
RATIO = 20_920_252.506786935
"""Of the curves here: with it, and Claim IV.9's step size, the bound at epoch 48 is 38, as the caption has it."""
VERSIONS = {2.0: "2/u^2, the step of the lemmas", 1.0: "1/u^2, the step of Claim IV.9"}


def figure1_curves(c: float = RATIO, epochs: int = 70) -> pd.DataFrame:
    """Return the lower bounds of figure 1, epoch by epoch, for both step sizes that the paper may mean.

    Parameters
    ----------
    c : float
        The ratio, which the caption leaves out; any choice of it is ours.
    epochs : int
        The last epoch.

    Returns
    -------
    DataFrame
        Columns ``step`` (which version), ``epoch``, ``chernoff`` (what the paper plots) and ``tail``.

    Notes
    -----
    The caption's epsilon' of 38 at epoch 48 cannot come from the step size of the lemmas, whose curve is over by then
    (defect E3). Neither curve is claimed to be the paper's.

    Examples
    --------
    >>> curves = figure1_curves(epochs=30)
    >>> curves.loc[curves.groupby("step")["chernoff"].idxmax(), "epoch"].tolist()
    [30, 25]
    """
    import pandas as pd

    rows = []
    for numerator, name in VERSIONS.items():
        eta = step_size(RECORDS, LARGEST, ALPHA, BETA, numerator)
        for epoch in range(1, epochs + 1):
            setting = (RECORDS, c, LARGEST, ALPHA, BETA, epoch)
            chernoff, tail = (bound(*setting, delta=DELTA, eta=eta) for bound in (eps_chernoff, eps_tail))
            rows.append((name, epoch, chernoff, tail))
    return pd.DataFrame(rows, columns=["step", "epoch", "chernoff", "tail"])


def plot_figure1(curves: pd.DataFrame | None = None, ax: Any = None) -> Any:
    """Draw the lower bounds of figure 1 over the epochs, for both step sizes.

    Parameters
    ----------
    curves : DataFrame, optional
        Of `figure1_curves`.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> plot_figure1(figure1_curves(epochs=3)).get_xlabel()
    'epochs'
    """
    curves = figure1_curves() if curves is None else curves
    ax = axes(ax)
    for colour, (name, part) in zip(("C0", "C1"), curves.groupby("step", sort=False), strict=False):
        ax.plot(part["epoch"], part["chernoff"], colour, label=f"Chernoff (as plotted in the paper), step {name}")
        ax.plot(part["epoch"], part["tail"], colour, linestyle=":", label=f"exact tail, step {name}")
    ax.plot([48], [38], "kx", markersize=9, label="what the caption says: 38 at epoch 48 (c is not given)")
    ax.set_title("SGLD on the worst-case pair, n = 17 864 389, c chosen by us", fontsize=11)
    ax.set_ylim(0.0, 1.45 * float(np.max(curves["tail"])))
    return finish(ax, "epochs", "lower bound on epsilon of the iterate, nats, at delta = 0.001")


def growth_table(
    sizes: Sequence[int] = (100, 300, 1000, 3000, 10_000),
    power: float = 1.4,
    *,
    alpha: float = 1.0,
    beta: float = 4.0,
    x_h: float = 1.0,
    delta: float = 0.001,
) -> pd.DataFrame:
    """Return how the loss of the posterior falls and that of the chain rises with the number of records.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of records.
    power : float
        The ratio is ``c = n^power``.
    alpha, beta, x_h : float
        As in `epoch_law`.
    delta : float
        In (0, 1/2).

    Returns
    -------
    DataFrame
        One row for each number of records ``n``: ``posterior``, the exact epsilon of a draw from the posterior on the
        worst-case pair; ``worst_epoch`` and ``sgld``, the largest `eps_tail`; and ``k_dot``. This pair only: for a
        posterior that is private on a whole domain one needs far more records, see `theorem_parameters`.

    Examples
    --------
    >>> growth_table((100, 300)).round(4).to_dict("list")["posterior"]
    [0.5806, 0.4948]
    """
    import pandas as pd

    rows = []
    for n in sizes:
        c = float(n) ** power
        worst = worst_epoch(n, c, x_h, alpha, beta, delta=delta)
        posterior = posterior_pair_epsilon(n, c, x_h, alpha, beta, delta=delta)
        rows.append((n, posterior, worst.epochs, worst.epsilon, proof_epoch(n, x_h, alpha, beta).k_dot))
    return pd.DataFrame(rows, columns=["n", "posterior", "worst_epoch", "sgld", "k_dot"])


def plot_growth(table: pd.DataFrame | None = None, ax: Any = None) -> Any:
    """Draw the table of `growth_table`.

    Parameters
    ----------
    table : DataFrame, optional
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> plot_growth(growth_table((100, 200))).get_yscale()
    'log'
    """
    table = growth_table() if table is None else table
    ax = axes(ax)
    ax.plot(table["n"], table["sgld"], "o-", label="SGLD at its worst epoch: lower bound")
    ax.plot(table["n"], table["posterior"], "s-", label="one draw from the posterior: exact")
    for n, epoch, epsilon in zip(*(table[name].tolist() for name in ("n", "worst_epoch", "sgld")), strict=True):
        ax.annotate(f"epoch {epoch}", (n, epsilon), (0, 7), textcoords="offset points", ha="center", fontsize=8)
    largest = float(np.max(table["sgld"]))
    ax.set(xscale="log", yscale="log")
    ax.set_ylim(top=3.0 * largest)
    return finish(ax, "records n, with c a power of n", "epsilon of the worst-case pair, nats")
