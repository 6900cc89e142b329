"""Sentences about a holdout's estimand and guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from thresholdout.guard.releases import release_names
from thresholdout.mechanisms.kind import Parameters
from thresholdout.mechanisms.ladder import LadderParameters

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger
    from thresholdout.scoring.metrics import Metric
    from thresholdout.service.corrections import Corrections
    from thresholdout.service.prediction_guard import PredictionGuard
    from thresholdout.service.schemas import Feedback, Phase

__all__ = ["estimand", "looked_at", "mechanism_for", "promise"]

_WHOEVER: Final = "even if submissions are chosen from all earlier answers, and teams share these and work together"
_BLIND: Final = (
    "In the blind phase submissions are answered and stored at once, and their answers are shown when it ends. "
    "The guarantee is the same."
)
_CHECKED: Final = (
    "Labels were checked since, or records withdrawn, record by record and for public reasons. Each answer is about "
    "the records and labels of its time, and the guarantee holds for all of them. A leaderboard widens earlier "
    "intervals by as much as the changes can have moved their scores."
)
_CHECKED_FOR_BEST: Final = (
    "Labels were checked since, record by record and for public reasons. The true score of each submission is about "
    "the labels of the time of its answer, and the guarantee is about the best of these: a former leader may be worse "
    "by the current labels."
)
_NOT_PROVED: Final = (
    "Labels were corrected in view of labels. The guarantee holds for the answers before that, which are about the "
    "labels of their time. But nothing is proved about those after it, which no leaderboard counts."
)


def mechanism_for(feedback: Feedback, metric: Metric) -> Parameters | Literal["leaderboard"]:
    """Return the mechanism for a kind of feedback.

    Examples
    --------
    >>> from thresholdout.scoring.metrics import get_metric
    >>> mechanism_for("best", get_metric("zero_one_loss")).direction
    'minimize'
    >>> mechanism_for("interval", get_metric("accuracy"))
    'leaderboard'
    """
    if feedback != "best":
        return "leaderboard"
    return LadderParameters(direction="maximize" if metric.greater_is_better else "minimize")


def estimand(guard: PredictionGuard) -> str:
    """Return the estimand of a guard's answers, in sentences.

    Examples
    --------
    >>> import pandas as pd
    >>> from thresholdout.ledger import open_ledger
    >>> from thresholdout.service import PredictionGuard
    >>> table = pd.DataFrame({"id": range(400), "y": [0, 1] * 200})
    >>> print(estimand(PredictionGuard.create(open_ledger(None), table[:200], table[200:], label="y")))
    Answers are about a submission's expected score on these 200 records, given the features of ...
    """
    n = guard.guard.n
    if guard.guard._declared.sampling == "fixed_features":
        found = (
            f"Answers are about a submission's expected score on these {n:,} records, given the features "
            "of all of them and everything known before the first query: features are fixed, and labels are random. "
            "Nothing is claimed about records with other features."
        )
    else:
        found = (
            f"Answers are about a submission's expected score on {n:,} records like these, features and "
            "labels together. The predictions must come, record by record, from a rule that was chosen without the "
            "features of these records. For a rule that was fitted to them, or chosen by them, nothing is proved."
        )
    if guard.guard._mechanism.about == "best":
        found += " Each answer is about the best of all submissions until then, and not about the one just sent."
    return f"{found} Besides, {guard.note}." if guard.note else found


def promise(guard: PredictionGuard, feedback: Feedback, phase: Phase = "open") -> str:
    """Return the guarantee of a guard's answers, in sentences."""
    certificate = guard.certificate
    if certificate.chosen is None:
        return f"There is no guarantee: {certificate.statement}"
    likely = f"With probability {certificate.confidence:g}"
    held = {
        "interval": f"{likely} every interval shown here contains its true value, all of them at once, {_WHOEVER}. So "
        "of two submissions whose intervals do not overlap one is better, and overlapping intervals leave it open.",
        "verdict": f"{likely} every submission that is called better is better than the one that it was compared with, "
        f"all of them at once, {_WHOEVER}. One that is not called better may be better, as good, or worse.",
        "best": f"{likely} the best true score of all submissions is in the interval shown after each submission, all "
        f"of them at once, {_WHOEVER}. Nothing is claimed about a single submission.",
    }[feedback]
    said = [held, f"This assumes the declaration: {certificate.records}."]
    if phase == "blind":
        said.append(_BLIND)
    return " ".join([*said, *corrected(guard.corrections, best=guard.guard._mechanism.about == "best")])


def corrected(corrections: Corrections, *, best: bool) -> tuple[str, ...]:
    """Return the guarantee after corrections; nothing without corrections.

    Examples
    --------
    >>> from thresholdout.service.corrections import Corrections
    >>> corrected(Corrections(), best=False)
    ()
    >>> corrected(Corrections({2: 1}, False, ("labels corrected",)), best=False)[0][-50:]
    'about those after it, which no leaderboard counts.'
    """
    if not corrections.notes:
        return ()
    if not corrections.public:
        return (_NOT_PROVED,)
    return (_CHECKED_FOR_BEST if best else _CHECKED,)


def looked_at(ledger: Ledger, guard: str) -> tuple[str, ...]:
    """Return the note on other private releases about the records; nothing without releases."""
    number = len(release_names(ledger, guard))
    if not number:
        return ()
    looks = "One other private release" if number == 1 else f"{number} other private releases"
    was, each = ("was", "it is") if number == 1 else ("were", "they are")
    return (
        f"{looks} about these records {was} recorded, such as the training of a private model. Answers since then pay "
        f"for the information released, if {each} as private as recorded, and are refused where the budget does not "
        "suffice.",
    )
