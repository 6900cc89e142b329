"""Sentences of a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from graphs.errors import amount
from graphs.numerics.rounding import shown_above
from thresholdout.mechanisms.claims.gate_states import PROVED

if TYPE_CHECKING:
    from thresholdout.report.contents import GuardReport

__all__ = [
    "FINAL",
    "certificate",
    "certified",
    "limits",
    "mechanism",
    "outcome",
    "parameters",
    "spent",
    "summary",
    "threshold",
]

FINAL: Final = ", final check"
"""End of the name of a final check."""

_UNSEEN = "The holdout was unseen before the guard was made, and was used only through the guard since."

_COMMON = (
    "A query's value for a record depends on that record, on earlier answers and on other data, but not on other "
    "records of the holdout.",
)


_MOST_SIZES: Final = 4  # sizes of groups that a sentence lists

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
    word = certified(report)
    some = "candidate was" if report.candidates == 1 else "candidates were"
    parts = [f"{report.candidates:,} {some} proposed."]
    if report.certified or not report.tolerated:
        are = "is" if report.certified == 1 else "are"
        parts.append(f"{report.certified:,} {are} {word} to be better than the champion before.")
    if report.tolerated:
        are = "is" if report.tolerated == 1 else "are"
        parts.append(f"{report.tolerated:,} {are} {word} not to be worse than the champion by more than a tolerance.")
    kept = report.history[report.history["source"].isin(PROVED)]
    name = str(kept["candidate"].iloc[-1]) if len(kept) else ""
    if name:
        parts.append(f"The last one that passed is {name}.")
    if (report.history["source"] == "step").any():
        parts.append(f"Nothing is {word} about those kept on the way.")
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
    if _says_nothing(report):
        return "Nothing is certified about the answers."
    low, high = float(widths.min()), float(widths.max())
    size = " to ".join(dict.fromkeys((shown_above(low, 2), shown_above(high, 2))))
    return f"{_likely(report)}, every interval contains its estimand, all of them at once; half-widths are {size}."


def _says_nothing(report: GuardReport) -> bool:
    """Return whether there are answers, and each interval is the whole range."""
    answers = report.answers
    wide = answers["high"] - answers["low"] >= _EVERYTHING * (answers["upper"] - answers["lower"])
    return bool(len(answers) and wide.all())


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
    if made.chosen is None or (made.tolerance >= 1.0 and _says_nothing(report)):
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


def certified(report: GuardReport) -> str:
    """Return the word for statements that hold with the guard's confidence."""
    return "approximately accepted" if report.parameters.approximation else "certified"


def spent(report: GuardReport, amount: float, unit: str) -> str:
    """Return the expense of all answers in a sentence."""
    if unit != "nats":
        most = "" if report.budget is None else f" of {report.budget:,}"
        return f"{amount:,.0f}{most} answers came from the holdout."
    released = f"The answers released {shown_above(amount)} nats of information. Later intervals are wider by it."
    return f"{released} After a final check nothing is left." if report.information_released == math.inf else released


def threshold(report: GuardReport, kind: str, delta: str, tolerance: str) -> str:
    """Return the threshold of a gate in a sentence."""
    word = certified(report)
    if tolerance:
        return f"A candidate passes if it is {word} not to be worse than the champion by more than {tolerance}."
    more = f" by more than {delta}" if delta else ""
    if kind == "milestones":
        return (
            "Cross-validation keeps candidates on the way. A milestone passes if it is "
            f"{word} to be better{more} than the last {word} model."
        )
    return f"A candidate passes if it is {word} to be better{more} than the champion. Otherwise the champion stays."


def outcome(verdict: str, *, tolerance: bool = False, last: bool = False, certified: str = "certified") -> str:
    """Return the outcome of a gate, or another event of a history, in words."""
    if verdict == "keep" and tolerance:
        return f"passed: {certified} not to be worse by more"
    if verdict == "unconfirmed" and not last:
        return "kept on the way: the holdout did not confirm a milestone"
    return {
        "keep": f"passed: {certified} to be better",
        "milestone": f"passed: {certified} to be better",
        "step": f"kept on the way: not {certified}",
        "unconfirmed": "failed: the holdout did not confirm it",
        "reject": "failed: the holdout did not confirm it",
        "skip": "failed in cross-validation, at no cost",
        "worse": f"failed: {certified} to be worse",
        "unsettled": "not settled: the champion stays",
        "failed": "failed on the holdout",
        "release": "other release",
    }.get(verdict, verdict)


def parameters(report: GuardReport) -> list[str]:
    """Return the mechanism's parameters as sentences; those that are not set say nothing."""
    chosen = {name: value for name, value in report.chosen.items() if value not in (None, False, [])}
    return [sentence for name, value in chosen.items() if (sentence := _parameter(name, value, report))]


def _parameter(name: str, value: Any, report: GuardReport) -> str:
    """Return one parameter as a sentence."""
    number = f"{value:,.6g}" if isinstance(value, (int, float)) else ""
    sentences = {
        "mechanism": "",
        "confidence": f"All intervals hold at once with probability {number}.",
        "queries": f"At most {number} queries were declared.",
        "budget": f"At most {number} answers come from the holdout.",
        "max_half_width": f"A query is refused, free of charge, if its half-width would exceed {number} of the range.",
        "noise": f"The noise in its tests has a scale of {number} standard deviations of the value.",
        "noise_scale": f"The noise has a scale of {number} of the range.",
        "threshold": f"Training value and holdout agree if they differ by less than about {number} of the range.",
        "grid": f"Answers from the holdout are rounded to steps of {number} of the range.",
        "effective": f"The effective sample size is {number}.",
        "inflation": f"The design effect is {number}." if value != 1 else "",
        "n_train": f"The training part is worth {number} records.",
        "final_check": "Most of the error budget is reserved for a final check.",
        "epsilon": f"All answers together are private with epsilon {number}.",
        "information_released": f"Earlier evaluations are charged with {number} nats.",
        "correlation": f"Values in one group have a correlation of {number}.",
        "allowance": f"Answers to one client release at most {number} nats of information.",
        "direction": f"The best score is the {'largest' if value == 'maximize' else 'smallest'}.",
        "random_estimands": "Estimands depend on the records, so every claim is paid for.",
        "normal_limits": "Means of groups are tested by normal limits, which are approximate.",
    }
    if name == "information_released" and report.declared.prior_queries is not None:
        return f"Earlier evaluations are charged: {report.declared.prior_queries.words}."
    if name == "ratios":
        noises = ", ".join(f"{one:g}" for one in value)
        return f"The noises in threshold, test and answer are {noises} times that scale."
    if name in ("sizes", "blocks"):
        sizes = [f"{count:,} of {size:,} records" for size, count in value[:_MOST_SIZES]]
        rest = ", and others" if len(value) > _MOST_SIZES else ""
        return f"{'Groups' if name == 'sizes' else 'Blocks'}: {', '.join(sizes)}{rest}."
    return sentences.get(name, f"{name.replace('_', ' ').capitalize()}: {value}.")


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
