"""Sentences of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphs.errors import amount
from graphs.numerics.rounding import shown_above
from thresholdout.mechanisms.claims.gate_states import PROVED

if TYPE_CHECKING:
    from thresholdout.report.contents import GuardReport

__all__ = ["certificate", "limits", "mechanism", "parameters", "summary"]

_UNSEEN = "The holdout was unseen before the guard was made, and was used only through the guard since."

_COMMON = (
    "A query's value for a record depends on that record, on earlier answers and on other data, but not on other "
    "records of the holdout.",
)


_EVERYTHING = 0.999  # least part of the range at which an interval counts as saying nothing


def summary(report: GuardReport) -> str:
    """Return a summary of the guard's use in a few sentences."""
    if not report.queries and not report.candidates:
        return "No query has been asked yet."
    most = report.declared.queries
    asked = amount(report.queries, "query") if most is None else f"{report.queries:,} of {amount(most, 'query')}"
    parts = [f"{asked} {'was' if report.queries == 1 else 'were'} asked."]
    counted = report.parameters.summary(report.from_holdout, _left(report), bool(len(report.answers)))
    if counted:
        parts.append(counted)
    if report.candidates:
        parts.extend(_candidates(report))
    if report.failures:
        parts.append(f"{report.failures:,} failed on the holdout, and are charged.")
    parts.append(_worth(report))
    if report.closed is not None:
        parts.append(f"The guard is closed: {report.closed}.")
    return " ".join(parts)


def _candidates(report: GuardReport) -> list[str]:
    """Return the sentences about candidates of gates, with the name of the last one that is certified."""
    word = "approximately accepted" if report.parameters.approximation else "certified"
    some = "candidate was" if report.candidates == 1 else "candidates were"
    are = "is" if report.certified == 1 else "are"
    parts = [
        f"{report.candidates:,} {some} proposed, and {report.certified:,} {are} {word} to be better than the champion "
        "before."
    ]
    kept = report.history[report.history["source"].isin(PROVED)]
    name = str(kept["candidate"].iloc[-1]) if len(kept) else ""
    if name:
        parts.append(f"The last one of these is {name}.")
    if (report.history["source"] == "step").any():
        parts.append(f"Nothing is {word} about those called a step.")
    return parts


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
    size = " to ".join(dict.fromkeys((shown_above(low), shown_above(high))))
    return f"{_likely(report)}, every interval contains its estimand, all of them at once; half-widths are {size}."


def _likely(report: GuardReport) -> str:
    """Return the probability of the intervals in words, with "about" where they are approximate."""
    confidence, approximation = f"{report.declared.confidence:g}", report.parameters.approximation
    if not approximation:
        return f"With probability at least {confidence}"
    return f"Approximate, not guaranteed ({approximation}): with probability about {confidence}"


def certificate(report: GuardReport) -> list[str]:
    """Return the certificate in three plain sentences: its probability, its estimand, its assumption."""
    made = report.certificate
    if made is None and report.parameters.approximation:
        return [f"Intervals are approximate: {report.parameters.approximation}. Nothing is certified."]
    if made is None:
        return [
            "Each answer's half-width was certified when it was given. The certificate itself is not in the ledger: "
            "make the report from the guard, which knows how its records depend on each other."
        ]
    if made.chosen is None:
        return ["Nothing is certified about the answers.", "The details below give the reasons."]
    assumed = report.dependence or "the records are independent"
    return [
        f"{_likely(report)}, all intervals contain their estimands at once.",
        f"The truth is {made.about}.",
        f"This assumes the declared dependence: {assumed}.",
    ]


def mechanism(report: GuardReport) -> str:
    """Return the mechanism in words."""
    return report.parameters.words


def parameters(report: GuardReport) -> list[tuple[str, str]]:
    """Return the mechanism's parameters as names and values."""
    wording = report.parameters.wording
    return [(name.replace("_", " "), wording.get(name) or _plain(value)) for name, value in report.chosen.items()]


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_plain, value))
    return str(value)


def limits(report: GuardReport) -> list[str]:
    """Return the assumptions of the numbers, one sentence each."""
    prior = report.declared.prior_queries
    seen = (
        f"Before the guard was made, {prior.words}; since then the holdout was used only through the guard."
        if prior
        else _UNSEEN
    )
    found = [seen, *_COMMON]
    if report.certificate is not None and report.certificate.limits is not None:
        found.insert(0, f"These statements hold {report.certificate.limits.words}.")
    if report.dependence:
        found.insert(0, f"The records depend on each other as declared: {report.dependence}.")
    if not report.declared.for_release:
        found.append("The noise of this guard was seeded: it is a simulation, and protects nothing.")
    if report.releases:
        found.append("Other private releases about the holdout were recorded, and later answers account for them.")
    return found
