"""The error tree.

::

    ThresholdoutError
    ├── InputError (ValueError)         an argument that cannot be used: .argument, .seen, .expected, .advice
    │   ├── InputTypeError (TypeError)      its type cannot be used
    │   └── OverlapError                    training and holdout part share records or groups
    ├── BudgetExhausted                 the guard answers no more queries: .spent, .limit, .what
    ├── EvaluationFileError             a log or a table of scores that cannot be used: .path, .reason
    ├── EvaluationSetUsed               the planned checks or surprises of an evaluation set are used up
    ├── EngineFailed                    an engine could not count data in files or a cluster: .part, .reason, .late
    ├── PlanError                       no parameters reach the target: .reason
    ├── SharingError (TypeError)        a guard cannot be reached, or would be copied into another process
    └── LedgerError                     the store of the guard's state: .location
        ├── LedgerDamaged                   its history is not the one that was written: .query
        ├── LedgerMismatch                  it belongs to other data or other parameters
        ├── LedgerClosed                    this guard answers elsewhere, or not at all: .why
        ├── LedgerEncrypted                 its secrets are encrypted, and the key is missing or wrong
        └── LedgerUnusable                  not a ledger, not readable or not writable
    SearchExhausted (BaseException)     ends a search that catches errors: .what, .spent, .limit
    SearchFailed (BaseException)        the same, if the guard or its ledger cannot be reached: .reason
    GuardExhaustedWarning (UserWarning) a search goes on without its exhausted guard
    IndexColumnWarning (UserWarning)    a table's first column is an index without a name, and is dropped
    WideAnswersWarning (UserWarning)    the intervals of a new guard will be wide, or useless
    DevelopmentOverfitWarning (UserWarning) the guarded records refute a score of the development part
    LikelyMistakeWarning (UserWarning)  something about the data, or an answer, looks like a mistake
    MechanismWarning (UserWarning)      a new guard answers by another mechanism than the default
    LedgerPlaceWarning (UserWarning)    a ledger is on a network file system, where locks may not hold
    UnencryptedLedgerWarning (UserWarning) the environment has a key, and this ledger keeps its secrets in plain text

Errors about arguments are also ``ValueError`` (or ``TypeError``), for callers that do not know this package. Arguments
are checked before any budget, noise or file is touched.
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
    """Training and holdout part share records, which are therefore not protected.

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
    """The guard answers no more queries.

    Parameters
    ----------
    what : {"budget", "queries", "error_budget", "epsilon", "width", "allowance", "quota"}
        The limit that was reached: answers from the holdout, queries, the error budget, the declared epsilon, or
        `max_half_width` for this query only; or the information (`allowance`) or queries (`quota`) of one client only.
    spent, limit : int
        Number of uses, and its limit; for other limits the number of queries so far, twice.

    Examples
    --------
    >>> try:
    ...     raise BudgetExhausted("queries", spent=100, limit=100)
    ... except BudgetExhausted as error:
    ...     print(error)
    All 100 queries of this guard are used. Earlier answers stay valid; new queries need a new holdout.
    """

    def __init__(self, what: str, spent: int, limit: int) -> None:
        self.what = what
        self.spent = spent
        self.limit = limit
        used = f"All {limit} {'answers from the holdout' if what == 'budget' else 'queries'} of this guard are used."
        if what == "error_budget":
            used = f"The error budget is exhausted after {spent} queries."
        if what == "epsilon":
            used = f"The epsilon of this guard's answers is exhausted after {spent} queries."
        then = "Earlier answers stay valid; new queries need a new holdout."
        if what == "width":
            used = f"After {spent} queries this one would have a half-width above max_half_width."
            then = "It was refused free of charge; a guard without max_half_width answers it."
        if what in ("allowance", "quota"):
            used = f"All {limit} queries of this client are used."
            if what == "allowance":
                used = f"After {spent} queries this client's answers have released all the information that they may."
            then = "The query was refused free of charge; others may still ask."
        super().__init__(f"{used} {then}")

    def __reduce__(self) -> tuple[type[BudgetExhausted], tuple[str, int, int]]:
        return (type(self), (self.what, self.spent, self.limit))


class SearchExhausted(BaseException):
    """A guard was exhausted during a search, and the search ends.

    It is a ``BaseException``, like ``asyncio.CancelledError``, because scikit-learn's searches catch every
    ``Exception`` of a scorer and store NaN, so that a search without answers would look like a finished one. Its
    ``__cause__`` is the `BudgetExhausted` in the process that asked; `reason` is one everywhere.

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
            f"{self.reason} The search stops here; the answers so far are in guard.history. "
            "GuardedSearchCV(search, guard, candidates=...) asks about the best by cross-validation only. To let a "
            "search go on instead, choose exhausted='nan' or 'train', or 'stop' if some candidates are answered."
        )

    @property
    def reason(self) -> BudgetExhausted:
        """The guard's refusal."""
        return BudgetExhausted(self.what, self.spent, self.limit)

    def __reduce__(self) -> tuple[type[SearchExhausted], tuple[str, int, int]]:
        return (type(self), (self.what, self.spent, self.limit))


class SearchFailed(BaseException):
    """A guard could not answer during a search, and the search ends.

    Its ledger was moved or closed, or the process that holds it is gone. It is a ``BaseException`` for the same reason
    as `SearchExhausted`: a search would store NaN for candidates without a query.

    Parameters
    ----------
    reason : LedgerError or SharingError
        The failure, which is also the ``__cause__`` in the process that asked.

    Examples
    --------
    >>> ended = SearchFailed(LedgerClosed("guard.db", "moved to other.db"))
    >>> print(ended.reason)
    ledger guard.db: this guard was closed and answers no more here: moved to other.db
    """

    def __init__(self, reason: LedgerError | SharingError) -> None:
        self.reason = reason
        super().__init__(f"{str(reason).removesuffix('.')}. The search stops here; its answers stay in the ledger.")

    def __reduce__(self) -> tuple[type[SearchFailed], tuple[LedgerError | SharingError]]:
        return (type(self), (self.reason,))


class GuardExhaustedWarning(UserWarning):
    """A guard is exhausted, and a search or a training loop goes on without it.

    Examples
    --------
    Silence it for a search that may go on without answers:

    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=GuardExhaustedWarning)
    """


class DevelopmentOverfitWarning(UserWarning):
    """A development part gives a model a better score than the guarded records allow.

    Examples
    --------
    Stop hill climbing there:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=DevelopmentOverfitWarning)
    """


class LikelyMistakeWarning(UserWarning):
    """Something about the data, or about an answer, looks like a mistake.

    A column of the training part suggests groups of records or a time order, and nothing is declared. The labels' type
    declares a class that no training record has. An answer, a comparison or a gate's verdict is far from its
    cross-validated training value. Only public values decide: names, types, the training part, and answers given.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=LikelyMistakeWarning)  # if it is none
    """


class WideAnswersWarning(UserWarning):
    """A new guard will have half-widths of 0.1 of the range and more, or it has fewer than 300 records.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> from thresholdout import Thresholdout
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     guard = Thresholdout(np.arange(30.0))
    >>> print(str(said[0].message)[:54])
    The intervals of this guard will be useless: about ± 0
    >>> warnings.filterwarnings("ignore", category=WideAnswersWarning)  # if that is known
    """


class MechanismWarning(UserWarning):
    """A new guard answers by another mechanism than the default, because of how its records depend on each other.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=MechanismWarning)  # if that is known
    """


class PlanError(ThresholdoutError):
    """No parameters reach the target.

    Parameters
    ----------
    reason : str
        The obstacle, and advice.

    Examples
    --------
    >>> try:
    ...     raise PlanError("20 records do not reach a width of 0.001. Take more.")
    ... except PlanError as error:
    ...     print(error.reason)
    20 records do not reach a width of 0.001. Take more.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class EngineFailed(ThresholdoutError):
    """The engine of data in files, a data base or a cluster could not count them.

    The request cannot fail for a value of a record, so the failure shows nothing about values: a file is missing,
    damaged or changed, or memory or a worker is gone.

    Parameters
    ----------
    part : str
        The part of the data.
    reason : str
        The failure; the engine's own error is the ``__cause__``.
    late : bool, default=False
        Whether a first pass had ended, which shows that a second one was needed. A guard charges this.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> part = LazyPart(pl.scan_parquet("missing.parquet", schema={"y": pl.Int64}), "holdout")
    >>> try:
    ...     part.n
    ... except EngineFailed as error:
    ...     print(error)
    holdout: FileNotFoundError while its records were counted. ...
    """

    def __init__(self, part: str, reason: str, late: bool = False) -> None:
        self.part = part
        self.reason = reason
        self.late = late
        super().__init__(f"{part}: {reason}. Nothing was released, and the query can be asked again.")

    def __reduce__(self) -> tuple[type[EngineFailed], tuple[str, str, bool]]:
        return (type(self), (self.part, self.reason, self.late))


class EvaluationFileError(ThresholdoutError):
    """A log or a table of scores that cannot be used.

    Parameters
    ----------
    path : str
        The file.
    reason : str
        The fault, and advice.

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
    5 of 5 planned surprises are used up (120 of 300 checks). Add new items by refresh.
    """

    def __init__(self, done: int, checks: int, surprised: int, surprises: int) -> None:
        self.done = done
        self.checks = checks
        self.surprised = surprised
        self.surprises = surprises
        used = f"{surprised} of {surprises} planned surprises are used up ({done} of {checks} checks)"
        if done >= checks:
            used = f"{done} of {checks} planned checks are used up"
        super().__init__(f"{used}. Add new items by refresh.")

    def __reduce__(self) -> tuple[type[EvaluationSetUsed], tuple[int, int, int, int]]:
        return (type(self), (self.done, self.checks, self.surprised, self.surprises))


class SharingError(ThresholdoutError, TypeError):
    """A guard or a scorer cannot be used in this process: its own has ended, or two would spend the same budget.

    Examples
    --------
    >>> error = SharingError("The process that held this guard has ended.")
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
        The fault, and advice.

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
        The first wrong entry; None if it is not about one entry.
    reason : str
        The fault.

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
    """A closed guard: its history remains, and it answers no more queries here.

    Parameters
    ----------
    location : str
        The file or address.
    why : str
        The reason that was given, such as the guard's new place.

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
    """The ledger's secrets are encrypted, and the key is missing or wrong.

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
    """The first column of a table has no name, as `pandas.DataFrame.to_csv` writes an index, and is dropped.

    Examples
    --------
    Silence it for tables that are known to be written so:

    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=IndexColumnWarning)
    """


class LedgerPlaceWarning(UserWarning):
    """A ledger's file is on a network file system, where the locks of other machines may not hold.

    Examples
    --------
    Silence it on a file system whose locks are known to hold:

    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=LedgerPlaceWarning)
    """


class UnencryptedLedgerWarning(UserWarning):
    """The environment has a key, and this ledger keeps its secrets in plain text.

    Examples
    --------
    Make it an error, so that no ledger stays in plain text:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=UnencryptedLedgerWarning)
    """


def outside() -> int:
    """Return the ``stacklevel`` at which a warning of the calling function shows the line of the user's code."""
    level, frame = 1, sys._getframe(1)
    while str(frame.f_globals.get("__name__", "")).startswith("thresholdout.") and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level
