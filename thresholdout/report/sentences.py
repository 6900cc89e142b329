"""A guard's life in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from thresholdout.mechanisms.gaussian import NoiseSchedule

if TYPE_CHECKING:
    from thresholdout.report.contents import GuardReport

__all__ = ["limits", "mechanism", "parameters", "summary"]

_MECHANISMS = {
    "claims": "The guard claims that the value on the holdout is near what the training part and earlier answers say, "
    "and tests the claim. One that is confirmed is the answer. One that is not is made again, further out, and leaves "
    "less of the probability of error that all answers share, so that later ones are wider.",
    "fold-claims": "Every question is the average over all records of models that were fitted to the other folds. The "
    "guard tells in which cell of the range it lies; each answer costs some of the probability of error that all "
    "answers share, and unexpected ones more, so that later ones are wider.",
    "thresholdout": "While the training part agrees with the holdout, the guard answers with the training value, which "
    "costs nothing. When they disagree, it answers with a noisy value from the holdout and spends one unit of budget.",
    "gaussian": "Every question is answered from the holdout, with Gaussian noise.",
    "ladder": "The guard tells only the best score so far: each value and its half-width are about the best truth of "
    "all questions until then, not about the question that was asked.",
    "splitting": "Every question is answered from a part of the holdout that no other question has seen; its records "
    "were declared to have one law.",
}

_COMMON = (
    "The holdout was seen by nobody before the guard was made, and through nothing but the guard since.",
    "What is asked about a record depends on that record, on earlier answers and on other data, but not on other "
    "records of the holdout.",
)


_EVERYTHING = 0.999  # of the range: an interval that excludes less says nothing


def summary(report: GuardReport) -> str:
    """Say in a few sentences what happened."""
    if not report.questions and not report.candidates:
        return "No question has been asked yet."
    most = report.declared.queries
    of = "" if most is None else f" of {most:,}"
    parts = [f"{report.questions:,}{of} questions were asked."]
    if report.chosen["mechanism"] == "claims":
        told = f"{report.from_holdout:,} were not near what was expected, and were answered from the holdout"
        others = "; for all others the first claim was confirmed" if len(report.answers) else ""
        parts.append(f"{told}{_left(report)}{others}.")
    if report.chosen["mechanism"] == "thresholdout":
        told = f"{report.from_holdout:,} were answered from the holdout"
        parts.append(f"{told}{_left(report)}; for all others the training part was good enough.")
    if report.candidates:
        parts.append(
            f"{report.candidates:,} candidates were proposed, and {report.certified:,} are certified to be better than "
            "what was certified before; of those that are called a step nothing is certified."
        )
    if report.failures:
        parts.append(f"{report.failures:,} failed on the holdout, and are charged.")
    parts.append(_worth(report))
    if report.retired is not None:
        parts.append(f"The guard is retired: {report.retired}.")
    return " ".join(parts)


def _left(report: GuardReport) -> str:
    if report.budget is None:
        return ""
    return (
        f", {report.remaining:,} of {report.budget:,} may still be" if report.remaining else ", as many as there may be"
    )


def _worth(report: GuardReport) -> str:
    answers = report.answers
    widths = answers["half_width"]
    if not len(widths):
        return ""
    if (answers["high"] - answers["low"] >= _EVERYTHING * (answers["upper"] - answers["lower"])).all():
        return "Nothing is certified about the answers."
    low, high = float(widths.min()), float(widths.max())
    size = f"{high:.3g}" if math.isclose(low, high, rel_tol=1e-3) else f"{low:.3g} to {high:.3g}"
    return (
        f"With probability at least {report.declared.confidence:g}, the truth is in the interval of every answer, "
        f"all of them at once; half-widths are {size}."
    )


def mechanism(report: GuardReport) -> str:
    """Say how questions are answered."""
    return _MECHANISMS[str(report.chosen["mechanism"])]


def parameters(chosen: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the mechanism's parameters as names and values."""
    return [(name.replace("_", " "), _plain(value)) for name, value in chosen.items()]


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):  # the one that parameters have: in a ledger it is packed
        return _noise(NoiseSchedule.from_json(value))
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_plain, value))
    return str(value)


def _noise(schedule: NoiseSchedule) -> str:
    first = f"noise of standard deviation {schedule.scale(1):.3g} on "
    if schedule.limit is None:
        return f"{first}every answer, for values in [0, 1]"
    return f"{first}answer 1, {schedule.scale(schedule.limit):.3g} on answer {schedule.limit}, for values in [0, 1]"


def limits(report: GuardReport) -> list[str]:
    """Return what the numbers rest on, one sentence each."""
    found = list(_COMMON)
    if report.dependence:
        found.insert(0, f"The records depend on each other as declared: {report.dependence}.")
    if not report.declared.for_release:
        found.append("The noise of this guard was seeded: it is a simulation, and keeps nothing secret.")
    if report.looks:
        found.append("Other private looks at the holdout were recorded, and are taken into account from then on.")
    return found
