"""The interface of a mechanism to all other code: its parameters, their properties, its construction and certificate.

No caller asks which mechanism it has. `Parameters` describe a guard with them, a `Kind` makes and certifies it, and
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
    """Base class of the public parameters of a mechanism.

    A mechanism computes the answers of a guard (`thresholdout.Thresholdout`). Each kind of mechanism has a subclass, a
    frozen dataclass of numbers. Pass an instance to a guard as ``mechanism=``. `thresholdout.plan` returns instances.

    Attributes
    ----------
    queries : int or None
        Number of queries in all; ``None`` for any number.
    words : str
        The mechanism in sentences, for a report.
    prices_releases : bool
        Whether the remaining error budget pays for other releases about the holdout. Intervals then hold after any of
        them.
    tells_nats : bool
        Whether the fall of the remaining error budget bounds the information released by answers.
    given_features : bool
        Whether estimands can be expectations of the labels, given the features.
    withdraws : bool
        Whether queries can be about the other records once some were withdrawn.
    folds : bool
        Whether a guard of out-of-fold averages, `KFoldGuard`, accepts them.
    pays_prior_queries : bool
        Whether the error budget pays for prior queries at its start, as `information_released`. Otherwise the
        certificate's confidence does.
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
    """Parameters that a ledger leaves out where they have no value."""

    @property
    def information_released(self) -> float:
        """Nats that prior queries may have released, by which the error budget is smaller at its start."""
        return 0.0

    @property
    def approximation(self) -> str:
        """The approximation of the intervals, in words. Empty if they are guaranteed."""
        return ""

    @property
    def takes_lists(self) -> bool:
        """Whether queries that were fixed together are answered as one list."""
        return False

    @property
    def anticipates(self) -> bool:
        """Whether the expected value is a guess of the client, and not a training value."""
        return False

    @property
    def best_direction(self) -> Direction | None:
        """Direction of the best score, where answers are about the best query so far; ``None`` elsewhere."""
        return None

    def check_direction(self, metric: str, greater_is_better: bool) -> None:
        """Refuse a metric of the other direction, where the mechanism has one direction only."""

    def check_tells_each(self) -> None:
        """Refuse to serve a tool that picks the best candidate by its answer, if answers are not about each query."""

    def summary(self, from_holdout: int, left: str, answered: bool) -> str:
        """Return a sentence with the number of answers from the holdout; empty where that is not informative."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return all parameters as a dictionary for a ledger."""
        this: Any = self
        plain = {item.name: _plain(getattr(self, item.name)) for item in fields(this)}
        return {key: value for key, value in plain.items() if key not in self.omitted_when_unset or value}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return the parameters from the dictionary that `to_json` wrote."""
        return cls(**stored)


class Certifier(Protocol[CertificateT_co]):
    """The theorems that certify mechanisms, for some records."""

    @property
    def model(self) -> DependenceModel:
        """The dependence model of the records; limits of a fitted one are assumed to hold."""

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
        """Certify a mechanism that states the interval of each answer; `assumes` and `source` are its theorem's."""

    def algorithm_1(self, parameters: Any) -> CertificateT_co:
        """Certify Algorithm 1 by the best of its routes."""


class _Certify(Protocol):
    """A function that certifies parameters with a certifier."""

    def __call__(self, parameters: Any, by: Certifier[CertificateT], /) -> CertificateT: ...


class _State(Protocol):
    """A class of states."""

    def from_text(self, text: str, /) -> MechanismState:
        """Return the state from its text in a ledger."""


def _as_given(parameters: Any, by: Certifier[Any]) -> Any:
    return parameters


@dataclass(frozen=True)
class Kind:
    """One mechanism: its name in ledgers, its classes of parameters and states, and how to build and certify it.

    No two mechanisms have the same class of parameters. `suited` fills in numbers of the records, and raises InputError
    where the parameters do not suit them; by default it changes nothing.
    """

    name: str
    parameters: type[Parameters]
    state: _State
    build: Callable[[Any, int], Mechanism[Any, Any]]
    certify: _Certify
    suited: Callable[[Any, Certifier[Any]], Any] = _as_given


def _plain(value: Any) -> Any:
    """Return a parameter in JSON types."""
    if hasattr(value, "to_json"):
        return value.to_json()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
