"""What an experiment leaves behind: tables, a picture, and numbers with their standard errors."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

__all__ = ["RESULTS", "Number", "Outcome", "Size", "mean_number", "share_limits", "share_number", "summary"]

RESULTS = Path(__file__).parent / "results"
Size: TypeAlias = Literal["tiny", "quick", "full"]
"""Tiny ones are for tests."""


class Number(NamedTuple):
    """A result and its standard error; 0 for what is computed and not drawn."""

    value: float
    se: float = 0.0


def mean_number(values: ArrayLike) -> Number:
    """Return a mean with its standard error, which a single value does not have."""
    array = np.asarray(values, dtype=np.float64)
    error = float(array.std(ddof=1) / math.sqrt(array.size)) if array.size > 1 else math.inf
    return Number(float(array.mean()), error)


def share_number(events: ArrayLike) -> Number:
    """Return how often something happened; the standard error counts one half more of either kind [Wilson]."""
    array = np.asarray(events, dtype=np.bool_)
    shrunk = (array.sum() + 0.5) / (array.size + 1.0)
    return Number(float(array.mean()), math.sqrt(shrunk * (1.0 - shrunk) / array.size))


def share_limits(events: int, trials: int, confidence: float = 0.99) -> tuple[float, float]:
    """Return exact binomial limits of a share (Clopper and Pearson), each right with the confidence given."""
    from scipy.special import betaincinv

    low = 0.0 if events == 0 else float(betaincinv(events, trials - events + 1, 1.0 - confidence))
    high = 1.0 if events == trials else float(betaincinv(events + 1, trials - events, confidence))
    return low, high


@dataclass(frozen=True)
class Outcome:
    """All that a run of an experiment shows.

    Attributes
    ----------
    name : str
        Of the experiment.
    size : {"tiny", "quick", "full"}
    tables : mapping of str to DataFrame
        Summaries by title; each becomes a Markdown table and a CSV file.
    numbers : mapping of str to Number
        Results that are cited elsewhere.
    figure : matplotlib Figure
    notes : list of str
        What has to be said beside the tables.
    """

    name: str
    size: Size
    tables: Mapping[str, pd.DataFrame]
    numbers: Mapping[str, Number]
    figure: Figure
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return tables and notes as Markdown."""
        parts = [f"### {title}\n\n{markdown(table)}" for title, table in self.tables.items()]
        return "\n\n".join([*parts, *self.notes])

    def write(self, folder: Path = RESULTS) -> None:
        """Write picture, tables and text, and put the numbers into ``summary.json``."""
        folder.mkdir(parents=True, exist_ok=True)
        self.figure.savefig(folder / f"{self.name}.png", dpi=120)
        for place, table in enumerate(self.tables.values()):
            suffix = f"_{place + 1}" if place else ""
            table.to_csv(folder / f"{self.name}{suffix}.csv", index=False, float_format="%.6g")
        (folder / f"{self.name}.md").write_text(f"{self.text()}\n")
        known = summary(folder)
        mine = {f"{self.name}.{key}": self._entry(number) for key, number in self.numbers.items()}
        others = {key: entry for key, entry in known.items() if not key.startswith(f"{self.name}.")}
        unfinished = folder / "summary.json.unfinished"
        unfinished.write_text(json.dumps(others | mine, indent=1, sort_keys=True) + "\n")
        os.replace(unfinished, folder / "summary.json")

    def _entry(self, number: Number) -> dict[str, Any]:
        return {"value": float(f"{number.value:.6g}"), "se": float(f"{number.se:.3g}"), "size": self.size}


def summary(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Return all numbers of a folder of results, by "experiment.quantity"."""
    path = folder / "summary.json"
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def markdown(table: pd.DataFrame) -> str:
    """Return a table as Markdown, numbers with three digits or so.

    Examples
    --------
    >>> print(markdown(pd.DataFrame({"n": [10], "error": [0.12345]})))
    | n | error |
    |---:|---:|
    | 10 | 0.123 |
    """
    numeric = [pd.api.types.is_numeric_dtype(table[name]) for name in table]
    rows = [list(map(str, table)), ["---:" if right else "---" for right in numeric]]
    rows += [[_shown(value) for value in row] for row in table.itertuples(index=False)]
    heads = "| " + " | ".join(rows[0]) + " |"
    return "\n".join([heads, "|" + "|".join(rows[1]) + "|", *("| " + " | ".join(row) + " |" for row in rows[2:])])


def _shown(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        if value == round(value) and abs(value) >= 1.0:
            return f"{value:,.0f}"
        if abs(value) >= 1000.0:
            return f"{value:,.0f}"
        return f"{value:.3f}" if abs(value) >= 0.001 or value == 0 else f"{value:.2g}"
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)
