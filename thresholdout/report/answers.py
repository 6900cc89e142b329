"""The answers and decisions of a report: one table for each metric, each kind of comparison and each gate."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

from graphs.numerics.rounding import MOST_DIGITS, fitting_decimals, shown_answer, shown_interval
from thresholdout.mechanisms.claims.gate_states import PROVED, Verdict
from thresholdout.plotting import (
    COMPARED,
    drawable,
    greater_is_better,
    kinds,
    may_be_best,
    orders,
    row_names,
    short_names,
    verdict,
)
from thresholdout.report import sentences as words

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.report.contents import GuardReport

__all__ = ["Number", "decided", "gates", "number", "tables"]

_MOST_BARS: Final = 60
_MOST_NAMES: Final = 500  # candidates beside which those of comparisons are named
_ROOM: Final = 0.04  # margin beyond the outermost ends, as a part of the axis
_APART: Final = 1.0  # percent of the axis from which on a training value is drawn beside its answer
_TICKS: Final = 5  # numbers on an axis, which have room on a phone
_GATE: Final = re.compile(
    r"(gate|milestones): (.+?)(?: by more than (\S+?))?(?: with a tolerance of (\S+?))?(, last evaluation)?"
)


@dataclass(frozen=True, slots=True)
class Number:
    """An answer and its interval, in as many decimals as the half-width deserves; intervals are rounded outwards."""

    shown: tuple[float, float, float]
    decimals: int
    signed: bool = False

    @property
    def _huge(self) -> bool:
        return max(map(abs, self.shown)) >= MOST_DIGITS

    def near(self, value: float) -> str:
        """Return another value in the same decimals."""
        return f"{value:.4g}" if self._huge or abs(value) >= MOST_DIGITS else f"{value:.{self.decimals}f}"

    @property
    def value(self) -> str:
        """The answer alone."""
        return self.near(self.shown[0])

    @property
    def interval(self) -> str:
        """The interval in words."""
        return " to ".join(shown_interval(*self.shown)[1:])

    def __str__(self) -> str:
        return shown_answer(*self.shown, signed=self.signed)


def number(row: Any, *, signed: bool = False) -> Number:
    """Return the answer of a history's row."""
    shown = float(row.value), float(row.low), float(row.high)
    return Number(shown, fitting_decimals(*shown), signed)


@dataclass(frozen=True, slots=True)
class _Group:
    """Answers of one kind and range, with a label and a mark for each: whether it may be the best, or its verdict."""

    kind: str
    rows: pd.DataFrame
    greater: bool | None
    settled: int

    @property
    def middle(self) -> float | None:
        """Value at which neither model of a comparison is better; None for other answers."""
        return next((COMPARED[ending] for ending in COMPARED if self.kind.endswith(ending)), None)


def _groups(report: GuardReport) -> list[_Group]:
    """Return the answers by metric and range: scores first, then comparisons, then other queries."""
    answers = drawable(report.answers)
    if not len(answers):
        return []
    settled, found = orders(report.history), []
    by = answers.assign(kind=kinds(answers)).groupby(["kind", "lower", "upper"], sort=False)
    for (kind, _, _), rows in by:
        group = _Group(str(kind), rows, greater_is_better(str(kind)), 0)
        if group.middle is not None:
            ends = zip(rows["low"], rows["high"], strict=True)
            marks: list[Any] = [verdict(group.kind, float(low), float(high)) for low, high in ends]
            group = _Group(group.kind, rows, greater_is_better(str(kind).rpartition(", ")[0]), 0)
        elif group.greater is None or report.parameters.best_direction is not None:
            marks = [False] * len(rows)
        else:
            lowest = not group.greater
            marks = may_be_best(rows, settled, lowest_is_best=lowest)
            alone = marks if settled is None else may_be_best(rows, lowest_is_best=lowest)
            group = _Group(group.kind, rows, group.greater, sum(alone) - sum(marks))
        found.append(_Group(group.kind, rows.assign(mark=marks, label=row_names(rows)), group.greater, group.settled))
    return sorted(found, key=lambda group: (not group.kind, group.middle is not None))


def decided(report: GuardReport) -> list[str]:
    """Return the decisions that follow from the answers: a sentence for each metric and each kind of comparison."""
    if report.parameters.best_direction is not None:
        return []
    return [sentence for group in _groups(report) for sentence in _sentences(report, group)]


def _sentences(report: GuardReport, group: _Group) -> list[str]:
    rows = group.rows
    if group.middle is not None:
        metric, _, about = group.kind.rpartition(", ")
        counts = rows["mark"].value_counts()
        counted = ", ".join(
            f"{counts[said]:,} {said}"
            for said in ("better", "worse", "higher", "lower", "not settled")
            if said in counts.index
        )
        asked = "1 comparison" if len(rows) == 1 else f"{len(rows):,} comparisons"
        return [f"{asked} by {metric}{' (win rates)' if about == 'win rate' else ''}: {counted}."]
    final = rows[rows["name"].str.endswith(words.FINAL)].itertuples()
    found = [f"Final check of {row.candidate}: {group.kind} {number(row)}." for row in final]
    if group.greater is None or len(rows) < 2:
        return found
    best: Any = rows.sort_values(["value", "query"], ascending=[not group.greater, True], kind="stable").iloc[0]
    place = rows["query"].tolist().index(best["query"])
    named = _with_class(str(best["label"]), short_names(rows["label"].tolist())[place])
    many, sure = int(rows["mark"].sum()), words.certified(report)
    lead = f"By {group.kind}, {named} has the best answer: {number(best)}."
    condition = ", if equal names are equal models" if group.settled else ""
    if best["mark"] and many == 1:
        lead += f" It is {sure} to be better than all others{condition}."
    elif many == len(rows):
        lead += f" None of the {many:,} is {sure} to be worse than another."
    elif many:
        lead += f" {many:,} of {len(rows):,} may be the best: no other is {sure} to be better{condition}."
    return [*found, lead]


def tables(report: GuardReport) -> list[dict[str, Any]]:
    """Return a table of answers for each metric and range, with bars on one axis, the best answer first."""
    groups = _groups(report)
    known = [name for group in groups if group.middle is None for name in group.rows["candidate"].unique() if name]
    return [_table(report, group, known[:_MOST_NAMES]) for group in groups]


def _pairs(labels: list[str], known: list[str]) -> list[str]:
    """Return the names of comparisons, in which candidates are called as among all candidates."""
    sides = [label.split(" against ") for label in labels]
    flat = list(dict.fromkeys([*known, *(name for pair in sides for name in pair)]))
    short = dict(zip(flat, short_names(flat), strict=True))
    return [" against ".join(short[name] for name in pair) for pair in sides]


def _table(report: GuardReport, group: _Group, known: list[str]) -> dict[str, Any]:
    """Return one table: short names, and bars in percent of the axis."""
    rows, so_far, middle = group.rows, report.parameters.best_direction is not None, group.middle
    lowest = group.greater is False
    lower, upper = float(rows["lower"].iloc[0]), float(rows["upper"].iloc[0])
    if so_far:
        shown = rows.iloc[-_MOST_BARS:]
    else:
        order = ["value", "query"]
        shown = rows.sort_values(order, ascending=[lowest, True], kind="stable").iloc[:_MOST_BARS]
    names = short_names(shown["label"].tolist()) if middle is None else _pairs(shown["label"].tolist(), known)
    ends = [] if middle is None else [middle]
    low, high = min([*shown["low"], *ends]), max([*shown["high"], *ends])
    room = _ROOM * (high - low) or 0.5
    low, high = max(low - room, lower), min(high + room, upper)

    def place(value: float) -> float:
        return round(100 * float(min(max((value - low) / (high - low), 0.0), 1.0)), 2)

    def bar(row: Any, name: str) -> dict[str, Any]:
        apart = low <= row.train <= high and abs(place(row.train) - place(row.value)) >= _APART
        return {
            "name": name,
            "full": f"{row.name}: {row.candidate}" if row.candidate else str(row.name),
            "left": place(row.low),
            "width": round(place(row.high) - place(row.low), 2),
            "dot": place(row.value),
            "train": place(row.train) if apart else None,
            "value": str(number(row, signed=middle == 0.0)),
            "source": row.source,
            "best": middle is None and bool(row.mark) and not rows["mark"].all(),
            "verdict": "" if middle is None else row.mark,
        }

    bars = [bar(row, name) for row, name in zip(shown.itertuples(), names, strict=True)]
    title, note = _title(group, lower, upper, so_far), []
    if so_far:
        note.append("Each row is the best score up to that query.")
    elif middle is not None:
        sides = ("half: neither wins more" if middle else "0: no difference"), words.certified(report)
        note.append(f"The dashed line is {sides[0]}. A verdict is {sides[1]}: its whole interval is on one side.")
    elif len(rows) > 1:
        first = "Lowest" if lowest else "Highest"
        note.append(f"{first} first." if group.greater is None else "Best first.")
        if any(row["best"] for row in bars):
            note.append(f"Bold: may be the best, because no other is {words.certified(report)} to be better.")
        elif rows["mark"].all():
            note.append(f"None is {words.certified(report)} to be worse than another.")
        if group.settled:
            note.append("Comparisons settled more than intervals alone, if equal names are equal models.")
    if middle is None:
        note += _shared_class(shown["candidate"].tolist(), names)
    if len(shown) < len(rows):
        note.append(f"Shown: {len(shown)} of {len(rows):,}.")
    return {
        "title": title,
        "note": note,
        "count": len(rows),
        "ends": (low, high),
        "ticks": [(place(tick), text) for tick, text in _ticks(low, high)],
        "middle": None if middle is None else place(middle),
        "what": "comparison" if middle is not None else "query" if not group.kind else "candidate",
        "measure": "win rate" if middle else "difference" if middle == 0.0 else group.kind or "answer",
        "sources": [source for source in ("train", "holdout") if any(row["source"] == source for row in bars)],
        "beside": any(row["train"] is not None for row in bars),
        "rows": bars,
    }


def _with_class(label: str, short: str) -> str:
    """Return a short name with the class that it leaves out."""
    known, is_call, _ = label.partition("(")
    if not is_call or short.startswith(known):
        return short
    inside, final, rest = short.partition(words.FINAL)
    return f"{known}({inside}){final}{rest}"


def _shared_class(candidates: list[str], names: list[str]) -> list[str]:
    """Return a sentence with the class of all candidates where their short names leave it out."""
    shared = {candidate.partition("(")[0] for candidate in candidates}
    if len(shared) != 1 or not all(candidates) or any(name.startswith(min(shared)) for name in names):
        return []
    return [f"All are {min(shared)}."]


def _title(group: _Group, lower: float, upper: float, so_far: bool) -> str:
    if not group.kind:
        return "Other queries" if (lower, upper) == (0.0, 1.0) else f"Other queries, from {lower:g} to {upper:g}"
    title = f"Scores by {group.kind}"
    if group.middle is not None:
        metric, _, about = group.kind.rpartition(", ")
        title = f"Comparisons by {metric}" + (", win rates" if about == "win rate" else "")
    return f"{title}, best so far" if so_far else title


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers between two ends: at least two, in steps of 1, 2 or 5 times a power of ten."""
    least = (high - low) / _TICKS
    if not least > 0.0 or not math.isfinite(least):
        return []
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0, 20.0) if power * factor >= least)
    first = math.ceil(low / step)
    places = [step * (first + k) for k in range(_TICKS + 1) if step * (first + k) <= high]
    decimals = max(0, -math.floor(math.log10(step)))
    large = max(abs(low), abs(high)) >= MOST_DIGITS
    return [(place, f"{place:.3g}" if large else f"{place + 0.0:.{decimals}f}") for place in places]


def gates(report: GuardReport) -> list[dict[str, Any]]:
    """Return a table for each gate: its threshold in a sentence, and the outcome of each candidate."""
    history = report.history[report.history["source"].isin(get_args(Verdict))]
    found: dict[tuple[str, str, str, str], list[Any]] = {}
    row: Any
    for row in history.itertuples():
        read = _GATE.fullmatch(str(row.name))
        about = ("", str(row.name), "", "") if read is None else (read[1], read[2], read[3] or "", read[4] or "")
        found.setdefault(about, []).append(row)
    return [_gate(report, *about, rows) for about, rows in found.items()]


def _gate(report: GuardReport, kind: str, metric: str, delta: str, tolerance: str, rows: list[Any]) -> dict[str, Any]:
    title = {"gate": "Gate by ", "milestones": "Milestones by "}.get(kind, "") + metric
    kept = [row for row in rows if row.source in PROVED]
    shown = rows[-_MOST_BARS:]
    shown = sorted({row.query: row for row in [*kept[-_MOST_BARS:], *shown]}.values(), key=lambda row: row.query)
    names = short_names([str(row.candidate or row.name) for row in shown])
    note = _shared_class([str(row.candidate) for row in shown], names)
    note += [] if len(shown) == len(rows) else [f"Shown: {len(shown)} of {len(rows):,}."]
    return {
        "title": title,
        "threshold": words.threshold(report, kind, delta, tolerance),
        "note": note,
        "rows": [
            {
                "number": f"{row.query:,}",
                "name": name,
                "full": str(row.candidate or row.name),
                "gain": f"{row.train:+.4f}" if abs(row.train) < MOST_DIGITS else f"{row.train:+.4g}",
                "passed": row.source in PROVED,
                "outcome": words.outcome(
                    row.source,
                    tolerance=bool(tolerance),
                    last=str(row.name).endswith("last evaluation"),
                    certified=words.certified(report),
                ),
            }
            for row, name in zip(shown, names, strict=True)
        ],
    }
