"""Audit report of a holdout: its records, its answers and their recipients, for a rules committee.

An audit report is made from the ledger alone, and contains nothing that its history does not. It names records without
showing them: their number, and a digest of their ids, which anybody who has the ids can compute (``sort`` in the C
locale, one id a line, ``sha256sum``). It has no labels and no digest of them: few labels could be guessed by trial.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from thresholdout.errors import InputError
from thresholdout.mechanisms.catalogue import parameters_to_json
from thresholdout.planning.declaration import read_declaration
from thresholdout.service.guarantee_text import estimand, looked_at, promise
from thresholdout.service.prediction_guard import PredictionGuard
from thresholdout.service.receipts.receipt import written_time
from thresholdout.service.receipts.rollback_detection import checkpoint_at, copy_notes
from thresholdout.service.store.holdouts import Holdouts
from thresholdout.service.store.tables import SETTING, Store

if TYPE_CHECKING:
    from thresholdout.ledger import SQLLedger
    from thresholdout.ledger.entry import Entry
    from thresholdout.service.store.holdouts import HoldoutRow

__all__ = ["AuditReport", "Signal", "Told", "audit_report", "ids_digest"]

_VERSION: Final = 1
_SHOWN: Final = {
    "interval": "teams are told the value and its interval",
    "verdict": "teams are told a verdict, and neither value nor interval",
    "best": "teams are told the best so far and its interval",
}


@dataclass(frozen=True, slots=True)
class Signal:
    """One answer and its recipient.

    Notes
    -----
    `team` is empty for the organiser. `time` is of RFC 3339, and ``None`` in histories of an earlier format. `kind` is
    `thresholdout.ledger.entry.Entry.source`. `nats` is the charge, rounded up, and ``None`` where the mechanism has
    none.
    """

    query: int
    team: str
    time: str | None
    name: str
    kind: str
    value: float
    low: float
    high: float
    nats: float | None


@dataclass(frozen=True, slots=True)
class Told:
    """Summary of one team's answers; `nats` is their charge, rounded up."""

    team: str
    answers: int
    first: str | None
    last: str | None
    nats: float | None


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Everything that a holdout has released.

    Notes
    -----
    `service` identifies the ledger, `guard` the guard in it, and `holdout` the name in addresses, which is empty
    without a service. `ids` is `ids_digest`. `shown` says which parts of an answer teams see. `checkpoint` is the
    digest of the last entry. `nats` is the charge of all answers; `epsilon` their privacy loss per record, and
    `bayesian_epsilon` with all records that depend on it, under the declared dependence; ``None`` where unbounded.
    """

    service: str
    holdout: str
    guard: str
    made: str
    records: int
    ids: str
    mechanism: str
    estimand: str
    promise: str
    shown: str
    checkpoint: str
    nats: float | None
    epsilon: float | None
    bayesian_epsilon: float | None
    teams: tuple[Told, ...]
    signals: tuple[Signal, ...]
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """Return the report as a JSON object."""
        said = {"format": "thresholdout audit report", "version": _VERSION, **asdict(self)}
        return json.dumps(said, indent=1, allow_nan=False)


def audit_report(ledger: SQLLedger, guard: str | None = None) -> AuditReport:
    """Return the audit report of a holdout."""
    opened = PredictionGuard.open(ledger, guard)
    identity = opened.identity
    row, since = _of_service(ledger, identity), (*looked_at(ledger, identity), *copy_notes(ledger, identity))
    if row is not None and row.shown is not None:
        advice = "An audit report shows every answer: close the holdout first."
        raise InputError("holdout", f"{row.name}, in a blind phase", "a holdout that hides no answers", advice)
    count = ledger.verify(identity)
    entries = ledger.entries(identity, 1, count) if count else []
    status = opened.guard.status
    signals = tuple(_signals(entries, _error_budget_at_start(ledger, identity)))
    return AuditReport(
        service=ledger.identity(),
        holdout="" if row is None else row.name,
        guard=identity,
        made=written_time(time.time()),
        records=opened.guard.n,
        ids=ids_digest(opened._records.holdout_ids),
        mechanism=opened.guard._mechanism.name,
        estimand=estimand(opened),
        promise=" ".join([promise(opened, "interval" if row is None else row.settings.feedback), *since]),
        shown=_SHOWN["interval" if row is None else row.settings.feedback],
        checkpoint=checkpoint_at(ledger, identity, count),
        nats=_sum(signals),
        epsilon=_finite(status.epsilon),
        bayesian_epsilon=_finite(status.bayesian_epsilon),
        teams=_teams([signal for signal in signals if signal.kind not in ("note", "release")]),
        signals=signals,
        notes=(*opened.corrections.notes, *since),
    )


def ids_digest(ids: Iterable[str]) -> str:
    """Return a digest that tells one set of ids from another: SHA-256 of their sorted lines in UTF-8.

    Examples
    --------
    As ``printf 'a\\nb\\n' | LC_ALL=C sort | sha256sum`` says it:

    >>> ids_digest(["b", "a"])[:16]
    '911169ddaaf146af'
    """  # noqa: D301
    digest = sha256()
    for line in sorted(f"{id}\n".encode() for id in ids):
        digest.update(line)
    return digest.hexdigest()


def _of_service(ledger: SQLLedger, guard: str) -> HoldoutRow | None:
    """Return the service's row of a guard, where there is a service."""
    return None if ledger.read_setting(SETTING) is None else Holdouts(Store(ledger.database)).of_guard(guard)


def _error_budget_at_start(ledger: SQLLedger, guard: str) -> float | None:
    """Return the logarithm of the error budget before the first answer; ``None`` where nats are not charged."""
    declared, parameters = read_declaration(ledger, guard)
    if not parameters.tells_nats:
        return None
    confidence = parameters_to_json(parameters).get("confidence", declared.confidence)
    assert isinstance(confidence, float)
    return math.log1p(-confidence) - parameters.information_released


def _signals(entries: Sequence[Entry], risk: float | None) -> Iterable[Signal]:
    for entry in entries:
        nats = None
        if risk is not None and entry.log_error_budget is not None:
            # The difference is rounded up, since the charge is a bound.
            nats = 0.0 if entry.log_error_budget >= risk else math.nextafter(risk - entry.log_error_budget, math.inf)
            risk = entry.log_error_budget
        yield Signal(
            query=entry.query,
            team=entry.client,
            time=None if entry.time is None else written_time(entry.time),
            name=entry.name,
            kind=entry.source,
            value=entry.value,
            low=entry.low,
            high=entry.high,
            nats=_finite(nats),
        )


def _teams(signals: Sequence[Signal]) -> tuple[Told, ...]:
    told: dict[str, list[Signal]] = {}
    for signal in signals:
        told.setdefault(signal.team, []).append(signal)
    return tuple(Told(team, len(own), own[0].time, own[-1].time, _sum(own)) for team, own in told.items())


def _finite(bound: float | None) -> float | None:
    """Return a finite bound; ``None`` otherwise, since JSON has no infinity."""
    return None if bound is None or math.isinf(bound) else bound


def _sum(signals: Sequence[Signal]) -> float | None:
    """Return the charge of signals, rounded up; ``None`` where one of them has none."""
    nats = [signal.nats for signal in signals]
    known = [one for one in nats if one is not None]
    if len(known) < len(nats):
        return None
    return math.nextafter(math.fsum(known), math.inf) if any(known) else 0.0
