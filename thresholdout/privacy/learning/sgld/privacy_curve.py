"""The loss of the worst-case pair over the epochs, for the parameters that a learner has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thresholdout.errors import InputError
from thresholdout.plotting import axes, finish
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.learning.sgld.iterate_law import proof_epoch
from thresholdout.privacy.learning.sgld.lower_bounds import WorstEpoch, eps_tail, worst_epoch
from thresholdout.privacy.learning.sgld.worst_case_pair import posterior_pair_epsilon

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["pair_curve", "plot_pair_curve", "worst_of_pair"]

MOST_EPOCHS = 500  # that a curve has by default


def _whole(n: int, batch_size: int) -> int:
    """Return the largest number of records that batches divide, with two batches at least."""
    whole = n - n % batch_size
    if whole < 2 * batch_size:
        raise InputError("batch_size", f"{batch_size} of {n} records", "at most half of them, for a curve over epochs")
    return whole


def pair_curve(
    n: int,
    c: float,
    x_h: float,
    *,
    alpha: float,
    beta: float,
    eta: float,
    batch_size: int,
    delta: float,
    steps: int,
    epochs: int | None = None,
) -> pd.DataFrame:
    """Return what iterates and posterior lose on the worst-case pair, epoch by epoch.

    Parameters
    ----------
    n, c, x_h, alpha, beta, eta, batch_size, delta
        As in `eps_tail`; n is rounded down to full batches.
    steps : int
        Of a chain.
    epochs : int, optional
        The last epoch; by default those of the chain, or twice the epoch of the proof where that is more, up to 500.

    Returns
    -------
    DataFrame
        Columns ``epoch``, ``iterate``, ``posterior``.

    Examples
    --------
    >>> curve = pair_curve(100, 300.0, 1.0, alpha=1.0, beta=4.0, eta=1e-5, batch_size=1, delta=0.001, steps=500)
    >>> curve.shape, bool(curve["iterate"].max() > 10 > curve["posterior"].max())
    ((30, 3), True)
    """
    import pandas as pd

    whole = _whole(n, batch_size)
    if epochs is None:
        proof = proof_epoch(whole, x_h, alpha, beta, eta, batch_size=batch_size).epochs
        epochs = min(MOST_EPOCHS, max(2 * proof, -(-steps * batch_size // whole)))
    posterior = posterior_pair_epsilon(whole, c, x_h, alpha, beta, delta=delta)
    rows = [
        (epoch, eps_tail(whole, c, x_h, alpha, beta, epoch, delta=delta, eta=eta, batch_size=batch_size), posterior)
        for epoch in range(1, count(epochs, "epochs") + 1)
    ]
    return pd.DataFrame(rows, columns=["epoch", "iterate", "posterior"])


def worst_of_pair(
    n: int, c: float, x_h: float, *, alpha: float, beta: float, eta: float, batch_size: int, delta: float
) -> WorstEpoch | None:
    """Return the worst epoch of the pair; None where there is no exact law, as with very large step sizes."""
    try:
        whole = _whole(n, batch_size)
        return worst_epoch(whole, c, x_h, alpha, beta, delta=delta, eta=eta, batch_size=batch_size)
    except InputError:
        return None


def plot_pair_curve(curve: pd.DataFrame, delta: float, ax: Any = None) -> Any:
    """Draw a table of `pair_curve`; delta is for the label.

    Examples
    --------
    >>> curve = pair_curve(100, 300.0, 1.0, alpha=1.0, beta=4.0, eta=1e-5, batch_size=1, delta=0.001, steps=500)
    >>> plot_pair_curve(curve, 0.001).get_xlabel()
    'epochs'
    """
    ax = axes(ax)
    ax.plot(curve["epoch"], curve["iterate"], label="iterate after so many epochs: at least")
    ax.plot(curve["epoch"], curve["posterior"], "--", label="one draw from the posterior (never reached): exactly")
    ax.set_ylim(0.0, 1.25 * float(max(curve["iterate"].max(), curve["posterior"].max())))
    return finish(ax, "epochs", f"epsilon of the worst-case pair, nats, at delta = {delta:g}")
