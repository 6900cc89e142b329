"""Views of holdouts and submissions, by the phase and the feedback of the holdout."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from thresholdout.mechanisms.claims.clients import newcomers_of
from thresholdout.service.guarantee_text import estimand, promise
from thresholdout.service.schemas import Feedback, Holdout, Outlook, Phase, State, Submission
from thresholdout.service.standings import served_metric
from thresholdout.service.store.holdouts import Facts

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger
    from thresholdout.service.prediction_guard import PredictionGuard
    from thresholdout.service.store.holdouts import HoldoutRow
    from thresholdout.service.store.submissions import SubmissionRow

__all__ = ["facts_of", "holdout_shown", "outlook_of", "shown", "told_of"]

# Last answers whose price forecasts that of further ones.
_RECENT: Final = 50

# Further answers of a forecast.
_AHEAD: Final = 200


def shown(holdout: HoldoutRow, row: SubmissionRow, number: int | None = None) -> Submission:
    """Return a submission as its team sees it now."""
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
    """Return value and interval of an answer, as far as the feedback shows them."""
    if holdout.settings.feedback == "verdict":
        return None, None, None
    return row.value, row.low, row.high


def facts_of(guard: PredictionGuard, feedback: Feedback, phase: Phase) -> Facts:
    """Return the facts of a guard until its labels are corrected or the phase changes."""
    parameters, confidence = guard.guard.parameters, guard.certificate.confidence
    untouched = guard.guard._mechanism.start(guard.guard._noise)
    return Facts(
        records=guard.guard.n,
        rows=guard.rows,
        confidence=confidence,
        mechanism=guard.guard._mechanism.name,
        estimand=estimand(guard),
        promise=promise(guard, feedback, phase),
        notes=guard.corrections.notes,
        remaining=guard.guard._mechanism.remaining(untouched),
        log_error_budget=None
        if guard.guard.status.information_released is None
        else math.log1p(-confidence) - parameters.information_released,
    )


def outlook_of(served: PredictionGuard, ledger: Ledger) -> Outlook | None:
    """Return how intervals will widen at the price of the last answers; ``None`` before any answer."""
    guard, count = served.guard, ledger.count(served.identity)
    mechanism: Any = guard._mechanism
    if not guard.parameters.anticipates or not count:
        return None
    recent = ledger.entries(served.identity, max(1, count - _RECENT), _RECENT + 1)
    before = guard._engine.log_error_budget_before(recent[0]) if count <= _RECENT else recent.pop(0).log_error_budget
    last = recent[-1]
    if before is None or last.log_error_budget is None:
        return None
    nats, state = (before - last.log_error_budget) / len(recent), guard._engine.state()
    score = newcomers_of(state).answer
    likely = 0.5 if score is None else score

    def after(spent: float) -> float:
        return float(mechanism.next_half_width(replace(state, log_error_budget=state.log_error_budget - spent), likely))

    right = mechanism.right_guess_nats(state)
    return Outlook(len(recent), nats, after(0.0), _AHEAD, after(_AHEAD * nats), after(_AHEAD * right))


def holdout_shown(row: HoldoutRow, facts: Facts, ledger: Ledger, notes: tuple[str, ...]) -> Holdout:
    """Return a holdout as visitors may see it; in a blind phase as at its beginning."""
    settings, metric = row.settings, served_metric(row.settings.metric)
    asked = ledger.count(row.identity) if row.shown is None else row.shown
    remaining, information_released, checkpoint = None, None, ""
    if row.shown is None:
        last = ledger.entries(row.identity, asked, 1) if asked else []
        remaining = last[0].remaining if last else facts.remaining
        left = last[0].log_error_budget if last else facts.log_error_budget
        information_released = (
            None if left is None or facts.log_error_budget is None else max(0.0, facts.log_error_budget - left)
        )
        checkpoint = ledger.checkpoint(row.identity)
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
        records=facts.records,
        confidence=facts.confidence,
        mechanism=facts.mechanism,
        estimand=facts.estimand,
        promise=facts.promise,
        asked=asked,
        remaining=remaining,
        information_released=information_released,
        quota=settings.quota,
        quota_days=settings.quota_days,
        checkpoint=checkpoint,
        made=row.made,
        notes=facts.notes + notes,
        rows=facts.rows,
    )
