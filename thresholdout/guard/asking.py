"""Queries about models: looked up by key, built and evaluated, one at a time or in lists."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from graphs.numerics.arguments import as_real
from graphs.progress_bar import progress_bar
from thresholdout.data.arguments import check_word
from thresholdout.data.values import check_bounds
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.answer import Answer
from thresholdout.guard.declared_parts import in_lazy_frames
from thresholdout.guard.development import warn_of_overfit
from thresholdout.guard.likely_mistakes import warn_of_gap
from thresholdout.guard.query import Query
from thresholdout.guard.query_engine import key_of_list
from thresholdout.guard.training_values import checked_cv
from thresholdout.ledger.entry import ContentKey, check_short_texts
from thresholdout.mechanisms.claims.lists import PRECISE

if TYPE_CHECKING:
    from thresholdout.guard.comparison import About, Comparison
    from thresholdout.guard.guard import Thresholdout
    from thresholdout.scoring.metrics import Metric
    from thresholdout.scoring.statistics import Statistic

__all__ = [
    "ask_all",
    "checked_reserve",
    "class_and_parameters",
    "compare",
    "compare_all",
    "first_places",
    "listed",
    "repeats",
    "score",
    "score_all",
    "way",
]

_MOST_KEPT = 0.99  # a list needs some error budget of its own


def score(
    guard: Thresholdout,
    kind: Literal["score", "final check"],
    estimator: Any,
    metric: str | Metric | Statistic,
    cv: object | None,
    train_values: object | None,
    sample_weight: tuple[object, object] | None,
    key: str | None,
    name: str,
    precise: bool = False,
) -> Answer:
    """Ask for a score; see `Thresholdout.score` and `Thresholdout.final_check`."""
    from thresholdout.scoring.statistics import get_score

    chosen, cv = get_score(metric), checked_cv(cv)
    check_short_texts(name=name)
    weights, final = ((sample_weight,), False) if kind == "score" else ((), True)
    key = guard._score_key(key, kind, [estimator], chosen, cv, train_values, *weights, *way(precise))
    known = guard._recalled(key, chosen)
    if known is not None:
        return known
    query, read = guard._queries.score(estimator, metric, cv, sample_weight, key, train_values)
    if final:
        query.known = replace(query.known, chosen=guard._records.development is not None)
        query.name += ", final check"  # an earlier query's key must not answer it
    named = query.about(name or class_and_parameters(estimator))
    if precise:
        answer = _stated(guard, "estimator", named, read, _reserve(guard))
    else:
        answer = guard._engine.evaluate("estimator", named, read, final=final)
    return _beside(guard, answer, query, cv, chosen.greater_is_better)


def compare(
    guard: Thresholdout,
    b: Any,
    a: Any,
    metric: str | Metric,
    about: About,
    cv: object | None,
    train_values: tuple[object, object] | None,
    key: str | None,
    name: str,
    precise: bool,
) -> Comparison:
    """Compare two models; see `Thresholdout.compare`."""
    from thresholdout.guard.comparison import Comparison

    chosen, cv = guard._queries.compared(metric, about), checked_cv(cv)
    check_short_texts(name=name)
    key = guard._score_key(key, "compare", [b, a], chosen, about, cv, train_values, *way(precise))
    answer, direct = guard._recalled(key, chosen), None
    if answer is None:
        query, read = guard._queries.contest(b, a, chosen, about, cv, train_values, key)
        named = query.about(name or f"{class_and_parameters(b)} against {class_and_parameters(a)}")
        reserve = _reserve(guard) if precise else _few_left(guard, query)
        if reserve is not None:
            answer = _stated(guard, "b", named, read, reserve)
        else:
            answer = guard._engine.evaluate("b", named, read)
            direct = _direct(guard, query, answer)
        _beside(guard, answer, query, cv, about == "win_rate" or chosen.greater_is_better)
    found = Comparison.of(answer, guard.n, greater_is_better=chosen.greater_is_better, about=about)
    return replace(found, direct=direct) if found.verdict == "not settled" else found


def way(precise: bool) -> tuple[str, ...]:
    """Return the further part of a precise query's key, so that an earlier answer is not returned for it."""
    return ("precise",) if precise else ()


def _reserve(guard: Thresholdout) -> float:
    """Return the share that a precise answer reserves for later ones: none if it is the last declared query."""
    mechanism = guard._mechanism.shares_error_budget("a precise answer")
    last = mechanism.refusal(guard._engine.state(), 2) is not None and mechanism.refusal(guard._engine.state()) is None
    return 0.0 if last and not getattr(guard.parameters, "final_check", False) else PRECISE


def _few_left(guard: Thresholdout, query: Query) -> float | None:
    """Return the share to reserve if few declared queries are left and a direct interval is narrower."""
    if not guard.parameters.takes_lists:
        return None
    mechanism, state = guard._mechanism.shares_error_budget("a precise answer"), guard._engine.state()
    return None if mechanism.refusal(state) else mechanism.few_left(state, query.train, query.known)


def _stated(guard: Thresholdout, argument: str, query: Query, read: Callable[[], Any], reserve: float) -> Answer:
    """State an interval directly, as a list of one, with its cost."""
    (answer,) = guard._engine.evaluate_all(argument, [(query, read)], reserve)
    return answer if answer.repeated else replace(answer, cost=guard._engine.cost(answer))


def _direct(guard: Thresholdout, query: Query, answer: Answer) -> tuple[float, float] | None:
    """Return the expected half-width and cost of a precise answer if it is narrower than this one."""
    if not guard.parameters.takes_lists:
        return None
    mechanism, state = guard._mechanism.shares_error_budget("a precise answer"), guard._engine.state()
    if mechanism.refusal(state):
        return None
    half, nats = mechanism.direct(state, query.train, query.known)
    half *= query.limits[1] - query.limits[0]
    return (half, nats) if half < 0.5 * (answer.interval[1] - answer.interval[0]) else None


def _beside(guard: Thresholdout, answer: Answer, query: Query, cv: object, greater_is_better: bool) -> Answer:
    """Return an answer, after a warning if it is far from its cross-validated training value."""
    if guard._records.development is not None:
        warn_of_overfit(answer, query.shown, greater_is_better=greater_is_better)
    elif cv != "training" and answer.about == "query":
        size = None if in_lazy_frames(guard._records) else guard._records.train_size
        warn_of_gap(answer, query.shown, size, greater_is_better=greater_is_better)
    return answer


def ask_all(
    guard: Thresholdout,
    queries: Sequence[tuple[object, object]],
    bounds: tuple[float, float],
    names: Sequence[str] | None,
    keys: Sequence[str] | None,
    binary: bool | None,
    reserve: float,
) -> list[Answer]:
    """Ask pairs of values; see `Thresholdout.ask_all`."""
    limits = check_bounds(bounds)
    _check_lists(queries, names=names, keys=keys)
    if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in queries):
        raise InputTypeError("queries", "a list of other items", "a list of pairs (train_values, holdout_values)")
    with guard._queries.together_asked(queries, limits):
        asked = [
            guard._queries.pair(*pair, limits, names[k] if names else "", keys[k] if keys else None, binary)
            for k, pair in enumerate(queries)
        ]
    first = first_places([query.key for query, _ in asked])
    places = sorted(set(first))
    answers = guard._engine.evaluate_all("holdout_values", [asked[place] for place in places], checked_reserve(reserve))
    found = dict(zip(places, answers, strict=True))
    return [
        found[at] if at == place else replace(found[at], repeated=True, name=asked[place][0].name)
        for place, at in enumerate(first)
    ]


def score_all(
    guard: Thresholdout,
    models: Sequence[Any] | Mapping[str, Any],
    metric: str | Metric | Statistic,
    cv: object | None,
    train_values: Sequence[object] | None,
    keys: Sequence[str] | None,
    reserve: float,
    report: Literal["all", "best"],
) -> list[Answer]:
    """Score models; see `Thresholdout.score_all`."""
    from thresholdout.scoring.statistics import get_score

    candidates = listed(models, keys)
    given = _checked_values(train_values, len(candidates))
    check_word("report", report, ("all", "best"))
    share, score, cv = checked_reserve(reserve), get_score(metric), checked_cv(cv)
    known = [
        guard._score_key(one.key, "score", [one.model], score, cv, values, None)
        for one, values in zip(candidates, given, strict=True)
    ]
    first, names = first_places(known), _names(candidates, unique=report == "best")
    told = _recalled(guard, report, known, first, names, score)
    how = guard._queries.fixed(cv)
    asked = {}
    places = [place for place in sorted(set(first)) if place not in told]
    with guard._queries.together([candidates[place].model for place in places if given[place] is None], score):
        for place in progress_bar(places, doing="scores of training", unit="models"):
            model, values = candidates[place].model, given[place]
            query, read = guard._queries.score(model, metric, how, None, known[place], values)
            asked[place] = query.about(names[place]), read
    some = list(asked.values())
    if report == "best":
        if not told:
            told[0] = guard._engine.evaluate_best("estimator", some, share, score.greater_is_better)
        return [told[0]]
    if some:
        told |= zip(asked, guard._engine.evaluate_all("estimator", some, share), strict=True)
    return repeats(told, first, names)


def compare_all(
    guard: Thresholdout,
    models: Sequence[Any] | Mapping[str, Any],
    baseline: Any,
    metric: str | Metric,
    about: About,
    cv: object | None,
    keys: Sequence[str] | None,
    reserve: float,
) -> list[Comparison]:
    """Compare models with a baseline; see `Thresholdout.compare_all`."""
    from thresholdout.guard.comparison import Comparison

    candidates, chosen = listed(models, keys), guard._queries.compared(metric, about)
    cv, share = checked_cv(cv), checked_reserve(reserve)
    base = guard._queries.digest(baseline, chosen) or baseline
    known = [guard._score_key(one.key, "compare", [one.model, base], chosen, about, cv, None) for one in candidates]
    names, first = [one.name for one in candidates], first_places(known)
    told = _recalled(guard, "all", known, first, names, chosen)
    asked = {}
    places = [place for place in sorted(set(first)) if place not in told]
    against = guard._queries.against(baseline, chosen, about, cv) if places else None
    with guard._queries.together([candidates[place].model for place in places], chosen, baseline):
        for place in progress_bar(places, doing="scores of training", unit="models"):
            model = candidates[place].model
            assert against is not None
            query, read = against(model, known[place])
            asked[place] = query.about(names[place] or class_and_parameters(model)), read
    if asked:
        told |= zip(asked, guard._engine.evaluate_all("models", list(asked.values()), share), strict=True)
    rest: dict[str, Any] = {"greater_is_better": chosen.greater_is_better, "about": about}
    found = zip(repeats(told, first, names), names, strict=True)
    return [Comparison.of(answer, guard.n, candidate=name, **rest) for answer, name in found]


def _recalled(
    guard: Thresholdout,
    report: str,
    keys: Sequence[str | None],
    first: Sequence[int],
    names: Sequence[str],
    score: Metric | Statistic,
) -> dict[int, Answer]:
    """Return stored answers by place; an answer about the best one stands for the whole list, at place 0."""
    places = sorted(set(first))
    if report == "best":
        whole = key_of_list("best", [keys[place] for place in places], [names[place] for place in places])
        found = {0: guard._recalled(whole, score)}
    else:
        found = {place: guard._recalled(keys[place], score) for place in places}
    return {place: answer for place, answer in found.items() if answer is not None}


def first_places(keys: Sequence[str | None]) -> list[int]:
    """Return, for each query of a list, the place of the first query with the same content.

    Examples
    --------
    >>> first_places([None, ContentKey("content:1"), None, ContentKey("content:1")])
    [0, 1, 2, 1]
    """
    found: dict[str, int] = {}
    return [found.setdefault(key, place) if isinstance(key, ContentKey) else place for place, key in enumerate(keys)]


def repeats(told: Mapping[int, Answer], first: Sequence[int], names: Sequence[str]) -> list[Answer]:
    """Return the answers of a list; queries with the content of an earlier place repeat its answer."""
    return [
        told[at] if at == place else replace(told[at], repeated=True, candidate=names[place])
        for place, at in enumerate(first)
    ]


class Listed(NamedTuple):
    """One model of a list, with its name (empty in a sequence) and its key."""

    name: str
    model: Any
    key: str | None


def listed(models: Sequence[Any] | Mapping[str, Any], keys: Sequence[str] | None) -> list[Listed]:
    """Return a list's models with their names and keys."""
    if not isinstance(models, (Mapping, list, tuple)):
        raise InputTypeError("models", f"a {type(models).__name__}", "a list of estimators, or a mapping from names")
    if isinstance(models, Mapping) and (odd := [name for name in models if not isinstance(name, str)]):
        raise InputTypeError("models", f"a mapping with the name {odd[0]!r}", "a mapping whose names are texts")
    named = list(models.items()) if isinstance(models, Mapping) else [("", model) for model in models]
    _check_lists(named, keys=keys)
    return [Listed(name, model, keys[k] if keys else None) for k, (name, model) in enumerate(named)]


def _names(candidates: Sequence[Listed], *, unique: bool) -> list[str]:
    """Return the models' names in the history; equal descriptions get numbers if names must be unique."""
    names = [one.name or class_and_parameters(one.model) for one in candidates]
    if not unique:
        return names
    return [
        f"{name}, number {place}" if not one.name and names.count(name) > 1 else name
        for place, (one, name) in enumerate(zip(candidates, names, strict=True), 1)
    ]


def _check_lists(queries: object, **others: object) -> None:
    """Refuse values that are no list, an empty list, and lists of other lengths beside it."""
    if not isinstance(queries, (list, tuple)):
        raise InputTypeError("queries", f"a {type(queries).__name__}", "a list")
    if not queries:
        raise InputError("queries", "an empty list", "a list of at least one query")
    for argument, values in others.items():
        if values is None:
            continue
        if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
            raise InputTypeError(argument, f"a {type(values).__name__}", "a list of texts")
        if len(values) != len(queries):
            raise InputError(argument, f"a list of {len(values)}", f"a list of {len(queries)}, one for each query")


def _checked_values(values: object, models: int) -> Sequence[Any]:
    """Return one training value, or None, for each model."""
    if values is None:
        return [None] * models
    if not isinstance(values, (list, tuple, np.ndarray)):
        raise InputTypeError("train_values", f"a {type(values).__name__}", "a list")
    if len(values) != models:
        raise InputError("train_values", f"{len(values)} values", f"{models} values, one for each model")
    return list(values)


def checked_reserve(reserve: object) -> float:
    """Return the share of the error budget that is reserved for queries after a list."""
    share = as_real(reserve)
    if share is None or not 0.0 <= share <= _MOST_KEPT:
        raise InputError("reserve", repr(reserve), f"a share from 0 to {_MOST_KEPT}")
    return share


# Characters of a name, characters of a text in it, and entries of a tuple: the history is public and stays readable.
_LONGEST: Final = 120
_LONGEST_TEXT: Final = 24
_MOST: Final = 4


def class_and_parameters(model: Any) -> str:
    """Return a model's class with the parameters that differ from their defaults, in at most 120 characters.

    The history is public, and parameters can contain records. So only numbers, short texts and short tuples of integers
    are shown; of an array only its shape, of anything else its class or length.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> class_and_parameters(LogisticRegression(C=10))
    'LogisticRegression(C=10)'
    >>> class_and_parameters(make_pipeline(StandardScaler(), LogisticRegression(class_weight={0: 1.5, 1: 2.0})))
    'Pipeline(StandardScaler, LogisticRegression(class_weight=dict of 2))'
    """
    try:
        columns = list(model.values()) if isinstance(model, Mapping) else [model]
        text = ", ".join(columns) if columns and all(isinstance(one, str) for one in columns) else _model(model)
    except Exception:  # parameters are objects of any class, whose comparison or repr may fail
        text = type(model).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _model(model: Any) -> str:
    name = type(model).__name__
    if not hasattr(model, "get_params") or isinstance(model, type):
        return name
    known = {one.name: one.default for one in inspect.signature(type(model).__init__).parameters.values()}
    parts = []
    for parameter, value in model.get_params(deep=False).items():
        if parameter in ("steps", "estimators", "transformers") and isinstance(value, list):
            parts += [_model(step[1]) for step in value]
        elif not _same(value, known.get(parameter, inspect.Parameter.empty)):
            parts.append(f"{parameter}={_value(value)}")
    return f"{name}({', '.join(parts)})" if parts else name


def _same(value: Any, default: Any) -> bool:
    if type(value) is not type(default):
        return False
    return bool(value is default or (isinstance(value, (bool, int, float, str, tuple)) and value == default))


def _value(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        return str(value)
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST_TEXT else f"{value[:_LONGEST_TEXT]}...")
    if hasattr(value, "get_params"):
        return _model(value)
    if isinstance(value, tuple) and len(value) <= _MOST and all(type(one) is int for one in value):
        return repr(value)
    kind, shape = type(value).__name__, getattr(value, "shape", None)
    if shape is not None:
        return f"{kind} of shape {tuple(shape)}"
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return f"{kind} of {len(value)}"
    return str(getattr(value, "__name__", kind))
