"""Demonstration of a reused holdout, and of a guard, on data that scikit-learn ships.

The guards make claims without noise (``Claims(noise=0)``), so every run has the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.progress_bar import progress_bar
from thresholdout.errors import ThresholdoutError
from thresholdout.guard.guard import Thresholdout
from thresholdout.planning.declaration import Claims
from thresholdout.plotting import BLUE, ORANGE
from thresholdout.simulation.analysts import AggregationAnalyst
from thresholdout.simulation.simulated_session import Answering, NaiveReuse, Part, interview

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Aggregation", "Dependence", "Search", "demonstrate", "dependent_records", "ordinary_search", "reuse"]

# Splits of the data over which ordinary searches are averaged.
_SPLITS = 4


@dataclass(frozen=True)
class Search:
    """An ordinary search: answers, half-widths and accuracies on fresh records.

    Notes
    -----
    The last three fields are accuracies on fresh records: of the candidate chosen by the guard's answers, of the one
    chosen
    by plain holdout scores, and of the best.
    """

    answers: NDArray[np.float64]
    half_widths: NDArray[np.float64]
    fresh: NDArray[np.float64]
    chosen_by_guard: float
    chosen_by_holdout: float
    best: float


@dataclass(frozen=True)
class Aggregation:
    """An analyst who combines rules that scored well: the reported accuracy, its half-width, and the fresh accuracy."""

    reported: float
    half_width: float
    fresh: float


@dataclass(frozen=True)
class Dependence:
    """Answers about a holdout with groups, from a guard with some model: half-width, errors, missed intervals."""

    model: str
    half_width: float
    errors: NDArray[np.float64]
    broken: int


def ordinary_search(seed: int = 1) -> Search:
    """Search 20 support vector machines for handwritten digits through a guard, queried as one list.

    Examples
    --------
    >>> result = ordinary_search()
    >>> bool((abs(result.answers - result.fresh) <= result.half_widths).all())
    True
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import ParameterGrid
    from sklearn.svm import SVC

    X, y = load_digits(return_X_y=True)
    train, holdout, fresh = _parts(len(y), (600, 700), seed)
    X = X / 16
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.001, 0.003, 0.01, 0.03, 0.1]}
    guard = Thresholdout((X[holdout], y[holdout]), train=(X[train], y[train]), mechanism=Claims(noise=0.0))
    models = [SVC(**parameters).fit(X[train], y[train]) for parameters in ParameterGrid(grid)]
    answers = guard.score_all(models, "accuracy")
    on_fresh = np.array([model.score(X[fresh], y[fresh]) for model in models])
    on_holdout = np.array([model.score(X[holdout], y[holdout]) for model in models])
    values = np.array([answer.value for answer in answers])
    return Search(
        answers=values,
        half_widths=np.array([answer.half_width for answer in answers]),
        fresh=on_fresh,
        chosen_by_guard=float(on_fresh[values.argmax()]),
        chosen_by_holdout=float(on_fresh[on_holdout.argmax()]),
        best=float(on_fresh.max()),
    )


def reuse(seed: int = 1, rules: int = 500) -> dict[str, Aggregation]:
    """Let an analyst aggregate weak rules for "is this digit odd?", on a reused holdout and behind a guard.

    Examples
    --------
    >>> result = reuse()
    >>> result["reused holdout"].reported - result["reused holdout"].fresh > 0.08
    True
    >>> guarded = result["behind the guard"]
    >>> abs(guarded.reported - guarded.fresh) <= guarded.half_width
    True
    """
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    train, holdout, fresh = _parts(len(digit), (500, 800), seed)
    odd = digit % 2 == 1
    votes = _weak_rules(X, rules, np.random.default_rng(seed)).T
    parts = [Part(votes[rows], odd[rows]) for rows in (train, holdout, fresh)]
    guard = Thresholdout((X[holdout], odd[holdout]), train=(X[train], odd[train]), mechanism=Claims(noise=0.0))

    results = {}
    answering: dict[str, Answering] = {"reused holdout": NaiveReuse(), "behind the guard": guard}
    for name, mechanism in answering.items():
        session = interview(
            AggregationAnalyst(),
            mechanism,
            parts[0],
            parts[1],
            np.random.default_rng(seed),
            lambda query: float(query(parts[2]).mean()),
        )
        report = session.reported
        assert report is not None  # a guard of claims answers any number of queries
        guarded = mechanism is guard
        width = report.reply.half_width if guarded else 0.0
        results[name] = Aggregation(report.reply.value, width, report.truth)
    return results


def dependent_records(seed: int = 1, patients: int = 120, repeats: int = 100) -> list[Dependence]:
    """Query the accuracy of simple rules on a holdout that repeats each of a few patients many times.

    Breast cancer data; every patient's measurements are repeated with a small error, as in scans of the same tumour.

    Examples
    --------
    >>> as_if_independent, with_groups = dependent_records()
    >>> as_if_independent.broken > 0, with_groups.broken
    (True, 0)
    """
    from sklearn.datasets import load_breast_cancer

    from graphs import DependenceModel, Groups, Independent

    rng = np.random.default_rng(seed)
    X, y = load_breast_cancer(return_X_y=True)
    train, chosen, fresh = _parts(len(y), (200, patients), seed)
    patient = np.repeat(np.arange(patients), repeats)

    def scanned(rows: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[Any]]:
        repeated = np.repeat(rows, repeats)
        return X[repeated] * (1 + 0.01 * rng.normal(size=(repeated.size, X.shape[1]))), y[repeated]

    scans, to_train = scanned(chosen), scanned(train)
    rules = [
        (feature, float(cut))
        for feature in range(X.shape[1])
        for cut in np.quantile(X[train][:, feature], [0.3, 0.45, 0.6, 0.75])
    ]
    models: list[tuple[str, DependenceModel]] = [
        ("as if independent", Independent(patient.size)),
        ("groups = patients", Groups(patient)),
    ]
    results = []
    for name, model in models:
        guard = Thresholdout(scans, train=to_train, dependence=model, mechanism=Claims(noise=0.0))
        answers = guard.ask_all(
            [tuple((X[:, feature] < cut) == (y == 1) for X, y in (to_train, scans)) for feature, cut in rules],
            reserve=0,
        )
        truths = [float(((X[fresh][:, feature] < cut) == (y[fresh] == 1)).mean()) for feature, cut in rules]
        intervals = zip(truths, (answer.interval for answer in answers), strict=True)
        inside = [low <= truth <= high for truth, (low, high) in intervals]
        errors = np.array([abs(answer.value - truth) for answer, truth in zip(answers, truths, strict=True)])
        width = float(np.mean([answer.half_width for answer in answers]))
        results.append(Dependence(name, width, errors, inside.count(False)))
    return results


def demonstrate(seed: int = 1, picture: Path | None = None, echo: Callable[[str], Any] = print) -> dict[str, Any]:
    """Run the three experiments, print a short table of each, and draw a picture of the first two."""
    splits = progress_bar(range(_SPLITS), doing="ordinary searches", unit="splits")
    searches = [ordinary_search(seed + k) for k in splits]
    gaps = [float(np.max(np.abs(search.answers - search.fresh))) for search in searches]
    widths = [float(np.mean(search.half_widths)) for search in searches]

    def mean(name: str) -> str:
        return f"{np.mean([getattr(search, name) for search in searches]):.3f}"

    echo("(a) An ordinary search: 20 support vector machines for handwritten digits, asked as one list,")
    echo(f"    700 holdout records, {_SPLITS} splits of the data")
    echo(f"    largest distance of an answer from fresh accuracy  {max(gaps):.3f}")
    echo(f"    certified half-width, mean                         {np.mean(widths):.3f}")
    echo(f"    fresh accuracy, mean: chosen by the guard          {mean('chosen_by_guard')}")
    echo(f"                          chosen by plain holdout      {mean('chosen_by_holdout')}")
    echo(f"                          best of the 20               {mean('best')}")

    aggregation = reuse(seed)
    echo("")
    echo("(b) An analyst who combines 500 weak rules by their holdout scores: is this digit odd?")
    echo(f"    {'':<18}{'reported accuracy':>20}{'fresh accuracy':>17}")
    for name, result in aggregation.items():
        width = f" ± {result.half_width:.3f}" if result.half_width else ""
        echo(f"    {name:<18}{f'{result.reported:.3f}{width}':>20}{result.fresh:>17.3f}")

    dependence = dependent_records(seed)
    echo("")
    echo("(c) Breast cancer: a holdout of 12,000 scans of only 120 patients, 120 rules in one list")
    echo(f"    {'guard calibrated':<18}{'promised, mean':>16}{'largest error':>16}{'answers':>9}{'promise broken':>16}")
    for row in dependence:
        numbers = f"{row.half_width:>16.3f}{row.errors.max():>16.3f}{row.errors.size:>9}{row.broken:>10} times"
        echo(f"    {row.model:<18}{numbers}")

    found = {
        "searches": {
            "largest_error": max(gaps),
            "half_width": float(np.mean(widths)),
            **{name: float(mean(name)) for name in ("chosen_by_guard", "chosen_by_holdout", "best")},
        },
        "aggregation": {name: asdict(result) for name, result in aggregation.items()},
        "dependence": [
            {
                "model": row.model,
                "half_width": row.half_width,
                "largest_error": float(row.errors.max()),
                "answers": row.errors.size,
                "broken": row.broken,
            }
            for row in dependence
        ],
    }
    if picture is None:
        return found
    try:
        figure = draw(searches[0], aggregation)
    except ThresholdoutError as error:  # no matplotlib: the tables stand without it
        echo(f"\nNo picture: {error}")
        return found
    figure.savefig(picture, dpi=150)
    echo(f"\nThe picture of it is {picture}")
    return found | {"picture": str(picture)}


def draw(search: Search, aggregation: dict[str, Aggregation]) -> Any:
    """Draw reported scores, their intervals and the accuracy on new records on one axis, and return the figure."""
    from thresholdout.plotting import axes

    ax = axes()
    ax.figure.set_size_inches(9.0, 3.3)
    ax.figure.set_facecolor("white")
    reused, guarded = aggregation.values()
    chosen = int(search.answers.argmax())
    searched = Aggregation(*(float(column[chosen]) for column in (search.answers, search.half_widths, search.fresh)))
    rows = (
        ("Overfitting analyst,\nholdout reused", ORANGE, reused),
        ("Overfitting analyst,\nbehind a guard", BLUE, guarded),
        ("Search over 20 models,\nbehind a guard", BLUE, searched),
    )
    for place, (_, colour, row) in enumerate(rows):
        if row.half_width:
            ends = max(0.0, row.reported - row.half_width), min(1.0, row.reported + row.half_width)
            ax.hlines(place, *ends, color=colour, linewidth=9, alpha=0.3)
        else:
            ax.annotate("", (row.reported, place), (row.fresh, place), arrowprops={"arrowstyle": "->", "color": colour})
        ax.plot(row.reported, place, "o", color=colour, markersize=9)
        ax.plot(row.fresh, place, "D", color="black", markersize=7)
        width = f" ± {row.half_width:.2f}" if row.half_width else ""
        beside = {"textcoords": "offset points", "ha": "center"}
        ax.annotate(f"reported {row.reported:.2f}{width}", (row.reported, place), (0, 11), color=colour, **beside)
        ax.annotate(f"new data {row.fresh:.2f}", (row.fresh, place), (0, -20), color="black", **beside)
    ax.set(yticks=range(len(rows)), yticklabels=[name for name, *_ in rows], xlim=(0.5, 1.06), ylim=(2.6, -0.6))
    ax.set(xlabel="accuracy", title="A reused holdout reports too much; a guard's interval contains the truth")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax.figure


def _parts(n: int, sizes: tuple[int, int], seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Cut a random order of n records into a training part, a holdout and the fresh rest."""
    order = np.random.default_rng(seed).permutation(n)
    train, holdout = sizes
    return order[:train], order[train : train + holdout], order[train + holdout :]


def _weak_rules(X: NDArray[np.float64], rules: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return rules of a few random pixels each, which alternate along their projection."""
    scaled = (X - X.mean(axis=0)) / (X.std(axis=0) + 1)
    weights = rng.normal(size=(X.shape[1], rules)) * (rng.random((X.shape[1], rules)) < 0.1)
    votes: NDArray[np.bool_] = np.sin(3 * (scaled @ weights) + rng.uniform(0, 2 * np.pi, size=rules)) > 0
    return np.ascontiguousarray(votes.T)
