"""The card of a guard in a notebook: its use, its remaining budget, and its last answers.

A history stays a data frame, with pandas' own view of it: people compute with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from thresholdout.notebook.cards import Bar, Card
from thresholdout.plotting import drawable, main_range, row_names, short_names
from thresholdout.report import sentences as words
from thresholdout.report.answers import number
from thresholdout.report.page import facts

if TYPE_CHECKING:
    from thresholdout.report.contents import GuardReport

__all__ = ["guard_html"]

# Number of answers on the card: the last ones.
_SHOWN: Final = 12


def guard_html(report: GuardReport, name: str) -> str:
    """Return the card of a guard; `name` is that of its class."""
    shown = main_range(drawable(report.answers)).iloc[-_SHOWN:]
    notes, bars, axis = [], [], None
    if len(shown):
        if len(shown) < len(report.answers):
            drawn = f"{len(shown)} of {len(report.answers):,} answers, the last ones of one metric and range"
            notes.append(f"{drawn}; guard.history has all.")
        notes.append("Blue: the anticipated score, accepted. Orange: from the holdout.")
        bars = [_bar(row, label) for row, label in zip(shown.itertuples(), short_names(row_names(shown)), strict=True)]
        axis = float(shown["lower"].iloc[0]), float(shown["upper"].iloc[0])
    lead = words.summary(report)
    if report.dependence:
        lead += f" Declared: {report.dependence}."
    return Card(name, lead, facts(report), bars, within=axis, notes=notes).html


def _bar(row: Any, label: str) -> Bar:
    return Bar(label, row.low, row.high, str(number(row)), row.value, row.source)
