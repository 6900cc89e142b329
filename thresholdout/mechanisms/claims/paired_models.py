"""Two models on one part of the records: on how many of them each is the better one."""

from __future__ import annotations

from dataclasses import dataclass

from thresholdout.data.arguments import check_count
from thresholdout.errors import InputError

__all__ = ["Duel"]


@dataclass(frozen=True, slots=True)
class Duel:
    """Records of one part on which exactly one of two models is right.

    Parameters
    ----------
    wins, losses : int
        Records on which the one is right and the other wrong, and the reverse.
    records : int
        All records of the part.

    Examples
    --------
    >>> Duel(30, 10, 1000).share
    0.738...
    """

    wins: int
    losses: int
    records: int

    def __post_init__(self) -> None:
        if self.wins < 0 or self.losses < 0 or self.wins + self.losses > check_count("records", self.records):
            seen = f"{self.wins} wins and {self.losses} losses of {self.records} records"
            raise InputError("wins", seen, "counts that are not negative, together at most the number of records")

    @property
    def share(self) -> float:
        """Estimate of the share of wins, strictly between 0 and 1."""
        return (self.wins + 1.0) / (self.wins + self.losses + 2.0)
