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

from graphs.errors import amount
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
    """Result of `Thresholdout.report` and `report_of`: everything public about a guard, at one moment.

    A guard (`Thresholdout`) answers queries about a holdout and records each answer in a ledger. The report gathers the
    settings of the guard, its history and its certificate. A notebook shows it as a page, `save` writes the page to a
    file, and `plot` draws the history.

    Attributes
    ----------
    title : str
        Heading of the page.
    identity : str
        First 12 characters of the guard's identity in its ledger.
    checkpoint : str
        Checkpoint of the history. ``thresholdout ledger verify --checkpoint`` checks later that this history is still
        in the ledger.
    declared : Declaration
        Settings with which the guard was made, such as its confidence.
    chosen : mapping
        Parameters of the mechanism, in the form in which the ledger stores them.
    history : DataFrame
        One row for each query or other recorded event, as `Thresholdout.history` returns it.
    certificate : Certificate or None
        Certificate of the answers. None for a report from the ledger alone, which does not know the dependence between
        records.
    dependence : str
        The dependence model in words, or an empty string.
    releases : tuple of str
        Other private releases about the holdout.
    closed : str or None
        Why the guard is closed, or None if it is open. After a move to another ledger the location of that ledger is
        left out, because it may name people and machines.

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
        """Parameters of the mechanism, as an object."""
        return parameters_from_json(self.chosen)

    @property
    def answers(self) -> pd.DataFrame:
        """Rows of the history that are answers, without failures, other releases and decisions about candidates."""
        return self.history[self.history["source"].isin(get_args(AnswerSource))]

    @property
    def queries(self) -> int:
        """Number of queries to the holdout, including failed ones."""
        return int((~self.history["source"].isin(["release", "note", *FREE])).sum())

    @property
    def candidates(self) -> int:
        """Number of candidates about which gates have decided."""
        return int(self.history["source"].isin(get_args(Verdict)).sum())

    @property
    def certified(self) -> int:
        """Number of candidates that gates have certified to be better."""
        return len(self._passed[self._passed["low"] >= 0.0])

    @property
    def tolerated(self) -> int:
        """Number of candidates that gates have certified not to be worse by more than a tolerance."""
        return len(self._passed[self._passed["low"] < 0.0])

    @property
    def _passed(self) -> pd.DataFrame:
        return self.history[self.history["source"].isin(PROVED)]

    @property
    def failures(self) -> int:
        """Number of queries that failed on the holdout."""
        return int((self.history["source"] == "failed").sum())

    @property
    def information_released(self) -> float | None:
        """Information that the answers have released, in nats: the decrease of the logarithm of the error budget.

        It is infinite if the error budget is exhausted, and None if the mechanism has no error budget.
        """
        spent = self.nats_spent
        if spent is None:
            return None
        return float(spent.iloc[-1]) if len(spent) else 0.0

    @property
    def nats_spent(self) -> pd.Series | None:
        """Decrease of the logarithm of the error budget after each event; infinite where nothing is left."""
        if not self.parameters.tells_nats:
            return None
        confidence = self.chosen.get("confidence", self.declared.confidence)
        left = self.history["log_error_budget"].dropna()
        start = math.log1p(-confidence) - self.parameters.information_released
        return (start - left).mask(left <= NOTHING, math.inf)

    @property
    def from_holdout(self) -> int:
        """Number of answers from the holdout."""
        return int((self.history["source"] == "holdout").sum())

    @property
    def spent(self) -> int:
        """Number of answers from the holdout that have been spent. It is 0 if the mechanism has no such budget."""
        return 0 if self.budget is None else self.budget - self.remaining

    @property
    def budget(self) -> int | None:
        """Largest number of answers from the holdout, or None if their number is not limited."""
        budget = self.chosen.get("budget")
        return None if budget is None else int(budget)

    @property
    def remaining(self) -> int:
        """Number of answers from the holdout that remain. It is 0 if the mechanism has no such budget."""
        known = self.history["remaining"].dropna()
        return int(known.iloc[-1]) if len(known) else self.budget or 0

    @property
    def html(self) -> str:
        """The page as one HTML document, which needs no other files, network or scripts.

        Raises
        ------
        ThresholdoutError
            If matplotlib is not installed.
        """
        return render(self)

    def __repr__(self) -> str:
        asked = amount(self.queries, "query")
        return f"<GuardReport {self.title!r}: {asked}; save('report.html') writes the page>"

    def save(self, path: str | Path) -> Path:
        """Write the page to a file. An existing file is replaced.

        Parameters
        ----------
        path : str or Path
            Name of the file. Its folder must exist.

        Returns
        -------
        Path
            Path of the written file.

        Raises
        ------
        InputError
            If the folder does not exist, or the path is a folder.
        InputTypeError
            If `path` is not a str or Path.
        ThresholdoutError
            If matplotlib is not installed.
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

    def plot(self, ax: Any = None) -> Any:
        """Draw the history of answers with their intervals.

        A short history is drawn with the names of the queries, a longer one in the order of the queries.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. If None, a new figure is made.

        Returns
        -------
        matplotlib Axes
            The axes with the drawing, made by `thresholdout.plotting.plot_history`.
        """
        from thresholdout.plotting import drawable, greater_is_better, kinds, main_range, plot_history

        shown = main_range(drawable(self.history))
        about = zip(kinds(shown), shown["name"], strict=True)
        lowest = bool(len(shown)) and all(greater_is_better(kind or name) is False for kind, name in about)
        # Answers about the best score so far belong to no candidate.
        names = None if self.parameters.best_direction is None else False
        return plot_history(self.history, ax=ax, names=names, lowest_is_best=lowest)


def report_of(
    ledger: Ledger,
    guard: str,
    *,
    certificate: Certificate | None = None,
    dependence: str = "",
    releases: tuple[str, ...] = (),
    title: str = "",
) -> GuardReport:
    """Build the report of a guard from its ledger, without the guard or its data.

    `Thresholdout.report` does the same for a guard at hand, and adds its certificate.

    Parameters
    ----------
    ledger : Ledger
        The ledger that stores the guard.
    guard : str
        Identity of the guard, such as an entry of ``ledger.guards()``.
    certificate : Certificate, optional
        Certificate of the answers. If None, the report has no certificate.
    dependence : str, default ""
        The dependence model between records, in words.
    releases : tuple of str, default ()
        Other private releases about the holdout.
    title : str, default ""
        Heading of the page. If empty, "A guarded holdout".

    Returns
    -------
    GuardReport
        The report. `GuardReport.save` writes it as a page, and `GuardReport.history` is the table of all queries.

    Raises
    ------
    InputError
        If the title is the name of a file, such as "report.html", or cannot be encoded in UTF-8.
    InputTypeError
        If the title is not a str.

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
