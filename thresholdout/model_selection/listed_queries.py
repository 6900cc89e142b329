"""Candidates of a search as one list of queries: fixed before the first answer, answered in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from thresholdout.data.arguments import check_word
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.guard.content_keys import content_key
from thresholdout.guard.exhaustion import Exhausted
from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.kfold import KFoldGuard
from thresholdout.ledger.entry import fresh_key

if TYPE_CHECKING:
    from thresholdout.guard.answer import Answer
    from thresholdout.mechanisms.kind import Parameters
    from thresholdout.scoring.metrics import Metric
    from thresholdout.scoring.statistics import Statistic

__all__ = [
    "Candidate",
    "Found",
    "Reported",
    "ask_together",
    "candidate",
    "candidate_name",
    "checked_report",
    "takes_lists",
]

Reported = Literal["all", "best"]

_LONGEST: Final = 120  # characters of a candidate's name in the history


@dataclass(frozen=True)
class Candidate:
    """One query of the list: a fitted model, its name in the history, its cross-validated score, and its key.

    `value` is None for the score on the guard's development part, `key` is None for a model whose content has no hash.
    """

    model: Any
    name: str
    value: float | None
    key: str | None


@dataclass
class Found:
    """Answers by their places in the list; `refusal` says why others have none, None where they are not reported."""

    answers: dict[int, Answer] = field(default_factory=dict)
    refusal: BudgetExhausted | None = None

    def answer(self, place: int) -> Answer | None:
        """Return the answer at a place, None where it is not reported; raise `refusal` where there is none."""
        if place not in self.answers and self.refusal is not None:
            raise self.refusal
        return self.answers.get(place)


def candidate(
    model: Any, index: int, settings: Mapping[str, Any], value: float | None, metric: Metric | Statistic
) -> Candidate:
    """Return a fitted model as a query; `index` is its row in ``cv_results_``."""
    return Candidate(model, candidate_name(index, settings), value, content_key(model, metric, value))


def candidate_name(index: int, settings: Mapping[str, Any]) -> str:
    """Return the name in the history of the candidate of a row, such as "2 {'max_depth': 3}"."""
    return f"{index} {dict(settings)}"[:_LONGEST]


def checked_report(report: Reported | None, guard: Any) -> Reported:
    """Return the report of a list, "all" or "best", by default from the guard."""
    lists = guard is None or takes_lists(guard)
    if report is None:
        return "best" if lists and isinstance(guard, Thresholdout) and guard.status.answers_left is None else "all"
    check_word("report", report, ("all", "best"))
    if report == "best" and not lists:
        advice = "Or use a guard with mechanism='claims' without epsilon=."
        raise InputError("report", "'best'", "'all' for a guard that answers one query after another", advice)
    return report


def takes_lists(guard: Any) -> bool:
    """Return whether a guard answers lists of queries that were fixed together."""
    parameters: Parameters | None = getattr(guard, "parameters", None)
    return parameters is not None and parameters.takes_lists


def ask_together(
    guard: Thresholdout | KFoldGuard,
    asked: Sequence[Candidate],
    metric: Metric | Statistic,
    report: Reported,
    reserve: float,
    policy: Exhausted,
    n_jobs: int | None = None,
) -> Found | None:
    """Query candidates as one list, in their order; if fewer queries remain, the first of them.

    By the policies "nan" and "train" later candidates have their known answers too. Returns None if the guard counts
    answers from the holdout and all are reported: one after another, accepted hypotheses spend none of them.
    """
    if report == "all" and guard.status.answers_left is not None:
        return None
    places: dict[str, list[int]] = {}
    for place, one in enumerate(asked):
        places.setdefault(one.key or fresh_key(), []).append(place)  # equal models are one query
    found, room = Found(), len(places)
    while True:
        keys = list(places) if report == "best" else _chosen(guard, list(places), room, policy)
        if not keys:
            return found
        some = [asked[places[key][0]] for key in keys]
        models, values = {one.name: one.model for one in some}, [one.value for one in some]
        try:
            if isinstance(guard, KFoldGuard):
                answers = guard.score_all(models, metric, keys=keys, reserve=reserve, report=report, n_jobs=n_jobs)
            else:
                answers = guard.score_all(
                    models, metric, train_values=values, keys=keys, reserve=reserve, report=report
                )
        except BudgetExhausted as error:
            found.refusal = error
            if policy == "raise":
                raise
            if report == "best":
                return found
            room = max(0, min(room - 1, error.limit - error.spent))
        else:
            if report == "best":
                names = [one.name for one in some]
                keys = [keys[names.index(answer.candidate)] for answer in answers]
            for key, answer in zip(keys, answers, strict=True):
                first, *others = places[key]
                found.answers[first] = answer
                if report == "all":
                    found.answers.update(dict.fromkeys(others, replace(answer, repeated=True)))
            return found


def _chosen(guard: Thresholdout | KFoldGuard, keys: list[str], room: int, policy: Exhausted) -> list[str]:
    """Return the keys of the candidates for the list: those with a known answer are free."""
    if room >= len(keys):
        return keys
    chosen = []
    for key in keys:
        if guard._answered(key):
            chosen.append(key)
        elif room > 0:
            chosen.append(key)
            room -= 1
        elif policy == "stop":
            break
    return chosen
