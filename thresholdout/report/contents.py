"""The contents of a report; `thresholdout.report.page` makes its layout."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from thresholdout.errors import InputError, InputTypeError
from thresholdout.ledger.entry import history_frame
from thresholdout.mechanisms.base import AnswerSource
from thresholdout.mechanisms.catalogue import parameters_from_json, parameters_to_json
from thresholdout.mechanisms.claims.gate_states import FREE, PROVED, Verdict
from thresholdout.mechanisms.claims.lists import NOTHING
from thresholdout.planning.declaration import Declaration, read_declaration
from thresholdout.report.page import embedded, render

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.certificates import Certificate
    from thresholdout.ledger import Ledger
    from thresholdout.mechanisms.kind import Parameters

__all__ = ["GuardReport", "report_of"]

# The reason that a move leaves, with the location of the other ledger.
_MOVED = re.compile(r"it was moved to .*; if it is not there, move it again (\(ledger [0-9a-f]+\))", re.DOTALL)


@dataclass(frozen=True)
class GuardReport:
    """Everything public about a guard, at one moment.

    A notebook shows it as its page; `save` writes the page to a file.

    Attributes
    ----------
    title : str
        Heading of the page.
    identity : str
        First characters of the guard's identity in its ledger.
    checkpoint : str
        Checkpoint of the history; ``thresholdout ledger verify --checkpoint`` checks that this history is still there.
    declared : Declaration
        Declaration of the guard.
    chosen : mapping
        Parameters of the mechanism, as a ledger keeps them.
    history : DataFrame
        `Thresholdout.history`.
    certificate : Certificate or None
        ``None`` for a report from the ledger alone, which does not know the dependence between records.
    dependence : str
        The dependence model in words, or empty.
    releases : tuple of str
        Other private releases about the holdout.
    closed : str or None
        Reason for which the guard is closed; after a move without the ledger's location, which may name people and
        machines.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Claims, Thresholdout
    >>> guard = Thresholdout(np.arange(1000.0), queries=10, mechanism=Claims(holdout_answers=2))
    >>> answer = guard.ask(0.25, np.arange(1000) < 250, name="small")
    >>> report = guard.report()
    >>> report.queries, report.spent, "small" in report.html
    (1, 0, True)
    """

    title: str
    identity: str
    checkpoint: str
    declared: Declaration
    chosen: Mapping[str, Any]
    history: pd.DataFrame
    certificate: Certificate | None
    dependence: str
    releases: tuple[str, ...]
    closed: str | None

    @property
    def parameters(self) -> Parameters:
        """Parameters of the mechanism."""
        return parameters_from_json(self.chosen)

    @property
    def answers(self) -> pd.DataFrame:
        """The rows of the history that are answers: not failures, other releases, and decisions about candidates."""
        return self.history[self.history["source"].isin(get_args(AnswerSource))]

    @property
    def queries(self) -> int:
        """Number of queries to the holdout, with failures."""
        return int((~self.history["source"].isin(["release", "note", *FREE])).sum())

    @property
    def candidates(self) -> int:
        """Number of candidates that gates have decided about."""
        return int(self.history["source"].isin(get_args(Verdict)).sum())

    @property
    def certified(self) -> int:
        """Number of candidates that are certified to be better."""
        return int(self.history["source"].isin(PROVED).sum())

    @property
    def failures(self) -> int:
        """Number of queries that failed on the holdout."""
        return int((self.history["source"] == "failed").sum())

    @property
    def information_released(self) -> float | None:
        """Information released by the answers, in nats: the decrease of the logarithm of the error budget.

        It is infinite if the error budget is exhausted, and ``None`` for a mechanism without one.
        """
        risks = self.history["log_error_budget"].dropna()
        if not self.parameters.tells_nats or not len(risks):
            return None if not self.parameters.tells_nats else 0.0
        start = (
            math.log1p(-self.chosen.get("confidence", self.declared.confidence)) - self.parameters.information_released
        )
        left = float(risks.iloc[-1])
        return math.inf if left <= NOTHING else start - left

    @property
    def from_holdout(self) -> int:
        """Number of answers from the holdout."""
        return int((self.history["source"] == "holdout").sum())

    @property
    def spent(self) -> int:
        """Used answers of the budget; 0 where there is none."""
        return 0 if self.budget is None else self.budget - self.remaining

    @property
    def budget(self) -> int | None:
        """Answers from the holdout that the mechanism has; ``None`` for any number."""
        budget = self.chosen.get("budget")
        return None if budget is None else int(budget)

    @property
    def remaining(self) -> int:
        """Remaining answers of the budget; 0 where there is none."""
        known = self.history["remaining"].dropna()
        return int(known.iloc[-1]) if len(known) else self.budget or 0

    @property
    def html(self) -> str:
        """The page: one HTML document without other files, network or scripts.

        Raises
        ------
        ThresholdoutError
            If matplotlib is not installed.
        """
        return render(self)

    def __repr__(self) -> str:
        asked = f"{self.queries:,} {'query' if self.queries == 1 else 'queries'}"
        return f"<GuardReport {self.title!r}: {asked}; save('report.html') writes the page>"

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, and replace an earlier one.

        Parameters
        ----------
        path : str or Path
            The file; its folder must exist.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If there is no such folder, or the path is a folder.
        """
        if not isinstance(path, (str, Path)):
            raise InputTypeError("path", f"a {type(path).__name__}", "the name of a file")
        file = Path(path)
        if file.is_dir() or not file.parent.is_dir():
            seen = f"{file}, which is a folder" if file.is_dir() else f"{file}, in a folder that does not exist"
            raise InputError("path", seen, "a file in an existing folder, such as report.html")
        page = self.html
        handle, partial = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with open(handle, "w", encoding="utf-8") as out:
                out.write(page)
            # A temporary file is private; the page gets the permissions of a new file.
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(partial, 0o666 & ~mask)
            os.replace(partial, file)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
        return file

    def _repr_html_(self) -> str:
        return embedded(self)

    def lowest_is_best(self, answers: pd.DataFrame) -> bool:
        """Return whether all answers are of metrics whose smallest value is best.

        Parameters
        ----------
        answers : DataFrame
            Rows of the history.

        Returns
        -------
        bool
            Whether the metrics of all rows are losses.
        """
        return _are_losses(set(answers["name"]))

    def plot(self, ax: Any = None) -> Any:
        """Draw the history: intervals with names and ties where there are few, and over the queries otherwise.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
            The axes of `thresholdout.plotting.plot_history`.
        """
        from thresholdout.plotting import plot_history

        return plot_history(self.history, ax=ax, lowest_is_best=self.lowest_is_best(self.history))


def report_of(
    ledger: Ledger,
    guard: str,
    *,
    certificate: Certificate | None = None,
    dependence: str = "",
    releases: tuple[str, ...] = (),
    title: str = "",
) -> GuardReport:
    """Return the report of a guard in a ledger.

    Parameters
    ----------
    ledger : Ledger
        The ledger of the guard.
    guard : str
        Identity of the guard.
    certificate : Certificate, optional
        Certificate of its answers.
    dependence : str, default ""
        The dependence model, in words.
    releases : tuple of str, default ()
        Other private releases about its holdout.
    title : str, default ""
        Heading of the page.

    Returns
    -------
    GuardReport
        The report.

    Raises
    ------
    InputError
        If the title is the name of a file, or UTF-8 cannot encode it.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Claims, Thresholdout
    >>> from thresholdout.ledger import MemoryLedger
    >>> ledger = MemoryLedger()
    >>> guard = Thresholdout(np.arange(1000.0), queries=10, mechanism=Claims(holdout_answers=2), ledger=ledger)
    >>> report_of(ledger, ledger.guards()[0]).certificate is None
    True
    """
    if not isinstance(title, str):
        raise InputTypeError("title", f"a {type(title).__name__}", "text")
    if title.lower().endswith((".html", ".htm", ".pdf", ".svg", ".png")):
        raise InputError(
            "title", f"{title!r}, the name of a file", "a heading", f"report().save({title!r}) writes a file."
        )
    if any("\ud800" <= letter <= "\udfff" for letter in title):
        raise InputError("title", ascii(title), "text that UTF-8 can encode")
    declared, chosen = read_declaration(ledger, guard)
    closed = ledger.closed(guard)
    return GuardReport(
        title=title or "A guarded holdout",
        identity=guard[:12],
        checkpoint=ledger.checkpoint(guard),
        declared=declared,
        chosen=parameters_to_json(chosen),
        history=history_frame(ledger.entries(guard), chosen.approximation),
        certificate=certificate,
        dependence=dependence,
        releases=releases,
        closed=None if closed is None else _MOVED.sub(r"it was moved to another ledger \1", closed),
    )


def _are_losses(names: set[str]) -> bool:
    """Return whether all names are of metrics whose smallest value is best."""
    from thresholdout.scoring.statistics import get_score

    try:
        metrics = {name.removesuffix(", final check").partition("(")[0] for name in names}  # without their arguments
        return bool(metrics) and not any(get_score(name).greater_is_better for name in metrics)
    except InputError:  # no metric's name
        return False
