"""Analysts who query dependent records: plain reuse beside guards with and without the dependence model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphs.progress_bar import progress_bar
from thresholdout.data.arguments import check_count, check_number
from thresholdout.errors import InputError, InputTypeError
from thresholdout.noise.sources import SeededNoise
from thresholdout.planning.planner import plan
from thresholdout.plotting import BLUE, GREY, ORANGE, axes
from thresholdout.simulation.dependent_records import DependentRecords
from thresholdout.simulation.simulated_session import NaiveReuse, SimulatedGuard, interview

if TYPE_CHECKING:
    import pandas as pd

    from graphs import DependenceModel
    from thresholdout.simulation.simulated_session import Analyst, Answering, Query

__all__ = ["DECLARED", "IGNORED", "REUSE", "Simulation", "simulate"]

# Names of the three ways.
REUSE: Final = "plain reuse"
IGNORED: Final = "as if independent"
DECLARED: Final = "as declared"

# Draws of all records that estimate true values: their error is a fifth of that of a holdout's mean.
_FRESH: Final = 30

_COLOURS: Final = (GREY, ORANGE, BLUE)


@dataclass(frozen=True)
class Simulation:
    """Result of `simulate`: the queries, answers and errors of all simulated sessions.

    A session is one analyst with one mechanism and one draw of the data. Each session is run with several mechanisms:
    plain reuse of the holdout and some guards.

    Attributes
    ----------
    queries : pandas.DataFrame
        One row for each query. ``session`` is the number of the session, ``answers`` the name of the mechanism, and
        ``query`` the number of the query. The other columns are ``answer``, ``half_width``, ``source``, ``train``,
        ``holdout``, ``truth``, ``error`` and ``broken``, which says whether the error exceeds the half-width. For plain
        reuse the half-width is that of a single query fixed in advance, under the true model.

    Examples
    --------
    >>> from graphs import Groups
    >>> from thresholdout.simulation import ClusterAnalyst, simulate
    >>> villages = np.arange(400) // 20
    >>> found = simulate(Groups(villages), ClusterAnalyst(villages // 5), truth=0.5, sessions=2)
    >>> found.table.loc["as declared", ["truth", "broken"]].tolist(), len(found.sessions)
    ([0.5, 0.0], 6)
    """

    queries: pd.DataFrame

    @cached_property
    def sessions(self) -> pd.DataFrame:
        """One row for each session and mechanism: the largest half-width and error, the last answer and its true value.

        The column ``broken`` says whether the interval of some answer missed the true value.
        """
        grouped = self.queries.groupby(["answers", "session"], sort=False)
        found = grouped.agg(
            queries=("query", "size"),
            half_width=("half_width", "max"),
            error=("error", "max"),
            reported=("answer", "last"),
            truth=("truth", "last"),
            broken=("broken", "any"),
        )
        return found.reset_index()

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row for each mechanism: means over its sessions.

        The column ``broken`` is the share of sessions in which the interval of some answer missed the true value.
        """
        grouped = self.sessions.groupby("answers", sort=False)
        return grouped[["half_width", "error", "reported", "truth", "broken"]].mean()

    def plot(self, ax: Any = None) -> Any:
        """Draw the largest error of each session (dots) over the certified half-widths (bars).

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on. If None, a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the drawing.
        """
        ax = axes() if ax is None else ax
        for place, (way, row) in enumerate(self.table.iterrows()):
            errors = self.sessions.loc[self.sessions["answers"] == way, "error"].to_numpy()
            colour = _COLOURS[place % len(_COLOURS)]
            if math.isfinite(row["half_width"]):
                ax.bar(place, row["half_width"], 0.6, color=colour, alpha=0.3)
            spread = np.linspace(-0.2, 0.2, len(errors)) if len(errors) > 1 else np.zeros(1)
            ax.plot(place + spread, errors, "o", color=colour, markersize=4)
        names = [f"{way}\n{_missed(row)}" for way, row in self.table.iterrows()]
        ax.set_xticks(range(len(names)), names)
        ax.set_ylabel("largest error of a session (dots)\nand half-width that was promised (bars)")
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def plot_answers(self, sizes: Sequence[float], ax: Any = None) -> Any:
        """Draw the mean answers and the mean true values of the last queries of a session over their sizes.

        Parameters
        ----------
        sizes : sequence of float
            One size for each of the last queries, such as the numbers of attributes of `FeatureSelectionAnalyst`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on. If None, a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the drawing.

        Raises
        ------
        InputError
            If `sizes` is empty, or some session has fewer answers than sizes.
        """
        fewest = int(self.sessions["queries"].min())
        if not 1 <= len(sizes) <= fewest:
            raise InputError("sizes", f"{len(sizes)}", f"1 to {fewest} sizes, one for each of the last answers")
        ax = axes() if ax is None else ax
        last = self.queries.groupby(["answers", "session"], sort=False).tail(len(sizes)).copy()
        last["size"] = np.tile(np.asarray(sizes), len(last) // len(sizes))
        for place, (way, rows) in enumerate(last.groupby("answers", sort=False)):
            mean = rows.groupby("size")[["answer", "truth"]].mean()
            colour = _COLOURS[place % len(_COLOURS)]
            ax.plot(mean.index, mean["answer"], "o-", color=colour, label=f"{way}: answers")
            ax.plot(mean.index, mean["truth"], "--", color=colour, label=f"{way}: truth")
        ax.legend(frameon=False)
        ax.set_ylabel("accuracy")
        ax.spines[["top", "right"]].set_visible(False)
        return ax


def simulate(
    records: DependenceModel | DependentRecords,
    analyst: Analyst,
    *,
    protection: Mapping[str, DependenceModel | SimulatedGuard] | None = None,
    queries: int | None = None,
    confidence: float = 0.95,
    sessions: int = 20,
    truth: float | None = None,
    seed: int = 0,
) -> Simulation:
    """Simulate an analyst who queries dependent records, with and without the protection of a guard.

    Every session draws a training part and a holdout. The analyst queries the same two with plain reuse of the holdout
    and with each guard. Compare the errors with the certified half-widths to see whether a guard protects against this
    analyst.

    Parameters
    ----------
    records : graphs.DependenceModel or DependentRecords
        Distribution of the records. A model alone stands for ``DependentRecords(model, attributes=1)``.
    analyst : Analyst
        The analyst, such as `ClusterAnalyst`.
    protection : mapping of str to graphs.DependenceModel or SimulatedGuard, optional
        Guards by name. A model stands for the guard that `thresholdout.plan` chooses under this model. If None, two
        guards: "as if independent" assumes independent records, and "as declared" assumes the true model.
    queries : int, optional
        Maximum number of queries for which guards are planned. If None, there is no limit.
    confidence : float, default 0.95
        Probability with which all intervals of a planned guard hold at once, in (0, 1).
    sessions : int, default 20
        Number of sessions.
    truth : float, optional
        The true value of every query, in [0, 1], if it is known, such as 1/2 for labels that are fair coins. If None,
        it is estimated by the mean over 30 fresh draws of all records.
    seed : int, default 0
        Seed of the simulation.

    Returns
    -------
    Simulation
        The tables ``queries``, ``sessions`` and ``table``, the last one with one row for each mechanism, and the
        methods `plot` and `plot_answers`.

    Raises
    ------
    InputError, InputTypeError
        If an argument is out of range or has the wrong type.
    PlanError
        If a guard cannot certify anything about these records.

    Examples
    --------
    >>> from graphs import Groups
    >>> from thresholdout.simulation import ClusterAnalyst, simulate
    >>> villages = np.arange(2000) // 20
    >>> found = simulate(Groups(villages), ClusterAnalyst(villages // 5), truth=0.5, sessions=5)
    >>> found.table["broken"]
    answers
    plain reuse          0.8
    as if independent    0.4
    as declared          0.0
    Name: broken, dtype: float64
    """
    import pandas as pd

    from graphs import DependenceModel, Independent

    law = records if isinstance(records, DependentRecords) else None
    if law is None and not isinstance(records, DependenceModel):
        expected = "a model of graphs, or DependentRecords(model, attributes=...)"
        raise InputTypeError("records", f"a {type(records).__name__}", expected)
    if law is None:
        assert isinstance(records, DependenceModel)
        law = DependentRecords(records, attributes=1)
    check_count("sessions", sessions)
    if truth is not None:
        check_number("truth", truth, -math.ulp(0.0), 1.0, "a number in [0, 1]")
    assumed = {IGNORED: Independent(law.model.n), DECLARED: law.model} if protection is None else protection
    guards = {name: _guard(name, found, law.model.n, queries, confidence) for name, found in assumed.items()}
    rng = np.random.default_rng(seed)
    known = truth if truth is not None else _Truth(law, rng)
    width = law.model.half_width(confidence)
    rows = []
    for session in progress_bar(range(sessions), doing="simulate", unit="sessions"):
        train, holdout, number = law.draw(rng), law.draw(rng), int(rng.integers(2**62))
        for name in (REUSE, *guards):
            mechanism: Answering = NaiveReuse() if name == REUSE else guards[name].renewed(SeededNoise(number))
            held = interview(analyst, mechanism, train, holdout, np.random.default_rng(number), known)
            found = held.table()
            if name == REUSE:  # the interval of one query fixed in advance, under the true model
                found["half_width"] = width
                found["broken"] = found["error"] > width
            found.insert(0, "query", range(len(found)))
            found.insert(0, "answers", name)
            found.insert(0, "session", session)
            rows.append(found)
    return Simulation(pd.concat(rows, ignore_index=True))


class _Truth:
    """The mean of a query over fresh draws of all records."""

    def __init__(self, law: DependentRecords, rng: np.random.Generator) -> None:
        self._fresh = [law.draw(rng) for _ in range(_FRESH)]

    def __call__(self, query: Query) -> float:
        return float(np.mean([query(part).mean() for part in self._fresh]))


def _guard(
    name: str, assumed: DependenceModel | SimulatedGuard, n: int, queries: int | None, confidence: float
) -> SimulatedGuard:
    from graphs import DependenceModel

    if isinstance(assumed, SimulatedGuard):
        return assumed
    checked: object = assumed
    if not isinstance(checked, DependenceModel):
        expected = "a dependence model of graphs, or a SimulatedGuard"
        raise InputTypeError(f"protection[{name!r}]", f"a {type(checked).__name__}", expected)
    if checked.n != n:
        raise InputError(
            f"protection[{name!r}]", f"a model of {checked.n} records", f"a model of {n} records, as are drawn"
        )
    parameters = plan(checked, queries=queries, confidence=confidence).parameters
    return SimulatedGuard(parameters, checked, SeededNoise(0), confidence)


def _missed(row: pd.Series) -> str:
    return f"{row['broken']:.0%} of sessions missed"
