"""What a guard was told when it was made, and how a ledger keeps it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from thresholdout.certificates.prior_looks import PriorLooks
from thresholdout.certificates.problem import check_confidence
from thresholdout.data.arguments import check_count
from thresholdout.errors import InputTypeError, LedgerDamaged, LedgerUnusable
from thresholdout.mechanisms.catalogue import kind_named, parameters_from_json, parameters_to_json
from thresholdout.mechanisms.kind import Parameters

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger

__all__ = ["Declaration", "Given", "MechanismName", "check_budget", "check_mechanism", "read_declaration"]

Given: TypeAlias = Literal["features"] | None
"""What truths are given, beside the certificate's assumptions; see `thresholdout.Thresholdout`."""

MechanismName: TypeAlias = Literal["thresholdout", "guess-and-check", "competition", "gaussian", "splitting", "ladder"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Declaration:
    """The arguments that a guard was made with, as far as its answers depend on them.

    A guard keeps them for life: whoever opens it again declares the same. They are checked by whoever makes them.

    Attributes
    ----------
    queries, budget : int or None
        Limits that were set; ``None`` for any number.
    confidence : float
        Probability with which all intervals hold at once.
    at_most, private, threshold, noise_scale, grid : float or None
        As in `thresholdout.Thresholdout`.
    mechanism : str, parameters or None
        As in `thresholdout.Thresholdout`.
    identically_distributed : bool
        As in `thresholdout.Thresholdout`.
    given : {"features"} or None
        As in `thresholdout.Thresholdout`.
    final_check : bool
        As in `thresholdout.Thresholdout`.
    dependence : str
        The fingerprint of the dependence model.
    looks : PriorLooks or None
        Scores of the holdout that were seen before.
    for_release : bool
        Whether noise is drawn from the operating system's entropy, and not from a seed.

    Examples
    --------
    >>> declared = Declaration(queries=100, budget=2, confidence=0.95)
    >>> Declaration.from_json(declared.to_json()) == declared
    True
    """

    # The order of the fields is that in which a ledger has them.
    queries: int | None = None
    budget: int | None = None
    confidence: float = 0.95
    at_most: float | None = None
    private: float | None = None
    threshold: float | None = None
    noise_scale: float | None = None
    grid: float | None = None
    mechanism: MechanismName | Parameters | None = None
    identically_distributed: bool = False
    given: Given = None
    final_check: bool = False
    dependence: str = ""
    for_release: bool = True
    looks: PriorLooks | None = None  # left out of a ledger where there are none

    def to_json(self) -> dict[str, Any]:
        """Return what a ledger keeps: names and values, parameters of a mechanism as `parameters_to_json` gives them.

        Examples
        --------
        >>> kept = Declaration(queries=10, mechanism="gaussian").to_json()
        >>> kept["queries"], kept["budget"], kept["mechanism"]
        (10, None, 'gaussian')
        """
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if self.mechanism is not None and not isinstance(self.mechanism, str):
            found["mechanism"] = parameters_to_json(self.mechanism)
        del found["looks"]
        return found if self.looks is None else found | {"looks": dataclasses.asdict(self.looks)}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Declaration:
        """Return what a ledger keeps as a declaration.

        What is missing was no argument when the guard was made, and stands at its default; the limits, the confidence
        and the kind of noise have always been there.

        Raises
        ------
        KeyError, TypeError, ValueError
            When it is no declaration.
        """
        check_budget(kept["budget"])
        if kept["queries"] is not None:
            check_count("queries", kept["queries"])
        check_confidence(kept["confidence"])
        fields = {field.name: kept[field.name] for field in dataclasses.fields(cls) if field.name in kept}
        if not isinstance(fields["for_release"], bool):
            raise TypeError
        if isinstance(fields.get("mechanism"), Mapping):
            fields["mechanism"] = parameters_from_json(fields["mechanism"])
        if fields.get("looks") is not None:
            fields["looks"] = PriorLooks(**fields["looks"])
        return cls(**fields)

    def difference(self, other: Declaration) -> tuple[str, Any, Any] | None:
        """Return the first argument that differs, with both values; ``None`` where all are the same.

        Examples
        --------
        >>> Declaration(budget=2).difference(Declaration(budget=3))
        ('budget', 2, 3)
        """
        for field in dataclasses.fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if mine != theirs:
                return field.name, mine, theirs
        return None


def check_budget(budget: object) -> int | None:
    """Return an optional budget, a count; who wants "all" answers from the holdout takes a mechanism."""
    if isinstance(budget, str) and budget == "all":
        expected = "an integer of at least 1; mechanism='gaussian' answers all questions from the holdout"
        raise InputTypeError("budget", "'all'", expected)
    return None if budget is None else check_count("budget", budget)


def read_declaration(ledger: Ledger, guard: str) -> tuple[Declaration, Parameters]:
    """Return what a guard was declared as, and its mechanism's parameters.

    Parameters
    ----------
    ledger : Ledger
        Where the guard is.
    guard : str
        What the ledger calls it.

    Raises
    ------
    LedgerDamaged
        When they can't be read: somebody wrote them by hand, or imported them.
    LedgerUnusable
        When the guard has a mechanism that this program does not have.
    """
    stored: Any = ledger.parameters(guard)
    check_mechanism(ledger, stored)
    try:
        return Declaration.from_json(stored["declared"]), parameters_from_json(stored["chosen"])
    except (KeyError, TypeError, ValueError):
        pass
    raise LedgerDamaged(ledger.location, None, f"guard {guard[:12]!r}...: its parameters can't be read")


def check_mechanism(ledger: Ledger, stored: Any) -> None:
    """Refuse a guard whose mechanism this program does not have.

    Parameters
    ----------
    ledger : Ledger
        Where the guard is.
    stored : mapping
        Its parameters, as the ledger keeps them.

    Raises
    ------
    LedgerUnusable
        When its mechanism has a name, and no mechanism here has this name.
    """
    chosen = stored.get("chosen") if isinstance(stored, Mapping) else None
    name = chosen.get("mechanism") if isinstance(chosen, Mapping) else None
    if isinstance(name, str) and kind_named(name) is None:
        raise LedgerUnusable(
            ledger.location,
            f"its guard answers by {name[:80]!r}, a mechanism that this program does not have; use the program that "
            "made it, or a new guard of records that nobody has asked about",
        )
