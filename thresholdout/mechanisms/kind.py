"""What a mechanism is to everybody else: its parameters, what they can be asked for, and how it is made and certified.

Nobody asks which mechanism it is. `Parameters` say what a guard with them does, a `Kind` makes and certifies it, and
`thresholdout.mechanisms.catalogue` lists the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypeAlias, TypeVar

from thresholdout.mechanisms.base import Mechanism, MechanismState

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["CertificateT", "Certifier", "Direction", "Kind", "Parameters"]

CertificateT = TypeVar("CertificateT")
CertificateT_co = TypeVar("CertificateT_co", covariant=True)

Direction: TypeAlias = Literal["maximize", "minimize"]
"""Whether the best score is the largest or the smallest."""


class Parameters:
    """Public parameters of a mechanism: a frozen dataclass of numbers, which also says what its guard does.

    Attributes
    ----------
    queries : int or None
        Queries in all; ``None`` for any number.
    words : str
        How queries are answered, in sentences for a report.
    prices_releases : bool
        Whether other releases about the holdout are paid from the remaining error budget; intervals hold after any of
        them then.
    tells_nats : bool
        Whether the fall of the remaining error budget says what answers can have released.
    given_features : bool
        Whether truths can be what is expected of the labels, given the features.
    withdraws : bool
        Whether queries can be about the other records once some were withdrawn.
    folds : bool
        Whether a guard of out-of-fold averages takes them.
    pays_prior_queries : bool
        Whether prior queries are paid from the error budget at its start, as `information_released`; the certificate's
        confidence pays for them otherwise.
    """

    __slots__ = ()

    queries: int | None

    words: ClassVar[str]
    prices_releases: ClassVar[bool] = False
    tells_nats: ClassVar[bool] = False
    given_features: ClassVar[bool] = False
    withdraws: ClassVar[bool] = False
    folds: ClassVar[bool] = False
    pays_prior_queries: ClassVar[bool] = False
    omitted_when_unset: ClassVar[frozenset[str]] = frozenset()
    """Parameters that a ledger leaves out where they are not set."""

    @property
    def information_released(self) -> float:
        """Nats that prior queries may have released, which the error budget has less at its start."""
        return 0.0

    @property
    def approximation(self) -> str:
        """How intervals are approximate, in words; empty where they are guaranteed."""
        return ""

    @property
    def takes_lists(self) -> bool:
        """Whether queries that were fixed together are answered as one list."""
        return False

    @property
    def anticipates(self) -> bool:
        """Whether what is expected of a value is a guess of whoever asks, and no training value is taken for it."""
        return False

    @property
    def best_direction(self) -> Direction | None:
        """Which score is the best, where answers are about the best query so far; ``None`` where they are not."""
        return None

    @property
    def wording(self) -> Mapping[str, str]:
        """Parameters that a report shows in other words than their values, by their names."""
        return {}

    def check_direction(self, metric: str, greater_is_better: bool) -> None:
        """Refuse a metric of the other direction, where the mechanism keeps to one."""

    def check_tells_each(self) -> None:
        """Refuse to serve a tool that picks the best candidate by its answer."""

    def summary(self, from_holdout: int, left: str, answered: bool) -> str:
        """Say in a sentence how many answers came from the holdout; empty where that says nothing."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return all parameters for a ledger."""
        this: Any = self
        plain = {item.name: _plain(getattr(self, item.name)) for item in fields(this)}
        return {key: value for key, value in plain.items() if key not in self.omitted_when_unset or value}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return the parameters that `to_json` wrote."""
        return cls(**stored)


class Certifier(Protocol[CertificateT_co]):
    """The theorems with which mechanisms are certified, for some records.

    Attributes
    ----------
    model : DependenceModel
        How the records depend on each other.
    confidence : float
        Probability with which all half-widths hold at once.
    """

    @property
    def model(self) -> DependenceModel:
        """How the records depend on each other."""

    @property
    def confidence(self) -> float:
        """Probability with which all half-widths hold at once."""

    def stated(
        self,
        name: str,
        tolerance: float,
        assumes: str,
        source: str,
        *,
        confidence: float,
        likely: Callable[[float], float] | None = None,
        why_not: str = "",
        final: Any = None,
        epsilon: float | None = None,
    ) -> CertificateT_co:
        """Certify a mechanism that states the interval of each answer itself.

        Notes
        -----
        `assumes`, `source`: what its theorem needs, and where it is proved.
        """

    def algorithm_1(self, parameters: Any) -> CertificateT_co:
        """Certify Algorithm 1 by the best of its routes."""


class _Certify(Protocol):
    """Says what answers are worth, with a certifier."""

    def __call__(self, parameters: Any, by: Certifier[CertificateT], /) -> CertificateT: ...


class _State(Protocol):
    """A class of states."""

    def from_text(self, text: str, /) -> MechanismState:
        """Return the state that a ledger keeps as this text."""


def _as_given(parameters: Any, by: Certifier[Any]) -> Any:
    return parameters


@dataclass(frozen=True)
class Kind:
    """One mechanism.

    Attributes
    ----------
    name : str
        How ledgers call it.
    parameters : type
        Class of its parameters; no two mechanisms have the same.
    state : type
        Class of its states; its ``from_text`` reads what their ``to_text`` wrote.
    build : callable
        From parameters and the number of records to the `Mechanism`.
    certify : callable
        From parameters and a `Certifier` to a certificate.
    suited : callable
        From parameters and a `Certifier` to parameters with what they have to know about the records; it raises
        InputError where they do not suit these. By default they are what they are.
    """

    name: str
    parameters: type[Parameters]
    state: _State
    build: Callable[[Any, int], Mechanism[Any, Any]]
    certify: _Certify
    suited: Callable[[Any, Certifier[Any]], Any] = _as_given


def _plain(value: Any) -> Any:
    """Return a parameter as JSON knows it."""
    if hasattr(value, "to_json"):
        return value.to_json()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
