"""Plots. Every function takes ``ax=None`` and returns the axes that it drew on; matplotlib is the ``plot`` extra."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from thresholdout.errors import ThresholdoutError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["axes", "drawable", "finish", "kinds", "main_range", "plot_history", "row_names", "short_names"]

_FINAL = ", final check"  # behind the metric of a final check
_LARGEST = 1e100  # an imported history may have larger numbers, which fit on no axis
_MOST_NAMES, _LONGEST, _SHARED, _ROW = 60, 44, 8, 0.22
BLUE, ORANGE, GREY = "#0b6fa4", "#d95f02", "#8a8a8a"
_SOURCES = (("train", BLUE, "o"), ("holdout", ORANGE, "D"))


def axes(ax: Any = None) -> Any:
    """Return ``ax``, or the axes of a new figure that needs no screen."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ThresholdoutError("pictures need matplotlib: pip install 'thresholdout[plot]'") from None
    return Figure(figsize=(8.0, 4.5), layout="constrained").add_subplot()


def finish(ax: Any, x: str, y: str) -> Any:
    """Label the axes, with a legend and without a frame, and return them."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small")
    return ax


def drawable(history: pd.DataFrame) -> pd.DataFrame:
    """Return the answers whose numbers fit into a picture; imported ones may be of any size."""
    columns = ["train", "value", "low", "high", "lower", "upper"]
    return history[history["source"].isin(["train", "holdout"]) & (history[columns].abs() <= _LARGEST).all(axis=1)]


def kinds(answers: pd.DataFrame) -> list[str]:
    """Return the kind of each answer: the metric of a candidate's score, and "" for other queries.

    Examples
    --------
    >>> import pandas as pd
    >>> kinds(pd.DataFrame({"name": ["accuracy", "rows"], "candidate": ["tree", ""]}))
    ['accuracy', '']
    """
    pairs = zip(answers["name"], answers["candidate"], strict=True)
    return [str(name).removesuffix(_FINAL) if candidate else "" for name, candidate in pairs]


def main_range(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the answers of the kind and range that most of them have, the last one of those that equally many have.

    Examples
    --------
    >>> import pandas as pd
    >>> asked = pd.DataFrame({"lower": [0, 0, -1], "upper": [1, 1, 1], "value": [0.3, 0.4, 0.0]})
    >>> main_range(asked.assign(name="accuracy", candidate="tree"))["value"].tolist()
    [0.3, 0.4]
    """
    if not len(answers):
        return answers
    ranges = list(zip(answers["lower"], answers["upper"], kinds(answers), strict=True))
    times = Counter(ranges)
    last = max(reversed(ranges), key=times.__getitem__)
    return answers[[one == last for one in ranges]]


def row_names(history: pd.DataFrame) -> list[str]:
    """Return the names of a history's rows: of candidates, or else of queries.

    Examples
    --------
    >>> import pandas as pd
    >>> asked = pd.DataFrame({"query": [1, 2, 3], "name": ["accuracy"] * 3, "candidate": ["tree", "forest", ""]})
    >>> row_names(asked), row_names(asked[2:])
    (['tree', 'forest', 'accuracy'], ['accuracy'])
    """
    alike = history["name"].str.removesuffix(_FINAL).nunique() <= 1
    named = [
        f"{candidate}{_FINAL if name.endswith(_FINAL) else ''}" if candidate and alike
        else f"{name}: {candidate}" if candidate else str(name)
        for name, candidate in zip(history["name"], history["candidate"], strict=True)
    ]  # fmt: skip
    times = Counter(named)
    numbers = history["query"].tolist()
    return [
        f"{name or 'query'} #{number}" if times[name] > 1 or not name else name
        for name, number in zip(named, numbers, strict=True)
    ]


def plot_history(
    history: pd.DataFrame,
    ax: Any = None,
    *,
    names: bool | None = None,
    lowest_is_best: bool = False,
    beside: str = "training value",
) -> Any:
    """Draw a guard's history: training values, answers with their intervals, and where the holdout was used.

    Parameters
    ----------
    history : DataFrame
        `Thresholdout.history`.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    names : bool, optional
        Whether each answer has a line of its own with its name, the best one first, and those that its interval does
        not tell apart from it are marked; those of another metric or range than most are left out. By default where
        there are at most 60 answers, most of which have names of their own; otherwise answers are drawn over the number
        of their query.
    lowest_is_best : bool, default False
        Of named answers: whether they are losses.
    beside : str, default "training value"
        Label of the training values. In a leaderboard they are the expected values.

    Returns
    -------
    matplotlib axes
        Its figure is ``ax.figure``; save it with ``ax.figure.savefig("history.png")``.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Claims, Thresholdout
    >>> guard = Thresholdout(np.arange(1000.0), queries=10, mechanism=Claims(holdout_answers=2))
    >>> answer = guard.ask(0.25, np.arange(1000) < 250)
    >>> plot_history(guard.history).get_xlabel()
    'query'
    >>> plot_history(guard.history, names=True).get_xlabel()
    'answer'
    """
    approximate = bool(history.attrs.get("approximation"))
    history = drawable(history)
    alike = main_range(history)
    if names is None:
        own = (alike["candidate"] + alike["name"]).nunique()
        names = 2 <= len(alike) <= _MOST_NAMES and 2 * own > len(alike)
    if names and len(alike):
        return _by_name(alike, ax, lowest_is_best, len(history) - len(alike), beside, approximate)
    ax = axes(ax)
    left_out, history = len(history) - len(alike), alike
    query = history["query"].astype(float)
    ax.vlines(
        query,
        history["low"],
        history["high"],
        color=BLUE,
        alpha=0.25,
        linewidth=1.5,
        label="approximate interval" if approximate else "interval",
    )
    ax.plot(query, history["train"], ".", color=GREY, markersize=4, label=beside)
    for source, colour, marker in _SOURCES:
        rows = history["source"] == source
        if rows.any():
            ax.plot(
                query[rows], history["value"][rows], marker, color=colour, markersize=4, label=f"answer, from {source}"
            )
    return finish(ax, "query", f"answer ({left_out} of another kind left out)" if left_out else "answer")


def _by_name(
    history: pd.DataFrame, ax: Any, lowest_is_best: bool, left_out: int, beside: str, approximate: bool
) -> Any:
    """Draw one line for each answer, the best one at the top, with its interval as a band through all."""
    rows = history.assign(label=row_names(history))
    rows = rows.sort_values(["value", "query"], ascending=[lowest_is_best, True], kind="stable").reset_index(drop=True)
    if ax is None:
        ax = axes()
        ax.figure.set_size_inches(8.0, 1.5 + _ROW * len(rows))
    best = rows.iloc[0]
    tied = (rows["low"] <= best["high"]) & (rows["high"] >= best["low"])
    ax.axvspan(best["low"], best["high"], color=BLUE, alpha=0.08, linewidth=0)
    apart = "apart from it, approximately" if approximate else "certified apart from it"
    for some, colour, label in ((tied, BLUE, "tied with the best"), (~tied, GREY, apart)):
        if some.any():
            ends = rows["low"][some], rows["high"][some]
            ax.hlines(rows.index[some], *ends, color=colour, alpha=0.5, linewidth=3, label=label)
    ax.plot(rows["train"], rows.index, "|", color=GREY, markersize=8, label=beside)
    for source, colour, marker in _SOURCES:
        some = rows["source"] == source
        if some.any():
            ax.plot(
                rows["value"][some],
                rows.index[some],
                marker,
                color=colour,
                markersize=4,
                label=f"answer, from {source}",
            )
    ax.set_yticks(rows.index, _shortened(short_names(rows["label"].tolist())), fontsize="small")
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    finish(ax, f"answer ({left_out} of another kind left out)" if left_out else "answer", "")
    ax.spines["left"].set_visible(False)
    ax.legend(frameon=False, fontsize="small", ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return ax


def short_names(names: Sequence[str]) -> list[str]:
    """Return names by their differences: candidates of one class by the arguments that not all of them share.

    Examples
    --------
    >>> short_names(["Tree(max_depth=2, random_state=0)", "Tree(max_depth=4, random_state=0)"])
    ['max_depth=2', 'max_depth=4']
    >>> short_names(["Tree(max_depth=2)", "Tree(max_depth=4), final check"])
    ['max_depth=2', 'max_depth=4, final check']
    >>> short_names(["Tree(max_depth=2)", "Forest()"])
    ['Tree(max_depth=2)', 'Forest()']
    """
    pairs = [name.split(" against ") for name in names]
    if all(len(pair) == 2 for pair in pairs):
        both = iter(short_names([name for pair in pairs for name in pair]))
        return [f"{one} against {other}" for one, other in zip(both, both, strict=True)]
    parts = [re.fullmatch(rf"(\w+)\((.*)\)((?:{_FINAL})?(?: #\d+)?)", name, re.DOTALL) for name in names]
    kinds = {part[1] for part in parts if part}
    if len(names) < 2 or None in parts or len(kinds) != 1:
        return list(names)
    arguments = [_arguments(part[2]) for part in parts if part]
    shared = set(arguments[0]).intersection(*arguments)
    own = [", ".join(one for one in some if one not in shared) or f"{min(kinds)}()" for some in arguments]
    return [f"{name}{part[3]}" for name, part in zip(own, filter(None, parts), strict=True)]


def _arguments(text: str) -> list[str]:
    """Return the arguments of a printed call; commas inside brackets do not separate them."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [" ".join(one.split()) for one in found if one.strip()]


def _shared(names: list[str]) -> int:
    """Return the number of characters that all names begin with."""
    length = 0
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        length += 1
    return length


def _shortened(names: list[str]) -> list[str]:
    """Return names as labels of one line, which are no formulas; a common beginning of long ones is omitted."""
    plain = ["".join(letter if letter.isprintable() else " " for letter in name) for name in names]
    long = [name for name in plain if len(name) > _LONGEST]
    if len(long) > 1:
        cut = tuple(max(0, _shared(some) - _SHARED) for some in (long, [name[::-1] for name in long]))
        plain = [
            f"{'…' if cut[0] else ''}{name[cut[0] : len(name) - cut[1]]}{'…' if cut[1] else ''}"
            if len(name) > _LONGEST and sum(cut) < len(name)
            else name
            for name in plain
        ]
    half = _LONGEST // 2
    cut_off = (name if len(name) <= _LONGEST else f"{name[: half - 1]}…{name[-half:]}" for name in plain)
    return [name.replace("$", r"\$") for name in cut_off]
