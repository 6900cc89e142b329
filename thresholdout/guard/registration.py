"""Registration of a guard in a ledger, with the checks before it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from graphs.numerics.arguments import as_integer
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.prior_queries import confidence_after
from thresholdout.certificates.problem import within_limits
from thresholdout.errors import InputError, InputTypeError, LedgerMismatch, LedgerUnusable
from thresholdout.guard.given_features import check_served
from thresholdout.guard.guard_state import check_standing
from thresholdout.guard.likely_mistakes import warn_of_width
from thresholdout.guard.query_engine import FAILURES
from thresholdout.ledger import Ledger, open_ledger
from thresholdout.ledger.entry import CONTENT, fresh_key
from thresholdout.mechanisms.catalogue import build_mechanism, parameters_to_json
from thresholdout.mechanisms.kind import Parameters
from thresholdout.noise.sources import NoiseSource, SeededNoise, SystemNoise
from thresholdout.planning.declaration import Declaration, read_declaration
from thresholdout.planning.declared_parameters import choose_parameters

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.certificates import Certificate
    from thresholdout.guard.holdout import Records
    from thresholdout.mechanisms import Mechanism

__all__ = ["ORDER", "RULES", "SPLIT", "Opened", "check_dependence", "chosen_parameters", "noise_of", "opened"]


ORDER: Final = "holdout/order"
"""Name of the document with a digest of the order of a guard's records; secret, since it depends on their labels."""

SPLIT: Final = "holdout/development"
"""Name of the document with the key that split off the development part."""

RULES: Final = 1
"""Version of the rules by which a guard shares its error budget among answers. A guard keeps its rules for life, so a
change needs a new number, and the old rules must remain in service."""


def is_there(ledger: object) -> bool:
    """Whether opening a ledger creates nothing: it is open, or its file exists."""
    return isinstance(ledger, Ledger) or (isinstance(ledger, (str, os.PathLike)) and os.path.isfile(ledger))


def is_file(ledger: object) -> bool:
    """Whether a ledger was given as a file, which is for one holdout; a server is for many."""
    return not isinstance(ledger, Ledger) and not str(ledger).startswith(
        ("postgresql://", "postgres://", "postgresql+")
    )


def known_as(ledger: Ledger, records: Records, sole: bool) -> str | None:
    """Return a ledger's name of a holdout's guard, or ``None`` if there is none; a file serves one holdout only."""
    known = ledger.known(records.identity)
    if known is not None:
        return known
    if sole and ledger.guards():
        raise LedgerMismatch(
            ledger.location,
            "It belongs to another holdout. A holdout is identified by its content: pass exactly the same records, "
            "or another file.",
        )
    return None


def enter(
    ledger: Ledger,
    records: Records,
    declared: Declaration,
    parameters: Parameters,
    state: str,
    documents: Mapping[str, str],
) -> str:
    """Store a new guard with its secret documents, and return its name; or return the guard of the same records."""
    return ledger.create(
        fresh_key(),
        {"rules": RULES, "declared": declared.to_json(), "chosen": parameters_to_json(parameters)},
        state,
        {**documents, CONTENT: records.identity, ORDER: records.order},
    )


def stored_parameters(ledger: Ledger, identity: str, declared: Declaration) -> Parameters:
    """Return the stored parameters of a guard; refuse another declaration, unknown rules and unreadable parameters."""
    stored: dict[str, Any] = dict(ledger.parameters(identity))
    if stored.get("rules") != RULES:
        raise LedgerUnusable(
            ledger.location,
            f"Its guard follows rules of version {stored.get('rules')!r}, but this version knows {RULES}. "
            "Use the version of thresholdout that created it, or a newer one.",
        )
    before, found = read_declaration(ledger, identity)
    difference = before.difference(declared)
    if difference is not None:
        argument, old, new = difference
        seen = f"{argument} = {old!r}, not {new!r}"
        if argument == "dependence":
            seen = "another model of dependence (groups or dependence=)"
        raise LedgerMismatch(
            ledger.location,
            f"The guard of this holdout was declared with {seen}. Open it with the arguments of its declaration.",
        )
    return found


def check_order(
    ledger: Ledger, identity: str, records: Records, parameters: Parameters, dependence: DependenceModel
) -> None:
    """Refuse known records in another order if the dependence model or the development part depends on the order."""
    from graphs import Independent

    if ledger.document(identity, ORDER) == records.order:
        return
    split_off = records.development is not None and records.development.split_off
    if split_off or not isinstance(dependence, Independent):
        why = "its dependence model refers to that order"
        if split_off:
            why = "their positions decide which of them are in its development part"
        raise LedgerMismatch(
            ledger.location,
            f"It has these records in another order, and {why}. Pass them in their first order.",
        )


def check_dependence(dependence: object, n: int) -> DependenceModel:
    """Return the dependence model of n records; by default they are independent."""
    from graphs import DependenceModel, Independent

    if dependence is None:
        return Independent(n)
    if not isinstance(dependence, DependenceModel):
        raise InputTypeError(
            "dependence",
            f"a {type(dependence).__name__}",
            "a model of graphs, such as Groups(labels), or TimeOrder(column, window=...)",
        )
    if dependence.n != n:
        expected = f"a model of {n} records, like the holdout"
        raise InputError("dependence", f"a model of {dependence.n} records", expected)
    return dependence


def noise_of(random_state: object) -> NoiseSource:
    """Return the source of noise; by default the operating system's entropy."""
    if random_state is None:
        return SystemNoise()
    seed = as_integer(random_state)
    if seed is not None and seed >= 0:
        return SeededNoise(seed)
    if all(hasattr(random_state, name) for name in ("for_release", "laplace")):
        return cast(NoiseSource, random_state)
    advice = "A seed is for simulations; without one, noise has the operating system's entropy."
    raise InputTypeError("random_state", repr(random_state), "None or an integer of at least 0", advice)


@dataclass(frozen=True, slots=True)
class Opened:
    """A guard's place in a ledger, with its mechanism and the certificate of its answers without other releases."""

    ledger: Ledger
    identity: str
    parameters: Parameters
    mechanism: Any  # one of thresholdout.mechanisms
    certificate: Certificate
    confidence: float
    assumed: DependenceModel
    shares: dict[float, Certificate | None] = field(default_factory=dict)

    def for_share(self, share: float) -> Certificate | None:
        """Return the certificate for a smaller share of beta; ``None`` if nothing is proved."""
        if share not in self.shares:
            confidence = 1.0 - (1.0 - self.confidence) * share
            certified = certify_parameters(self.assumed, self.parameters, confidence) if confidence < 1.0 else None
            self.shares[share] = certified
        return self.shares[share]


def opened(
    records: Records,
    model: DependenceModel,
    declared: Declaration,
    noise: NoiseSource,
    ledger: str | Path | Ledger | None,
    documents: Mapping[str, str],
) -> Opened:
    """Find the holdout in the ledger and continue, or enter it; a refusal writes nothing."""
    parameters = None if is_there(ledger) else chosen_parameters(records, model, declared)  # a known guard stores them
    found = open_ledger(ledger)  # may create a file, so every refusal of a new guard comes before
    known = known_as(found, records, is_file(ledger))
    if known is not None:
        parameters = stored_parameters(found, known, declared)
        check_order(found, known, records, parameters, model)
    elif parameters is None:
        parameters = chosen_parameters(records, model, declared)
    mechanism = _mechanism(records, parameters)
    assumed, needed = within_limits(model, declared.confidence)
    prior = declared.prior_queries
    confidence = needed if parameters.pays_prior_queries else confidence_after(prior, records.n, needed)
    certificate = certify_parameters(assumed, parameters, 1.0 - (1.0 - confidence) * (1.0 - FAILURES))
    estimand = certificate.estimand
    final, chosen = certificate.final, records.development is not None
    certificate = replace(
        certificate,
        confidence=declared.confidence,
        final=None if final is None else replace(final, chosen=chosen),
        estimand=estimand.given_features() if declared.fixed_features else estimand,
        limits=model.fitted_limits,
        prior_queries=None if prior is None else prior.counted(records.n),
    )
    if known is None:
        warn_of_width(mechanism, certificate, parameters.queries, records.n)
        known = enter(found, records, declared, parameters, mechanism.start(noise).to_text(), documents)
        check_order(found, known, records, parameters, model)  # another process may have entered it meanwhile
    else:
        check_standing(found, known, mechanism)
    if SPLIT in documents and found.document(known, SPLIT) != documents[SPLIT]:
        raise LedgerMismatch(found.location, "Another process created this guard at the same time. Open it again.")
    return Opened(found, known, parameters, mechanism, certificate, confidence, assumed)


def chosen_parameters(records: Records, model: DependenceModel, declared: Declaration) -> Parameters:
    """Return the parameters of a new guard; refuse a mechanism that does not serve these records."""
    parameters = choose_parameters(model, declared, records.open_independent)
    check_served(declared, parameters)
    _mechanism(records, parameters)
    return parameters


def _mechanism(records: Records, parameters: Parameters) -> Mechanism[Any, Any]:
    """Return the mechanism of this holdout; refuse one that needs more than these records can provide."""
    mechanism = build_mechanism(parameters, records.n)
    records.check_mechanism(mechanism)
    return mechanism
