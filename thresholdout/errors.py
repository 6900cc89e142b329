"""Errors and warnings of the package.

::

    ThresholdoutError
    ├── InputError (ValueError): InputTypeError (TypeError), OverlapError
    ├── BudgetExhausted, EvaluationFileError, EvaluationSetUsed, EngineFailed, PlanError, SharingError (TypeError)
    └── LedgerError: LedgerDamaged, LedgerMismatch, LedgerClosed, LedgerEncrypted, LedgerUnusable
    SearchExhausted, SearchFailed (BaseException)

Every warning is a subclass of ``UserWarning``. Arguments are checked before any budget, noise or file is touched.
"""

from __future__ import annotations

import sys

from graphs.errors import ArgumentError, amount

__all__ = [
    "BudgetExhausted", "DevelopmentOverfitWarning", "EngineFailed", "EvaluationFileError", "EvaluationSetUsed",
    "GuardExhaustedWarning", "IndexColumnWarning", "InputError", "InputTypeError", "LedgerClosed", "LedgerDamaged",
    "LedgerEncrypted", "LedgerError", "LedgerMismatch", "LedgerPlaceWarning", "LedgerUnusable",
    "LikelyMistakeWarning", "MechanismWarning", "OverlapError", "PlanError", "SearchExhausted", "SearchFailed",
    "SharingError", "ThresholdoutError", "UnencryptedLedgerWarning", "WideAnswersWarning", "outside",
]  # fmt: skip


class ThresholdoutError(Exception):
    """Base class of all errors that this package raises deliberately.

    Only `SearchExhausted` and `SearchFailed`, which abort a search, do not derive from it.

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
    """Raised when an argument cannot be used.

    It is also a ``ValueError``. The message says which argument is wrong, the value that was seen and the values that
    are accepted. No error budget is spent and no file is written before the check.

    Attributes
    ----------
    argument : str
        Name of the argument.
    seen : object
        Description of the value that was passed.
    expected : str
        The values that are accepted.
    advice : str
        Further sentences on how to obtain an accepted value, or an empty string.

    Examples
    --------
    >>> error = InputError("confidence", 1.5, "a number between 0 and 1")
    >>> print(error)
    confidence must be a number between 0 and 1; got 1.5.
    >>> error.argument, isinstance(error, ValueError)
    ('confidence', True)
    """


class InputTypeError(InputError, TypeError):
    """Raised when an argument has a type that cannot be used.

    It is an `InputError` that is also a ``TypeError``. The message names the accepted types.

    Examples
    --------
    >>> from thresholdout.ledger import open_ledger
    >>> open_ledger(3)
    Traceback (most recent call last):
    thresholdout.errors.InputTypeError: ledger must be a path, a Ledger, or None for one in memory; got an int.
    """


class OverlapError(InputError):
    """Raised when the training part and the holdout share records or groups.

    A holdout record that a model was trained on cannot measure how well the model generalizes. Remove the shared
    records from one of the parts, or pass ``allow_duplicates=True`` if they are different records with equal values.

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
    """Raised when a guard refuses a query because one of its limits is reached.

    The query is not evaluated on the holdout, and all earlier answers stay valid.

    Attributes
    ----------
    what : str
        Name of the limit. Limits of the guard, which then answers no further query: "budget" (answers from the
        holdout), "queries" (declared number), "error_budget" (probability of error that all answers share),
        "final_check" (the last query) and "epsilon" (declared privacy loss). Limit of one query: "width" (its interval
        would exceed ``max_half_width``). Limits of a client: "allowance" (information released) and "quota" (queries).
    spent : int
        Number of uses so far. If the limit is not a count, the number of queries so far.
    limit : int
        Largest allowed number of uses. If the limit is not a count, the number of queries so far.

    Examples
    --------
    >>> print(BudgetExhausted("queries", spent=100, limit=100))
    All 100 queries of this guard are used. Earlier answers stay valid; new queries need a new holdout.
    """

    def __init__(self, what: str, spent: int, limit: int) -> None:
        self.what = what
        self.spent = spent
        self.limit = limit
        asked = amount(spent, "query")
        if what in ("budget", "queries", "quota"):
            noun, rest = ("answer", " from the holdout") if what == "budget" else ("query", "")
            rest += " of this client" if what == "quota" else " of this guard"
            used = f"The only {noun}{rest} is used." if limit == 1 else f"All {amount(limit, noun)}{rest} are used."
        else:
            used = {
                "error_budget": f"The error budget is exhausted after {asked}.",
                "final_check": f"The final check closed this guard after {asked}.",
                "epsilon": f"The epsilon of this guard's answers is exhausted after {asked}.",
                "width": f"After {asked} this one would have a half-width above max_half_width.",
                "allowance": f"After {asked} this client's answers have released all that they are allowed to.",
            }[what]
        then = "Earlier answers stay valid; new queries need a new holdout."
        if what == "width":
            then = "It was refused free of charge; a guard without max_half_width answers it."
        if what in ("allowance", "quota"):
            then = "The query was refused free of charge; others may still ask."
        super().__init__(f"{used} {then}")

    def __reduce__(self) -> tuple[type[BudgetExhausted], tuple[str, int, int]]:
        return (type(self), (self.what, self.spent, self.limit))


class SearchExhausted(BaseException):
    """Raised to abort a search when its guard runs out of error budget or queries.

    Searches of scikit-learn store NaN after an ``Exception`` of a scorer, and would appear to have finished normally
    with NaN as every score. The class is therefore a ``BaseException``, like ``asyncio.CancelledError``.

    Attributes
    ----------
    what : {"budget", "queries", "error_budget", "final_check", "epsilon", "width", "allowance", "quota"}
        Name of the limit that was reached, as explained in `BudgetExhausted`.
    spent : int
        Number of uses so far.
    limit : int
        Largest allowed number of uses.
    reason : BudgetExhausted
        The guard's refusal, equal in every process. In the process that sent the query it is also the ``__cause__``.

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
        """The guard's refusal, as a `BudgetExhausted`."""
        return BudgetExhausted(self.what, self.spent, self.limit)

    def __reduce__(self) -> tuple[type[SearchExhausted], tuple[str, int, int]]:
        return (type(self), (self.what, self.spent, self.limit))


class SearchFailed(BaseException):
    """Raised to abort a search when its guard cannot answer because of a technical failure.

    The guard's ledger was moved or closed, or its process has ended, or ``scoring=guard.scorer`` has no call. It is a
    ``BaseException`` for the same reason as `SearchExhausted`.

    Attributes
    ----------
    reason : LedgerError, SharingError or InputTypeError
        The failure. In the process that sent the query it is also the ``__cause__``.

    Examples
    --------
    >>> ended = SearchFailed(LedgerClosed("guard.db", "moved to other.db"))
    >>> print(ended.reason)
    Ledger guard.db: This guard was closed, and answers no more queries here: moved to other.db.
    """

    def __init__(self, reason: LedgerError | SharingError | InputTypeError) -> None:
        self.reason = reason
        super().__init__(f"{str(reason).removesuffix('.')}. The search stops here; its answers stay in the ledger.")

    def __reduce__(self) -> tuple[type[SearchFailed], tuple[LedgerError | SharingError | InputTypeError]]:
        return (type(self), (self.reason,))


class GuardExhaustedWarning(UserWarning):
    """Warns that a guard is exhausted and that a search or a training loop goes on, or ends, without further answers.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=GuardExhaustedWarning)
    """


class DevelopmentOverfitWarning(UserWarning):
    """Warns that a model has overfitted the development part.

    `Thresholdout.score` found a development score that is better than the guarded records allow. Stop optimizing the
    score on the development part, and choose the model by answers of the guard.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("error", category=DevelopmentOverfitWarning)
    """


class LikelyMistakeWarning(UserWarning):
    """Warns that the data, or an answer, suggest a mistake in how a guard is used.

    A column of the training part looks like patients or dates and no dependence is declared; training labels are
    correlated beyond the declared dependence; a declared class has no training records; or an answer, a comparison or a
    gate's verdict is far from its cross-validated training value. Only public values decide. Of evaluation sets: a
    margin has an unusual size, or many rows of a table share few items.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=LikelyMistakeWarning)  # if it is none
    """


class WideAnswersWarning(UserWarning):
    """Warns that the intervals of a new guard will be too wide to be useful.

    The half-widths will be at least 0.1 of the range, or there are fewer than 300 records (see `thresholdout.plan`).

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
    """Warns that a new guard uses another mechanism than the default one.

    Declared dependence between records rules out `Claims`, the default. Algorithm 1 (see `SparseVector`) is used.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=MechanismWarning)  # if that is known
    """


class PlanError(ThresholdoutError):
    """Raised when no parameters of a guard meet the requested target.

    Attributes
    ----------
    reason : str
        Why the target cannot be met, and how to change the request.

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
    """Raised when the engine of a lazy data frame could not evaluate a query on the data.

    A file is missing or changed, for example, or the engine ran out of memory. The failure shows nothing about values
    of records, since no value can make the request fail.

    Attributes
    ----------
    part : str
        Name of the part of the data on which the query failed, such as "holdout".
    reason : str
        Error of the engine, and the step at which it occurred.
    late : bool
        True if a second pass over the data failed. The guard then charges the query.

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
    """Raised when a log or a table of scores cannot be read or does not contain usable scores.

    Attributes
    ----------
    path : str
        Path of the file.
    reason : str
        Description of the fault, and how to fix it.

    Examples
    --------
    >>> print(EvaluationFileError("pr.eval", "It has no samples. Run the evaluation again."))
    pr.eval: It has no samples. Run the evaluation again.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")

    def __reduce__(self) -> tuple[type[EvaluationFileError], tuple[str, str]]:
        return (type(self), (self.path, self.reason))


class EvaluationSetUsed(ThresholdoutError):
    """Raised when the budget of an evaluation set is exhausted: its checks, or its unexpected outcomes.

    Attributes
    ----------
    done : int
        Number of checks so far.
    checks : int
        Planned number of checks.
    surprised : int
        Number of unexpected outcomes so far.
    surprises : int
        Planned number of unexpected outcomes.

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
    """Raised when a guard or a scorer cannot be used in this process.

    The process that holds the guard has ended, or a copy in this process would spend the same error budget twice.

    Examples
    --------
    >>> error = SharingError("The process that held this guard has ended.")
    >>> isinstance(error, ThresholdoutError), isinstance(error, TypeError)
    (True, True)
    """


class LedgerError(ThresholdoutError):
    """Base class of errors about a ledger, the store in which a guard keeps its state and history.

    Attributes
    ----------
    location : str
        Path or address of the ledger.
    reason : str
        Description of the fault, and how to fix it.

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
        super().__init__(f"Ledger {location}: {reason}")

    def __reduce__(self) -> tuple[type[LedgerError], tuple[str, str]]:
        return (type(self), (self.location, self.reason))


class LedgerDamaged(LedgerError):
    """Raised when the history in a ledger is not the one that was written: it was changed, cut or replaced.

    Attributes
    ----------
    location : str
        Path or address of the ledger.
    reason : str
        Description of the fault.
    query : int or None
        Number of the first wrong entry. None if the fault does not concern a single entry.

    Examples
    --------
    >>> error = LedgerDamaged("guard.db", 3, "Entry 3 is not the one that was stored.")
    >>> print(error)
    Ledger guard.db: Entry 3 is not the one that was stored.
    >>> error.query
    3
    """

    def __init__(self, location: str, query: int | None, reason: str) -> None:
        self.query = query
        super().__init__(location, reason)

    def __reduce__(self) -> tuple[type[LedgerDamaged], tuple[str, int | None, str]]:  # type: ignore[override]
        return (type(self), (self.location, self.query, self.reason))


class LedgerMismatch(LedgerError):
    """Raised when a ledger belongs to other data, or to a guard that was declared with other parameters.

    A guard continues only with the records and the declaration with which it began. Pass these, or another ledger.

    Examples
    --------
    >>> from thresholdout.ledger import MemoryLedger, export_history
    >>> export_history(MemoryLedger(), "guard", "history.jsonl")
    Traceback (most recent call last):
    thresholdout.errors.LedgerMismatch: Ledger memory: It has no guard 'guard'.... Use the ledger it was created in.
    """


class LedgerClosed(LedgerError):
    """Raised when a guard is queried after it was closed or moved to another ledger; its history remains readable.

    Attributes
    ----------
    location : str
        Path or address of the ledger.
    why : str
        Reason given when the guard was closed.

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
        super().__init__(location, f"This guard was closed, and answers no more queries here: {why.rstrip('.')}.")

    def __reduce__(self) -> tuple[type[LedgerClosed], tuple[str, str]]:
        return (type(self), (self.location, self.why))


class LedgerEncrypted(LedgerError):
    """Raised when the secrets in a ledger are encrypted and the encryption key is missing or wrong.

    Set the environment variable ``THRESHOLDOUT_KEY`` or ``THRESHOLDOUT_KEY_FILE``, or pass the key to `open_ledger`.

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
    """Raised when a file or database is not a ledger, or cannot be read or written.

    Examples
    --------
    >>> from thresholdout.ledger import open_ledger
    >>> open_ledger("missing/guard.db", must_exist=True)
    Traceback (most recent call last):
    thresholdout.errors.LedgerUnusable: Ledger missing/guard.db: The file does not exist. Check its name, or create it.
    """


class IndexColumnWarning(UserWarning):
    """Warns that the first column of a table has no name and is dropped.

    `pandas.DataFrame.to_csv` writes the index as such a column, unless it is called with ``index=False``.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=IndexColumnWarning)
    """


class LedgerPlaceWarning(UserWarning):
    """Warns that a ledger is on a network file system, where file locks may not hold between machines.

    Without working locks two machines could spend the same error budget. Move the file to a local disk, or silence the
    warning if the locks of the file system are known to hold.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=LedgerPlaceWarning)
    """


class UnencryptedLedgerWarning(UserWarning):
    """Warns that a ledger keeps its secrets in plain text although the environment has an encryption key.

    The ledger was created without the key. Encrypt it by `thresholdout.ledger.encrypt`.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("error", category=UnencryptedLedgerWarning)
    """


def outside() -> int:
    """Return the ``stacklevel`` with which a warning of the calling function points to the user's own code."""
    level, frame = 1, sys._getframe(1)
    while str(frame.f_globals.get("__name__", "")).startswith("thresholdout.") and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level
