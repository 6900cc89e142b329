"""What is shown of holdouts and submissions, by the phase and the feedback of the holdout."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from thresholdout.service.promises import promise, truth
from thresholdout.service.served_metric import served_metric
from thresholdout.service.shown import Holdout, State, Submission

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger
    from thresholdout.service.prediction_guard import PredictionGuard
    from thresholdout.service.store.holdouts import HoldoutRow
    from thresholdout.service.store.submissions import SubmissionRow

__all__ = ["holdout_shown", "shown", "told_of"]


def shown(holdout: HoldoutRow, row: SubmissionRow, number: int | None = None) -> Submission:
    """Return a submission as its team sees it now.

    Parameters
    ----------
    holdout : HoldoutRow
        As it is now.
    row : SubmissionRow
        What is stored.
    number : int, optional
        Where it stands in the list in which it is shown; by default in its team's.
    """
    state: State = row.state
    if state == "running" and row.until < time.time():
        state = "interrupted"
    place = row.turn if number is None else number
    plain = Submission(row.id, holdout.name, row.team, row.name, row.kind, state, row.received, number=place)
    if state in ("running", "interrupted"):
        return plain
    if not holdout.shows(row.query):
        return replace(plain, state="hidden")
    value, low, high = told_of(holdout, row)
    return replace(
        plain,
        query=row.query,
        value=value,
        low=low,
        high=high,
        verdict=row.verdict,
        refusal=row.refusal,
        receipt=row.receipt,
    )


def told_of(holdout: HoldoutRow, row: SubmissionRow) -> tuple[float | None, float | None, float | None]:
    """Return value and interval of an answer, as far as the feedback tells them at all."""
    if holdout.settings.feedback == "verdict":
        return None, None, None
    return row.value, row.low, row.high


def holdout_shown(row: HoldoutRow, guard: PredictionGuard, ledger: Ledger, notes: tuple[str, ...]) -> Holdout:
    """Return a holdout as everybody who may see it does; in a blind phase as it was when that began.

    Parameters
    ----------
    row : HoldoutRow
        As it is now.
    guard : PredictionGuard
        Behind which its labels are.
    ledger : Ledger
        Where the answers are.
    notes : tuple of str
        What happened to it since it was made, beside corrections of its labels.
    """
    settings, certificate = row.settings, guard.certificate
    metric = served_metric(settings.metric)
    asked = ledger.count(row.identity)
    blind = row.shown is not None
    return Holdout(
        name=row.name,
        title=settings.title or row.name,
        identity=row.identity,
        metric=metric.name,
        greater_is_better=metric.greater_is_better,
        lower=metric.bounds[0],
        upper=metric.bounds[1],
        feedback=settings.feedback,
        phase=row.phase,
        public=settings.public,
        records=guard.guard.n,
        confidence=certificate.confidence,
        mechanism=guard.guard._mechanism.name,
        truth=truth(guard),
        promise=promise(guard, settings.feedback, row.phase),
        asked=asked if row.shown is None else row.shown,
        remaining=None if blind else guard.guard.remaining,
        told=None if blind else guard.guard.told,
        quota=settings.quota,
        quota_days=settings.quota_days,
        head="" if blind else ledger.head(row.identity),
        made=row.made,
        notes=notes + guard.corrections.notes,
    )
