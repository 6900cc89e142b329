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
    """A text that is no receipt, or that none of the known keys has signed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"this is no valid receipt: {reason}")

    def __reduce__(self) -> tuple[type[ReceiptInvalid], tuple[str]]:
        return (type(self), (self.reason,))


class ReceiptContradicted(ThresholdoutError):
    """A signed receipt and a history that contradicts it: one of them was forged, or the ledger was rolled back."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the receipt is signed, and the history says otherwise: {reason}")

    def __reduce__(self) -> tuple[type[ReceiptContradicted], tuple[str]]:
        return (type(self), (self.reason,))


class WitnessUnusable(ThresholdoutError):
    """A witness that cannot be relied on: damaged, cut, missing or silent."""

    def __init__(self, location: str, reason: str) -> None:
        self.location = location
        self.reason = reason
        super().__init__(f"witness {location}: {reason}")

    def __reduce__(self) -> tuple[type[WitnessUnusable], tuple[str, str]]:
        return (type(self), (self.location, self.reason))


class LedgerOutdated(LedgerError):
    """A copy of a ledger that is older than one that has answered, so that its budget would be spent twice.

    Notes
    -----
    `behind` maps each guard with answers that are missing here to the number of the last known answer, and the number
    up to
    which its history is known to be the same here.
    """

    def __init__(self, location: str, behind: Mapping[str, tuple[int, int]]) -> None:
        self.behind = dict(behind)
        missing = ", ".join(
            f"guard {guard[:12]} has given answer {last}, and is known to have the same history here up to {kept}"
            for guard, (last, kept) in list(self.behind.items())[:3]
        )
        more = f" (and {len(self.behind) - 3} more)" if len(self.behind) > 3 else ""
        super().__init__(
            location,
            f"it is an older copy than one that has answered: {missing}{more}. It would spend its budget twice. Put "
            "the newest copy back; or close these guards (thresholdout guard close); or start with --accept-rollback "
            "REASON, which every leaderboard says from then on, and after which nothing is promised of new answers",
        )

    def __reduce__(self) -> tuple[type[LedgerOutdated], tuple[str, dict[str, tuple[int, int]]]]:  # type: ignore[override]
        return (type(self), (self.location, self.behind))
