"""Errors of receipts, witnesses and copies of ledgers.

::

    ThresholdoutError
    ├── ReceiptInvalid              no receipt, or signed by no known key: .reason
    ├── ReceiptContradicted         signed, but in conflict with a history: .reason
    ├── WitnessUnusable             the witness is damaged, cut, missing or silent: .location
    └── LedgerError
        └── LedgerOutdated              an older copy of a ledger that has answered since: .behind
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from thresholdout.errors import LedgerError, ThresholdoutError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LedgerOutdated", "ReceiptContradicted", "ReceiptInvalid", "WitnessUnusable"]


class ReceiptInvalid(ThresholdoutError):
    """Raised when a text is not a receipt, or is signed by none of the known keys.

    Attributes
    ----------
    reason : str
        Why the text is not accepted as a receipt.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The receipt is not valid. {reason}")

    def __reduce__(self) -> tuple[type[ReceiptInvalid], tuple[str]]:
        return (type(self), (self.reason,))


class ReceiptContradicted(ThresholdoutError):
    """Raised when a history contradicts a signed receipt: one was forged, or the ledger was rolled back.

    Attributes
    ----------
    reason : str
        The contradiction in words.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The receipt is signed, but the history contradicts it. {reason}")

    def __reduce__(self) -> tuple[type[ReceiptContradicted], tuple[str]]:
        return (type(self), (self.reason,))


class WitnessUnusable(ThresholdoutError):
    """Raised when a witness cannot be relied on: it is damaged, cut, missing or silent.

    Attributes
    ----------
    location : str
        Path or address of the witness.
    reason : str
        Description of the fault.
    """

    def __init__(self, location: str, reason: str) -> None:
        self.location = location
        self.reason = reason
        super().__init__(f"Witness {location}: {reason}")

    def __reduce__(self) -> tuple[type[WitnessUnusable], tuple[str, str]]:
        return (type(self), (self.location, self.reason))


class LedgerOutdated(LedgerError):
    """Raised when a ledger is older than a copy that has answered since, so that its budget would be spent twice.

    Attributes
    ----------
    location : str
        Path or address of the ledger.
    reason : str
        Which answers are missing, and how to recover.
    behind : dict of str to (int, int)
        For each guard with missing answers, the number of its last known answer, and the number of the answer up to
        which its history is known to agree.
    """

    def __init__(self, location: str, behind: Mapping[str, tuple[int, int]]) -> None:
        self.behind = dict(behind)
        missing = ", ".join(
            f"guard {guard[:12]} has given answer {last}, and its history here is known to agree up to answer {kept}"
            for guard, (last, kept) in list(self.behind.items())[:3]
        )
        more = f" (and {len(self.behind) - 3} more)" if len(self.behind) > 3 else ""
        super().__init__(
            location,
            f"This copy is older than one that has answered: {missing}{more}. It would spend its budget twice. Restore "
            "the newest copy, or close these guards by `thresholdout guard close`. Or start with --accept-rollback "
            "REASON: every leaderboard then shows the reason, and new answers are not guaranteed.",
        )

    def __reduce__(self) -> tuple[type[LedgerOutdated], tuple[str, dict[str, tuple[int, int]]]]:  # type: ignore[override]
        return (type(self), (self.location, self.behind))
