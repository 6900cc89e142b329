"""The error tree.

::

    ThresholdoutError
    ├── InputError (ValueError)         an argument that cannot be used: .argument, .seen, .expected
    │   ├── InputTypeError (TypeError)      its type cannot be used
    │   └── OverlapError                    training and holdout part share records or groups
    ├── BudgetExhausted                 the guard answers no more: .spent, .limit, .what
    ├── PlanError                       no parameters reach the target: .reason
    ├── SharingError (TypeError)        a guard that cannot be reached, or would be copied into another process
    └── LedgerError                     the store of the guard's state: .location
        ├── LedgerDamaged                   its history is not the one that was written: .query
        ├── LedgerMismatch                  it belongs to other data or other parameters
        ├── LedgerRetired                   this guard answers elsewhere, or no more: .why
        ├── LedgerSealed                    its secrets are sealed, and the key is missing or another
        └── LedgerUnusable                  not a ledger, not readable or not writable
    SearchExhausted (BaseException)     ends a search that swallows errors: .what, .spent, .limit
    SearchFailed (BaseException)        the same, when the guard or its ledger can't be reached: .reason
    GuardExhaustedWarning (UserWarning) a guard answers no more, and the search goes on without it
    LedgerPlaceWarning (UserWarning)   a ledger is on a network file system, where locks may not hold
    UnsealedLedgerWarning (UserWarning) the environment has a key, and this ledger keeps its secrets in plain text

Errors about arguments are also ``ValueError`` (or ``TypeError``), so that callers who know nothing of this
package can handle them. Validation comes before any budget, noise or file is touched.
"""

from __future__ import annotations

from graphs.errors import ArgumentError

__all__ = [
    "BudgetExhausted",
    "GuardExhaustedWarning",
    "InputError",
    "InputTypeError",
    "LedgerDamaged",
    "LedgerError",
    "LedgerMismatch",
    "LedgerPlaceWarning",
    "LedgerRetired",
    "LedgerSealed",
    "LedgerUnusable",
    "OverlapError",
    "PlanError",
    "SearchExhausted",
    "SearchFailed",
    "SharingError",
    "ThresholdoutError",
    "UnsealedLedgerWarning",
]


class ThresholdoutError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(ThresholdoutError, ArgumentError):
    """An argument that cannot be used; see `graphs.errors.ArgumentError` for the attributes."""


class InputTypeError(InputError, TypeError):
    """An argument whose type cannot be used."""


class OverlapError(InputError):
    """Training and holdout part share records, so nothing about these is protected."""


class BudgetExhausted(ThresholdoutError):
    """The guard answers no more.

    Parameters
    ----------
    what : {"budget", "queries", "risk", "private", "width"}
        Which limit was reached: answers from the holdout, questions in all, the risk that was left, the declared
        epsilon, or the declared half-width (`at_most`) by this question, while others may still be answered.
    spent, limit : int
        How many were used, and how many there were; questions so far, twice, where risk or half-width is the limit.
    """

    def __init__(self, what: str, spent: int, limit: int) -> None:
        self.what = what
        self.spent = spent
        self.limit = limit
        used = f"all {limit} {'answers from the holdout' if what == 'budget' else 'questions'} of this guard are used"
        if what == "risk":
            used = f"after {spent} questions and what else was told nothing is left of this guard's risk"
        if what == "private":
            used = f"after {spent} questions nothing is left of the epsilon of this guard's answers"
        then = "; earlier answers stay valid, new questions need a new holdout"
        if what == "width":
            used = f"after {spent} questions this one would have a half-width above at_most"
            then = "; it was refused free of charge, and a guard without at_most answers it"
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

    Its ledger was moved or retired, or the process that holds it is gone. Derived from ``BaseException`` for the same
    reason as `SearchExhausted`: a search would store NaN for candidates about which nothing was asked.

    Parameters
    ----------
    reason : LedgerError or SharingError
        What happened; ``__cause__`` too, in the process that asked.
    """

    def __init__(self, reason: LedgerError | SharingError) -> None:
        self.reason = reason
        super().__init__(f"{reason}. The search stops here; answers that were given stay in the ledger")

    def __reduce__(self) -> tuple[type[SearchFailed], tuple[LedgerError | SharingError]]:
        return (type(self), (self.reason,))


class GuardExhaustedWarning(UserWarning):
    """A guard answers no more, and a search or a training loop goes on without it."""


class PlanError(ThresholdoutError):
    """No parameters reach the target.

    Parameters
    ----------
    reason : str
        What stands in the way, and what would help.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class SharingError(ThresholdoutError, TypeError):
    """A guard or a scorer cannot be used in this process: its own is gone, or two would spend the same budget."""


class LedgerError(ThresholdoutError):
    """Something is wrong with the store of a guard's state.

    Parameters
    ----------
    location : str
        The file or address.
    reason : str
        What is wrong, and what to do.
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
    """

    def __init__(self, location: str, query: int | None, reason: str) -> None:
        self.query = query
        super().__init__(location, reason)

    def __reduce__(self) -> tuple[type[LedgerDamaged], tuple[str, int | None, str]]:  # type: ignore[override]
        return (type(self), (self.location, self.query, self.reason))


class LedgerMismatch(LedgerError):
    """The ledger belongs to other data, or to a guard with other parameters."""


class LedgerRetired(LedgerError):
    """A guard that was retired: its history stays, and it answers no more here.

    Parameters
    ----------
    location : str
        The file or address.
    why : str
        What was said when it was retired, such as where it went.
    """

    def __init__(self, location: str, why: str) -> None:
        self.why = why
        super().__init__(location, f"this guard was retired and answers no more here: {why}")

    def __reduce__(self) -> tuple[type[LedgerRetired], tuple[str, str]]:
        return (type(self), (self.location, self.why))


class LedgerSealed(LedgerError):
    """Its secrets are sealed, and the key is missing, or it is another one."""


class LedgerUnusable(LedgerError):
    """Not a ledger, or one that cannot be read or written."""


class LedgerPlaceWarning(UserWarning):
    """A ledger's file is where the locks of other machines may not hold."""


class UnsealedLedgerWarning(UserWarning):
    """The environment has a key, and this ledger keeps its secrets in plain text."""
