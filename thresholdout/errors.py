"""The error tree.

::

    ThresholdoutError
    ├── InputError (ValueError)         an argument that cannot be used: .argument, .seen, .expected, .advice
    │   ├── InputTypeError (TypeError)      its type cannot be used
    │   └── OverlapError                    training and holdout part share records or groups
    ├── BudgetExhausted                 the guard answers no more: .spent, .limit, .what
    ├── EvaluationFileError             a log or a table of scores that cannot be used: .path, .reason
    ├── EvaluationSetUsed               the planned checks or surprises of an evaluation set are used up
    ├── EngineFailed                    data that lie in files or a cluster could not be counted: .part, .reason, .late
    ├── PlanError                       no parameters reach the target: .reason
    ├── SharingError (TypeError)        a guard that cannot be reached, or would be copied into another process
    └── LedgerError                     the store of the guard's state: .location
        ├── LedgerDamaged                   its history is not the one that was written: .query
        ├── LedgerMismatch                  it belongs to other data or other parameters
        ├── LedgerClosed                   this guard answers elsewhere, or no more: .why
        ├── LedgerEncrypted                    its secrets are encrypted, and the key is missing or another
        └── LedgerUnusable                  not a ledger, not readable or not writable
    SearchExhausted (BaseException)     ends a search that swallows errors: .what, .spent, .limit
    SearchFailed (BaseException)        the same, when the guard or its ledger can't be reached: .reason
    GuardExhaustedWarning (UserWarning) a guard answers no more, and the search goes on without it
    IndexColumnWarning (UserWarning)    a table's first column is an index without a name, and is left out
    WideAnswersWarning (UserWarning)    the answers of a new guard will be wide, or say next to nothing
    DevelopmentOverfitWarning (UserWarning) the guarded records refute a score of the development part
    LikelyMistakeWarning (UserWarning)  something about the data, or an answer, looks like a mistake
    MechanismWarning (UserWarning)      a new guard answers by another mechanism than the default
    LedgerPlaceWarning (UserWarning)   a ledger is on a network file system, where locks may not hold
    UnencryptedLedgerWarning (UserWarning) the environment has a key, and this ledger keeps its secrets in plain text

Errors about arguments are also ``ValueError`` (or ``TypeError``), so that callers who know nothing of this
package can handle them. Validation comes before any budget, noise or file is touched.
"""

from __future__ import annotations

import sys

from graphs.errors import ArgumentError

__all__ = [
    "BudgetExhausted",
    "DevelopmentOverfitWarning",
    "EngineFailed",
    "EvaluationFileError",
    "EvaluationSetUsed",
    "GuardExhaustedWarning",
    "IndexColumnWarning",
    "InputError",
    "InputTypeError",
    "LedgerClosed",
    "LedgerDamaged",
    "LedgerEncrypted",
    "LedgerError",
    "LedgerMismatch",
    "LedgerPlaceWarning",
    "LedgerUnusable",
    "LikelyMistakeWarning",
    "MechanismWarning",
    "OverlapError",
    "PlanError",
    "SearchExhausted",
    "SearchFailed",
    "SharingError",
    "ThresholdoutError",
    "UnencryptedLedgerWarning",
    "WideAnswersWarning",
    "outside",
]


class ThresholdoutError(Exception):
    """Base of every error that this package raises on purpose.

    Examples
    --------
    >>> from thresholdout import plan
    >>> try:
    ...     plan(0, queries=100)
    ... except ThresholdoutError as error:
    ...     print(type(error).__name__, error)
    InputError records must be an integer of at least 1; got 0.
    """


class InputError(ThresholdoutError, ArgumentError):
    """An argument that cannot be used; see `graphs.errors.ArgumentError` for the attributes.

    Examples
    --------
    >>> error = InputError("confidence", 1.5, "a number between 0 and 1")
    >>> print(error)
    confidence must be a number between 0 and 1; got 1.5.
    >>> error.argument, isinstance(error, ValueError)
    ('confidence', True)
    """


class InputTypeError(InputError, TypeError):
    """An argument whose type cannot be used.

    Examples
    --------
    >>> from thresholdout.ledger import open_ledger
    >>> open_ledger(3)
    Traceback (most recent call last):
    thresholdout.errors.InputTypeError: ledger must be a path, a Ledger, or None for one in memory; got an int.
    """


class OverlapError(InputError):
    """Training and holdout part share records, so nothing about these is protected.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Thresholdout
    >>> X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    >>> try:
    ...     Thresholdout((X[8:], y[8:]), train=(X[:10], y[:10]))
    ... except OverlapError as error:
    ...     print(error.argument)
    train
    """


class BudgetExhausted(ThresholdoutError):
    """The guard answers no more.

    Parameters
    ----------
    what : {"budget", "queries", "error_budget", "epsilon", "width", "allowance", "quota"}
        Which limit was reached: answers from the holdout, queries in all, the risk that was left, the declared
        epsilon, or the declared `max_half_width` by this query, while others may still be answered; or what
        one client may be told (`allowance`) or ask (`quota`), while others may still ask.
    spent, limit : int
        How many were used, and how many there were; queries so far, twice, where risk, half-width or an
        allowance is the limit.

    Examples
    --------
    >>> try:
    ...     raise BudgetExhausted("queries", spent=100, limit=100)
    ... except BudgetExhausted as error:
    ...     print(error)
    all 100 queries of this guard are used; earlier answers stay valid, new queries need a new holdout
    """

    def __init__(self, what: str, spent: int, limit: int) -> None:
        self.what = what
        self.spent = spent
        self.limit = limit
        used = f"all {limit} {'answers from the holdout' if what == 'budget' else 'queries'} of this guard are used"
        if what == "error_budget":
            used = f"after {spent} queries and what else was told nothing is left of this guard's risk"
        if what == "epsilon":
            used = f"after {spent} queries nothing is left of the epsilon of this guard's answers"
        then = "; earlier answers stay valid, new queries need a new holdout"
        if what == "width":
            used = f"after {spent} queries this one would have a half-width above max_half_width"
            then = "; it was refused free of charge, and a guard without max_half_width answers it"
        if what in ("allowance", "quota"):
            used = f"all {limit} queries of this client are used"
            if what == "allowance":
                used = f"after {spent} queries this client's answers have released all the information that they may"
            then = "; it was refused free of charge, and others may still ask"
        super().__init__(used + then)

    def __reduce__(self) -> tuple[type[BudgetExhausted], tuple[str, int, int]]:
        return (type(self), (self.what, self.spent, self.limit))


class SearchExhausted(BaseException):
    """A guard ran out in the middle of a search, and the search ends.

    Derived from ``BaseException``, as ``asyncio.CancelledError`` is: scikit-learn's searches catch every ``Exception``
    of a scorer and store a NaN instead, so that a search without answers would look like a finished one. The
    `BudgetExhausted` behind it is its ``__cause__`` in the process that asked, and `reason` everywhere.

    Parameters
    ----------
    what : {"budget", "queries"}
    spent, limit : int
        As in `BudgetExhausted`.

    Examples
    --------
    >>> ended = SearchExhausted("queries", spent=100, limit=100)
    >>> ended.what, ended.limit, isinstance(ended, Exception)
    ('queries', 100, False)
    """

    def __init__(self, what: str, spent: int, limit: int) -> None:
        self.what = what
        self.spent = spent
        self.limit = limit
        super().__init__(
            f"{self.reason}. The search stops here; the answers so far are in guard.history. "
            "GuardedSearchCV(search, guard, candidates=...) asks about the best by cross-validation only. To let a "
            "search go on instead, choose exhausted='nan' or 'train', or 'stop' where some candidates are answered"
        )

    @property
    def reason(self) -> BudgetExhausted:
        """The guard's refusal."""
        return BudgetExhausted(self.what, self.spent, self.limit)

    def __reduce__(self) -> tuple[type[SearchExhausted], tuple[str, int, int]]:
        return (type(self), (self.what, self.spent, self.limit))


class SearchFailed(BaseException):
    """A guard could not answer in the middle of a search, and the search ends.

    Its ledger was moved or closed, or the process that holds it is gone. Derived from ``BaseException`` for the same
    reason as `SearchExhausted`: a search would store NaN for candidates about which nothing was asked.

    Parameters
    ----------
    reason : LedgerError or SharingError
        What happened; ``__cause__`` too, in the process that asked.

    Examples
    --------
    >>> ended = SearchFailed(LedgerClosed("guard.db", "moved to other.db"))
    >>> print(ended.reason)
    ledger guard.db: this guard was closed and answers no more here: moved to other.db
    """

    def __init__(self, reason: LedgerError | SharingError) -> None:
        self.reason = reason
        super().__init__(f"{reason}. The search stops here; answers that were given stay in the ledger")

    def __reduce__(self) -> tuple[type[SearchFailed], tuple[LedgerError | SharingError]]:
        return (type(self), (self.reason,))


class GuardExhaustedWarning(UserWarning):
    """A guard answers no more, and a search or a training loop goes on without it.

    Examples
    --------
    A search that may go on without answers, and nothing said about it:

    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=GuardExhaustedWarning)
    """


class DevelopmentOverfitWarning(UserWarning):
    """A development part gives a model a better score than the guarded records allow.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("error", category=DevelopmentOverfitWarning)  # to stop a climb there
    """


class LikelyMistakeWarning(UserWarning):
    """Something about the data, or about an answer, looks like a mistake.

    A column of the training part says that records belong together, or stand in time, and nothing is declared. The
    labels' type declares a class that no training record has. An answer, a comparison or a gate's verdict is far from
    its cross-validated training value. Public numbers alone decide whether it is said: names, types, the training
    part, and answers that were given.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=LikelyMistakeWarning)  # where it is none
    """


class WideAnswersWarning(UserWarning):
    """The answers of a new guard will have half-widths of 0.1 of the range and more, or it has fewer than 300 records.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> from thresholdout import Thresholdout
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     guard = Thresholdout(np.arange(30.0))
    >>> print(str(said[0].message)[:57])
    the answers of this guard will say next to nothing: about
    >>> warnings.filterwarnings("ignore", category=WideAnswersWarning)  # where that is known
    """


class MechanismWarning(UserWarning):
    """A new guard answers by another mechanism than the default, because of how its records depend on each other.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=MechanismWarning)  # where that is known
    """


class PlanError(ThresholdoutError):
    """No parameters reach the target.

    Parameters
    ----------
    reason : str
        What stands in the way, and what would help.

    Examples
    --------
    >>> try:
    ...     raise PlanError("20 records do not reach a width of 0.001; take more")
    ... except PlanError as error:
    ...     print(error.reason)
    20 records do not reach a width of 0.001; take more
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class EngineFailed(ThresholdoutError):
    """The engine of data that lie in files, a data base or a cluster did not count them.

    What it was asked for cannot fail for a value of a record, so nothing about a value is told by this: a file is
    missing, damaged or changed, memory or a worker is gone.

    Parameters
    ----------
    part : str
        Which part of the data.
    reason : str
        What happened; what the engine said is the ``__cause__``.
    late : bool
        Whether a first pass had come to an end, so that there is something to know: that a second one was needed. A
        guard charges this.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> part = LazyPart(pl.scan_parquet("missing.parquet", schema={"y": pl.Int64}), "holdout")
    >>> try:
    ...     part.n
    ... except EngineFailed as error:
    ...     print(error)
    holdout: FileNotFoundError while its records were counted; ...
    """

    def __init__(self, part: str, reason: str, late: bool = False) -> None:
        self.part = part
        self.reason = reason
        self.late = late
        super().__init__(f"{part}: {reason}; no record was told about, and the query can be asked again")

    def __reduce__(self) -> tuple[type[EngineFailed], tuple[str, str, bool]]:
        return (type(self), (self.part, self.reason, self.late))


class EvaluationFileError(ThresholdoutError):
    """A log or a table of scores that cannot be used.

    Parameters
    ----------
    path : str
        The file.
    reason : str
        What is wrong with it, and what to do.

    Examples
    --------
    >>> print(EvaluationFileError("pr.eval", "it has no samples; run the evaluation again"))
    pr.eval: it has no samples; run the evaluation again
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")

    def __reduce__(self) -> tuple[type[EvaluationFileError], tuple[str, str]]:
        return (type(self), (self.path, self.reason))


class EvaluationSetUsed(ThresholdoutError):
    """The planned checks, or the planned surprises, of an evaluation set are used up.

    Parameters
    ----------
    done, checks : int
        Checks so far, and planned.
    surprised, surprises : int
        Unexpected outcomes so far, and planned.

    Examples
    --------
    >>> print(EvaluationSetUsed(120, 300, 5, 5))
    5 of 5 planned surprises are used up (120 of 300 checks); add new items by refresh
    """

    def __init__(self, done: int, checks: int, surprised: int, surprises: int) -> None:
        self.done = done
        self.checks = checks
        self.surprised = surprised
        self.surprises = surprises
        used = f"{surprised} of {surprises} planned surprises are used up ({done} of {checks} checks)"
        if done >= checks:
            used = f"{done} of {checks} planned checks are used up"
        super().__init__(f"{used}; add new items by refresh")

    def __reduce__(self) -> tuple[type[EvaluationSetUsed], tuple[int, int, int, int]]:
        return (type(self), (self.done, self.checks, self.surprised, self.surprises))


class SharingError(ThresholdoutError, TypeError):
    """A guard or a scorer cannot be used in this process: its own is gone, or two would spend the same budget.

    Examples
    --------
    >>> error = SharingError("the process that held this guard is gone")
    >>> isinstance(error, ThresholdoutError), isinstance(error, TypeError)
    (True, True)
    """


class LedgerError(ThresholdoutError):
    """Something is wrong with the store of a guard's state.

    Parameters
    ----------
    location : str
        The file or address.
    reason : str
        What is wrong, and what to do.

    Examples
    --------
    >>> from thresholdout.ledger import open_ledger
    >>> try:
    ...     open_ledger("missing/guard.db", must_exist=True)
    ... except LedgerError as error:
    ...     print(type(error).__name__, error.location)
    LedgerUnusable missing/guard.db
    """

    def __init__(self, location: str, reason: str) -> None:
        self.location = location
        self.reason = reason
        super().__init__(f"ledger {location}: {reason}")

    def __reduce__(self) -> tuple[type[LedgerError], tuple[str, str]]:
        return (type(self), (self.location, self.reason))


class LedgerDamaged(LedgerError):
    """A history that is not the one that was written: changed, cut or replaced.

    Parameters
    ----------
    location : str
        The file or address.
    query : int or None
        The first entry that is wrong; None when it is not about one entry.
    reason : str
        What is wrong.

    Examples
    --------
    >>> error = LedgerDamaged("guard.db", 3, "this entry is not the one that was written")
    >>> print(error)
    ledger guard.db: this entry is not the one that was written
    >>> error.query
    3
    """

    def __init__(self, location: str, query: int | None, reason: str) -> None:
        self.query = query
        super().__init__(location, reason)

    def __reduce__(self) -> tuple[type[LedgerDamaged], tuple[str, int | None, str]]:  # type: ignore[override]
        return (type(self), (self.location, self.query, self.reason))


class LedgerMismatch(LedgerError):
    """The ledger belongs to other data, or to a guard with other parameters.

    Examples
    --------
    >>> from thresholdout.ledger import MemoryLedger, export_history
    >>> export_history(MemoryLedger(), "guard", "history.jsonl")
    Traceback (most recent call last):
    thresholdout.errors.LedgerMismatch: ledger memory: holds no guard 'guard'...
    """


class LedgerClosed(LedgerError):
    """A guard that was closed: its history stays, and it answers no more here.

    Parameters
    ----------
    location : str
        The file or address.
    why : str
        What was said when it was closed, such as where it went.

    Examples
    --------
    >>> from thresholdout.ledger import MemoryLedger
    >>> ledger = MemoryLedger()
    >>> guard = ledger.create("guard", {"budget": 2}, "state 0")
    >>> ledger.close_guard(guard, "the project ended")
    >>> ledger.closed(guard)
    'the project ended'
    """

    def __init__(self, location: str, why: str) -> None:
        self.why = why
        super().__init__(location, f"this guard was closed and answers no more here: {why}")

    def __reduce__(self) -> tuple[type[LedgerClosed], tuple[str, str]]:
        return (type(self), (self.location, self.why))


class LedgerEncrypted(LedgerError):
    """Its secrets are encrypted, and the key is missing, or it is another one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresholdout.ledger import new_key, open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "guard.db")
    >>> open_ledger(file, key=new_key()).close()
    >>> try:
    ...     open_ledger(file)
    ... except LedgerEncrypted as error:
    ...     print(Path(error.location).name)
    guard.db
    >>> folder.cleanup()
    """


class LedgerUnusable(LedgerError):
    """Not a ledger, or one that cannot be read or written.

    Examples
    --------
    >>> from thresholdout.ledger import open_ledger
    >>> open_ledger("missing/guard.db", must_exist=True)
    Traceback (most recent call last):
    thresholdout.errors.LedgerUnusable: ledger missing/guard.db: there is no such file; check its name, or create it
    """


class IndexColumnWarning(UserWarning):
    """The first column of a table has no name, as `pandas.DataFrame.to_csv` writes an index, and is left out.

    Examples
    --------
    For tables that are known to be written so:

    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=IndexColumnWarning)
    """


class LedgerPlaceWarning(UserWarning):
    """A ledger's file is where the locks of other machines may not hold.

    Examples
    --------
    On a file system whose locks are known to hold:

    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=LedgerPlaceWarning)
    """


class UnencryptedLedgerWarning(UserWarning):
    """The environment has a key, and this ledger keeps its secrets in plain text.

    Examples
    --------
    To be told by an error, so that no ledger stays in plain text:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=UnencryptedLedgerWarning)
    """


def outside() -> int:
    """Return the ``stacklevel`` at which a warning of the calling function shows the line of the user's code."""
    level, frame = 1, sys._getframe(1)
    while str(frame.f_globals.get("__name__", "")).startswith("thresholdout.") and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level
