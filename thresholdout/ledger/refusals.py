"""What every ledger says when it refuses: the errors of a store of guards, and the comparisons that lead to them."""

from __future__ import annotations

from collections.abc import Mapping

from thresholdout.errors import InputError, LedgerClosed, LedgerDamaged, LedgerError, LedgerMismatch
from thresholdout.ledger.entry_checks import JSON, read_parameters

__all__ = ["Refusals"]


class Refusals:
    """The refusals that all ledgers have in common.

    Attributes
    ----------
    location : str
        Where the guards are kept, for messages.
    """

    location: str

    def _parsed(self, guard: str, parameters: str) -> dict[str, JSON]:
        """Return stored parameters as they were given."""
        try:
            return read_parameters(parameters)
        except InputError:
            pass
        raise LedgerDamaged(self.location, None, f"guard {guard[:12]!r}...: its parameters can't be read")

    def _unknown(self, guard: str) -> LedgerMismatch:
        """Error for a guard that is not here."""
        return LedgerMismatch(
            self.location, f"holds no guard {guard[:12]!r}...; it was made for other data, or not created yet"
        )

    def _check_closed(self, closed: str | None) -> None:
        """Refuse what would change a guard that was closed."""
        if closed is not None:
            raise LedgerClosed(self.location, closed)

    def _same_records(self, known: str) -> LedgerMismatch:
        """Error for a second guard for the same records."""
        return LedgerMismatch(
            self.location,
            f"holds guard {known[:12]!r}... for the same records; both would answer about them, so "
            "keep the one that is there, or restore this one in another ledger",
        )

    def _there_already(self, guard: str) -> LedgerMismatch:
        """Error for a history that would be joined to another."""
        return LedgerMismatch(
            self.location, f"holds guard {guard[:12]!r}... already, with a history of its own; restore it elsewhere"
        )

    def _check_parameters(self, guard: str, stored: Mapping[str, JSON], given: Mapping[str, JSON]) -> None:
        """Refuse parameters that differ from the stored ones."""
        names = [
            name
            for name in dict.fromkeys([*stored, *given])
            if name not in stored or name not in given or stored[name] != given[name]
        ]
        if names:
            seen = ", ".join(f"{name} is {stored.get(name)!r}, not {given.get(name)!r}" for name in names)
            raise LedgerMismatch(
                self.location,
                f"holds guard {guard[:12]!r}... with other parameters: {seen}; "
                "use these, or new data with a ledger of its own",
            )

    def _check_document(self, name: str, stored: str, given: str) -> None:
        """Refuse a document that would change the stored one."""
        if stored != given:
            raise LedgerMismatch(self.location, f"has a document {name!r} with another text; documents never change")

    def _reentered(self) -> LedgerError:
        """Error for a mechanism that uses the ledger while it is asked."""
        return LedgerError(self.location, "was used by the mechanism that it asks; nothing was stored")
