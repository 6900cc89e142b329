"""The state of a guard: its mechanism's, failures, what certificates keep of earlier answers, and corrected labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from thresholdout.errors import InputError
from thresholdout.mechanisms.base import MechanismState

__all__ = ["GuardState", "corrected_of"]

S = TypeVar("S", bound=MechanismState)

_FAILURES: Final = "failures "
_CORRECTED: Final = "corrected "
_MOST_DIGITS: Final = 19


@dataclass(frozen=True, slots=True)
class GuardState(Generic[S]):
    r"""What a ledger keeps of a guard between two answers. Secret.

    Attributes
    ----------
    mechanism : MechanismState
        The mechanism's state.
    failures : int
        How many queries have failed on the holdout.
    corrected : str
        Labels that were corrected since the guard was made, in the words of who keeps them: one line of text, empty
        where there are none. Values that were computed with other labels are about another query.

    Examples
    --------
    >>> from thresholdout.mechanisms import LadderState
    >>> GuardState(LadderState(log_risk=-3.0, asked=7), failures=2).to_text().partition("\n")[0]
    'failures 2'
    """

    mechanism: S
    failures: int = 0
    corrected: str = ""

    def to_text(self) -> str:
        """Return the text that a ledger keeps: lines for failures and corrections where there are any."""
        failures = f"{_FAILURES}{self.failures}\n" if self.failures else ""
        corrected = f"{_CORRECTED}{self.corrected}\n" if self.corrected else ""
        return failures + corrected + self.mechanism.to_text()

    @classmethod
    def from_text(cls, text: str, read: Callable[[str], S]) -> GuardState[S]:
        """Return the state that a text says.

        Parameters
        ----------
        text : str
            As `to_text` returns it.
        read : callable
            Returns the mechanism's state that a text says.

        Raises
        ------
        InputError
            When it is something else.
        """
        failures, corrected, rest = _parted(text)
        if not (failures.isascii() and failures.isdecimal() and len(failures) <= _MOST_DIGITS):
            raise InputError("state", "no number of failures", "the text of a guard's state")
        return cls(read(rest), int(failures), corrected)


def corrected_of(text: str) -> str:
    r"""Return what a state's text says of corrected labels, without reading the rest.

    Examples
    --------
    >>> corrected_of("failures 2\ncorrected here\nladder/1 7 2"), corrected_of("ladder/1 7 2")
    ('here', '')
    """
    return _parted(text)[1]


def _parted(text: str) -> tuple[str, str, str]:
    """Return the number of failures, the corrections and the mechanism's state as a text has them."""
    found = {_FAILURES: "0", _CORRECTED: ""}
    for name in found:
        if text.startswith(name):
            found[name], _, text = text[len(name) :].partition("\n")
    return found[_FAILURES], found[_CORRECTED], text
