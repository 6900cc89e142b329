"""The tables behind the figures of the fixed-size paper [B24], and one picture of each.

Figure 5 and the lower halves of Figures 4 and 10 need a GPU and are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.plotting import axes, finish
from thresholdout.privacy.accounting.accountants.renyi_conversion import EdgeOrderWarning, rdp_to_epsilon
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import Floats
from thresholdout.privacy.accounting.minibatches.moments import rdp_wang
from thresholdout.privacy.accounting.minibatches.poisson import rdp_poisson
from thresholdout.privacy.accounting.minibatches.replace_one import TaylorSeries
from thresholdout.privacy.accounting.minibatches.with_replacement import rdp_fswr, rdp_fswr_lower
from thresholdout.privacy.accounting.minibatches.without_replacement import rdp_fswor
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["figure1", "figure2", "figure3", "figure4", "figure6", "figure7", "figure8", "figure9", "picture"]

SIGMA, BATCH, RECORDS, STEPS = 6.0, 120, 50_000, 104_000
RATE = BATCH / RECORDS
PAPER_ORDERS = 1 + 10 ** np.linspace(-1, 1.5, 500)


def figure1() -> pd.DataFrame:
    """Return the lower bound with replacement at integer orders, for several batch sizes at the same rate.

    Returns
    -------
    DataFrame
        One row per order, one column per batch size: sigma 6, q = 0.001; exact for a removed record.
    """
    import pandas as pd

    rows = {b: [rdp_fswr_lower(a, SIGMA, b, 1000 * b) for a in range(2, 11)] for b in (20, 30, 40, 60, 80)}
    return pd.DataFrame(rows, index=pd.Index(range(2, 11), name="order"))


def _replace_one(orders: Floats) -> dict[str, Floats]:
    columns = {"exact add/remove": rdp_fswor(orders, SIGMA, RATE)}
    for m in (3, 4, 5):
        columns[f"Theorem 3.4, m={m}"] = rdp_fswor(
            orders, SIGMA, RATE, adjacency="replace_one", method="taylor", m=m, leading="paper"
        )
    columns["Wang upper"] = rdp_wang(orders, SIGMA, RATE)
    columns["smallest proved"] = rdp_fswor(orders, SIGMA, RATE, adjacency="replace_one")
    return columns


def figure2(orders: Any = None) -> pd.DataFrame:
    """Return the replace-one bounds of one step by order; the exact add/remove value is the lower bound of Wang et al.

    Parameters
    ----------
    orders : array, optional
        Default 1 + 10**x, x from -2 to 1.8.

    Examples
    --------
    >>> f"{figure2([2.0])['Theorem 3.4, m=4'].iloc[0]:.6e}"
    '7.007539e-07'
    """
    import pandas as pd

    grid = 1 + 10 ** np.linspace(-2, 1.8, 96) if orders is None else np.asarray(orders, dtype=float)
    return pd.DataFrame(_replace_one(grid), index=pd.Index(grid, name="order"))


def figure3(deltas: Any = None, orders: Any = None) -> pd.DataFrame:
    """Return epsilon after 104,000 steps by delta, for the bounds of Figure 2, Poisson C.9 and Poisson add/remove.

    Parameters
    ----------
    deltas : array, optional
        Default 1e-4 to 1e-10.
    orders : array, optional
        Default the paper's grid, at whose edge the Poisson add/remove value sits.
    """
    import pandas as pd

    found = np.logspace(-4, -10, 25) if deltas is None else np.asarray(deltas, dtype=float)
    grid = PAPER_ORDERS if orders is None else np.asarray(orders, dtype=float)
    curves = _replace_one(grid)
    curves["Poisson C.9, m=4"] = rdp_poisson(grid, SIGMA, RATE, adjacency="replace_one", method="taylor")
    curves["Poisson add/remove"] = rdp_poisson(grid, SIGMA, RATE)
    with suppress_warnings(EdgeOrderWarning):
        columns = {
            name: [rdp_to_epsilon(grid, STEPS * curve, float(d)).epsilon for d in found]
            for name, curve in curves.items()
        }
    return pd.DataFrame(columns, index=pd.Index(found, name="delta"))


def figure4(deltas: Any = None) -> pd.DataFrame:
    """Return the upper half of Figure 4: Theorem 3.4 with m = 4, Wang et al. and Poisson replace-one.

    Parameters
    ----------
    deltas : array, optional
        As in `figure3`.
    """
    table: pd.DataFrame = figure3(deltas)[["Theorem 3.4, m=4", "Wang upper", "Poisson C.9, m=4"]]
    return table


def figure6(orders: Any = None) -> pd.DataFrame:
    """Return the add/remove bounds of one step by order: exact, and Theorem 3.2 with m = 3 and 4 terms.

    Parameters
    ----------
    orders : array, optional
        Default the integers 2 to 63.
    """
    import pandas as pd

    grid = np.arange(2.0, 64.0) if orders is None else np.asarray(orders, dtype=float)
    columns = {"exact": rdp_fswor(grid, SIGMA, RATE)}
    for m in (3, 4):
        columns[f"Theorem 3.2, m={m}"] = rdp_fswor(grid, SIGMA, RATE, method="taylor", m=m)
    return pd.DataFrame(columns, index=pd.Index(grid, name="order"))


def figure7(orders: Any = None) -> pd.DataFrame:
    """Return replace-one bounds of one step at orders from 50 to 60: fixed size, Poisson as published, Wang et al.

    Parameters
    ----------
    orders : array, optional
    """
    import pandas as pd

    grid = np.linspace(50, 60, 21) if orders is None else np.asarray(orders, dtype=float)
    columns = {
        "Theorem 3.4, m=5": rdp_fswor(
            grid, SIGMA, RATE, adjacency="replace_one", method="taylor", m=5, leading="paper"
        ),
        "Poisson C.9, m=5, published": TaylorSeries(2 * SIGMA, poisson=True, published=True).bound(grid, RATE, 5),
        "Poisson C.9, m=5, proved": rdp_poisson(grid, SIGMA, RATE, adjacency="replace_one", method="taylor", m=5),
        "Wang upper": rdp_wang(grid, SIGMA, RATE),
        "exact add/remove": rdp_fswor(grid, SIGMA, RATE),
    }
    return pd.DataFrame(columns, index=pd.Index(grid, name="order"))


def figure8() -> pd.DataFrame:
    """Return the exact divergence with replacement at order 2, by batch size and noise, at q = 0.001."""
    import pandas as pd

    batches = [2, 5, 10, 20, 30, 50, 75, 100, 150, 200]
    columns = {f"sigma={s}": [rdp_fswr_lower(2, s, b, 1000 * b) for b in batches] for s in (2, 3, 4, 5, 6)}
    return pd.DataFrame(columns, index=pd.Index(batches, name="batch size"))


def figure9(orders: Any = None) -> pd.DataFrame:
    """Return the bounds with replacement by order: Theorem 3.6, Theorem 3.7 with the last index, exact, and without.

    Parameters
    ----------
    orders : array, optional
        Default 1.1 to 10; the lower bound exists at integers only and is NaN elsewhere.
    """
    import pandas as pd

    grid = np.round(np.arange(1.1, 10.05, 0.1), 1) if orders is None else np.asarray(orders, dtype=float)
    columns = {
        "Theorem 3.6, m=4": rdp_fswr(grid, SIGMA, BATCH, RECORDS, method="paper"),
        "Theorem 3.7, last index": np.array(
            [rdp_fswr_lower(int(a), SIGMA, BATCH, RECORDS, indices=[BATCH]) if a == int(a) else np.nan for a in grid]
        ),
        "exact": rdp_fswr(grid, SIGMA, BATCH, RECORDS),
        "without replacement": rdp_fswor(grid, SIGMA, RATE),
    }
    return pd.DataFrame(columns, index=pd.Index(grid, name="order"))


def picture(table: pd.DataFrame, *, ax: Any = None, ylabel: str = "Renyi divergence of one step") -> Any:
    """Draw a table's columns against its index, with a logarithmic vertical axis.

    Parameters
    ----------
    table : DataFrame
        From a function above.
    ax : matplotlib axes, optional
        Where to draw; a new figure otherwise.
    ylabel : str

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> picture(figure6([2.0, 3.0])).get_xlabel()
    'order'
    """
    ax = axes(ax)
    for name in table.columns:
        known = table[name].dropna()
        whole = len(known) == len(table)  # else the column exists at some points only
        ax.plot(
            known.index,
            known,
            linestyle="-" if whole else "none",
            label=str(name),
            marker="." if len(known) < 30 else "",
        )
    if table.index.name == "delta":
        ax.set_xscale("log")
    ax.set_yscale("log")
    return finish(ax, str(table.index.name), ylabel)
