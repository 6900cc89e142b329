"""Plots. Every function takes ``ax=None`` and returns the axes that it drew on; matplotlib is the ``plot`` extra."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from thresholdout.errors import ThresholdoutError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "COMPARED",
    "axes",
    "drawable",
    "finish",
    "greater_is_better",
    "kinds",
    "main_range",
    "may_be_best",
    "orders",
    "plot_history",
    "row_names",
    "short_names",
    "verdict",
]

_FINAL = ", final check"  # behind the metric of a final check
COMPARED: Final = {", difference": 0.0, ", win rate": 0.5}
"""Ends of the names of comparisons, with the value at which neither model is better."""

_ABOUT: Final = re.compile(r"(.*) \(((?:[^()]|\([^()]*\))+?)(, difference|, win rate|, proposal|)\)", re.DOTALL)
"""A name that a client gave, and the metric, as `PredictionGuard` writes them."""

# Pictures stand below scores and see only their names; a test compares these with the directions of all scores.
_LOSSES: Final = re.compile(
    r"zero_one_loss|brier_score|log_loss|squared_error|absolute_error|root_mean_squared_error|median_absolute_error"
)
_GAINS: Final = re.compile(
    r"accuracy|top_\d+_accuracy|balanced_accuracy|cohen_kappa|matthews_corrcoef|fbeta|r2|"
    r"(?:f1|jaccard|precision|recall)(?:_macro)?|roc_auc(?:_ov[or])?"
)
_LARGEST = 1e100  # an imported history may have larger numbers, which fit on no axis
_MOST_NAMES, _LONGEST, _SHARED, _ROW = 60, 56, 8, 0.22
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
    return [_kind_and_label(*pair)[0] for pair in zip(answers["name"], answers["candidate"], strict=True)]


def _kind_and_label(name: str, candidate: str) -> tuple[str, str]:
    """Return the kind of an answer, and its label beside others of its kind."""
    if candidate:
        final = _FINAL if name.endswith(_FINAL) else ""
        return name.removesuffix(_FINAL), f"{candidate}{final}"
    about = _ABOUT.fullmatch(name)
    if about is None or greater_is_better(about[2]) is None:
        return "", name
    return f"{about[2]}{about[3]}", about[1]


def greater_is_better(metric: str) -> bool | None:
    """Return whether the greatest value of a metric is the best, or None for a metric of the user.

    Examples
    --------
    >>> greater_is_better("accuracy"), greater_is_better("squared_error(clip=4.0)"), greater_is_better("profit")
    (True, False, None)
    """
    plain = metric.partition("(")[0].partition(" where ")[0]
    return False if _LOSSES.fullmatch(plain) else True if _GAINS.fullmatch(plain) else None


def _compared(kind: str) -> tuple[str, str]:
    """Return the metric of a comparison and the ending of its name, which is empty for other answers."""
    ending = next((some for some in COMPARED if kind.endswith(some)), "")
    return kind.removesuffix(ending), ending


def verdict(kind: str, low: float, high: float) -> str:
    """Return the verdict of a comparison by its interval: "higher" or "lower" by a metric of the user.

    Examples
    --------
    >>> verdict("accuracy, difference", 0.01, 0.03), verdict("log_loss(clip=5.0), difference", 0.01, 0.03)
    ('better', 'worse')
    >>> verdict("accuracy, win rate", 0.4, 0.7), verdict("profit, difference", 0.01, 0.03)
    ('not settled', 'higher')
    """
    metric, ending = _compared(kind)
    middle = COMPARED[ending]
    if not (low > middle or high < middle):
        return "not settled"
    greater = True if ending == ", win rate" else greater_is_better(metric)
    if greater is None:
        return "higher" if low > middle else "lower"
    return "better" if (low > middle) == greater else "worse"


class Order(NamedTuple):
    """A certified comparison: by this metric, over a range so wide, one candidate is better than the other."""

    metric: str
    width: float
    better: str
    worse: str


def orders(history: pd.DataFrame) -> list[Order] | None:
    """Return the comparisons that a history has settled, between candidates by their names.

    None stands for a history with corrected labels: its answers are about different labels, so that neither intervals
    nor comparisons order them.
    """
    if (history["source"] == "note").any():
        return None
    found: list[Order] = []
    row: Any
    for row in history[history["candidate"].str.contains(" against ", regex=False)].itertuples():
        metric, ending = _compared(str(row.name))
        if not ending:  # a score or a proposal of a candidate with such a name
            continue
        said, pair = verdict(str(row.name), row.low, row.high), str(row.candidate).split(" against ")
        if said in ("better", "worse") and len(pair) == 2:
            width = float(row.upper - row.lower) / (2.0 if ending == ", difference" else 1.0)
            found.append(Order(metric, width, *(pair if said == "better" else pair[::-1])))
    return found


def may_be_best(
    rows: pd.DataFrame, settled: Sequence[Order] | None = (), *, lowest_is_best: bool = False
) -> list[bool]:
    """Return, for answers of one kind, which ones no other is certified to be better than.

    The intervals of two answers certify an order if they are disjoint. A comparison certifies it for the two
    candidates of its names, each of which stands for one answer, if equal names are equal models; weighted scores have
    another range than comparisons. Without orders (None) nothing is certified.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"low": [0.7, 0.6, 0.4], "high": [0.9, 0.8, 0.5], "candidate": ["a", "b", "c"]})
    >>> rows = rows.assign(name="accuracy", lower=0.0, upper=1.0)
    >>> may_be_best(rows), may_be_best(rows, [Order("accuracy", 1.0, "a", "b")])
    ([True, True, False], [True, False, False])
    """
    if settled is None:
        return [True] * len(rows)
    best = (rows["low"] <= rows["high"].min()) if lowest_is_best else (rows["high"] >= rows["low"].max())
    times = Counter(rows["candidate"])
    width, kind = float(rows["upper"].iloc[0]) - float(rows["lower"].iloc[0]), kinds(rows.iloc[:1])[0]
    worse = {
        one.worse
        for one in settled
        if one.metric == kind and one.width == width and times[one.better] == times[one.worse] == 1
    }
    return [bool(known) and name not in worse for known, name in zip(best, rows["candidate"], strict=True)]


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
    pairs = list(zip(history["name"], history["candidate"], strict=True))
    labelled = [_kind_and_label(*pair) for pair in pairs]
    alike = len({kind or name for (kind, _), (name, _) in zip(labelled, pairs, strict=True)}) <= 1
    named = [
        label if alike else f"{name}: {candidate}" if candidate else str(name)
        for (_, label), (name, candidate) in zip(labelled, pairs, strict=True)
    ]
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
        Whether each answer has a line of its own with its name, the best one first. Answers that may be the best are
        marked: no interval and no comparison certifies another one to be better. Those of another metric or range than
        most are left out. By default where there are at most 60 answers, most of which have names of their own;
        otherwise answers are drawn over the number of their query.
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
    approximate, settled = bool(history.attrs.get("approximation")), orders(history)
    history = drawable(history)
    alike = main_range(history)
    if names is None:
        own = (alike["candidate"] + alike["name"]).nunique()
        names = 2 <= len(alike) <= _MOST_NAMES and 2 * own > len(alike)
    if names and len(alike):
        return _by_name(alike, settled, ax, lowest_is_best, len(history) - len(alike), beside, approximate)
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
    history: pd.DataFrame,
    settled: Sequence[Order] | None,
    ax: Any,
    lowest_is_best: bool,
    left_out: int,
    beside: str,
    approximate: bool,
) -> Any:
    """Draw one line for each answer, the best one at the top, with its interval as a band through all."""
    kind = kinds(history)[0]
    middle = COMPARED.get(_compared(kind)[1])
    if middle is None:
        worse = "worse than another, approximately" if approximate else "certified worse than another"
        best = may_be_best(history, settled, lowest_is_best=lowest_is_best)
        if settled and best != may_be_best(history, lowest_is_best=lowest_is_best):
            worse += ", if equal names are equal models"
        marks = ["may be the best" if one else worse for one in best]
    else:
        marks = [verdict(kind, low, high) for low, high in zip(history["low"], history["high"], strict=True)]
    rows = history.assign(label=row_names(history), mark=marks)
    rows = rows.sort_values(["value", "query"], ascending=[lowest_is_best, True], kind="stable").reset_index(drop=True)
    if ax is None:
        ax = axes()
        ax.figure.set_size_inches(8.0, 1.5 + _ROW * len(rows))
    if middle is None:
        ax.axvspan(rows["low"][0], rows["high"][0], color=BLUE, alpha=0.08, linewidth=0)
    else:
        ax.axvline(middle, color=GREY, linestyle="--", linewidth=1)
    for label in dict.fromkeys(rows["mark"]):
        some, strong = rows["mark"] == label, label in ("may be the best", "better", "higher")
        colour = BLUE if strong else ORANGE if label in ("worse", "lower") else GREY
        ax.hlines(
            rows.index[some], rows["low"][some], rows["high"][some], color=colour, alpha=0.5, linewidth=3, label=label
        )
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
    measure = kind or "answer"
    finish(ax, f"{measure} ({left_out} of another kind left out)" if left_out else measure, "")
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
    >>> short_names(["Tree(max_depth=2, seed=0)", "Tree(max_depth=4, seed=0)", "Forest(seed=0)"])
    ['Tree(max_depth=2)', 'Tree(max_depth=4)', 'Forest(seed=0)']
    >>> short_names(["Pipeline(Scaler, Ridge(alpha=1, tol=0.1))", "Pipeline(Scaler, Ridge(alpha=2, tol=0.1))"])
    ['Ridge(alpha=1)', 'Ridge(alpha=2)']
    """
    pairs = [name.split(" against ") for name in names]
    if all(len(pair) == 2 for pair in pairs):
        both = iter(short_names([name for pair in pairs for name in pair]))
        return [f"{one} against {other}" for one, other in zip(both, both, strict=True)]
    parts = [re.fullmatch(rf"(\w+)\((.*)\)((?:{_FINAL})?(?: #\d+)?)", name, re.DOTALL) for name in names]
    kinds = {part[1] if part else "" for part in parts}
    shown = list(names)
    for kind in kinds - {""}:
        alike = {place: part for place, part in enumerate(parts) if part and part[1] == kind}
        own = _differences([_arguments(part[2]) for part in alike.values()])
        if len(alike) < 2 or (len(kinds) > 1 and not any(own)):
            continue
        for (place, part), some in zip(alike.items(), own, strict=True):
            inside = ", ".join(some)
            shown[place] = f"{inside if inside and len(kinds) == 1 else f'{kind}({inside})'}{part[3]}"
    return shown


def _differences(calls: list[list[str]], levels: int = 8) -> list[list[str]]:
    """Return the arguments that not all calls share; calls of one class among them are shortened, too.

    Pipelines are nested some levels deep, and names that clients give may be a thousand.
    """
    if len({len(call) for call in calls}) == 1:
        columns = [list(column) for column in zip(*calls, strict=True)]
        for column in columns:
            inner = [re.fullmatch(r"((?:\w+=)?\w+)\((.*)\)", one, re.DOTALL) for one in column]
            if levels and len(set(column)) > 1 and len({part[1] if part else "" for part in inner}) == 1 and inner[0]:
                own = _differences([_arguments(part[2]) for part in inner if part], levels - 1)
                column[:] = [f"{inner[0][1]}({', '.join(some)})" for some in own]
        calls = [list(call) for call in zip(*columns, strict=True)] or calls
    shared = set(calls[0]).intersection(*calls)
    return [[one for one in call if one not in shared] for call in calls]


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
