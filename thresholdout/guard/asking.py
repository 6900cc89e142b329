"""How a guard asks about estimators, one at a time or a list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from graphs.numerics.arguments import as_real
from graphs.progress_bar import progress_bar
from thresholdout.data.arguments import check_word
from thresholdout.data.identity import handed_out
from thresholdout.data.values import check_bounds, clipped, is_boolean
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.answer import Answer
from thresholdout.guard.answering import Worth
from thresholdout.guard.answering_lists import key_of_list
from thresholdout.guard.candidate_names import class_and_parameters
from thresholdout.guard.column_questions import AsksAboutColumns
from thresholdout.guard.interaction import Interaction
from thresholdout.guard.likely_mistakes import warn_of_gap
from thresholdout.guard.question import Question
from thresholdout.guard.scores import check_score, statistic_question
from thresholdout.guard.training_folds import TrainingFolds, checked_cv
from thresholdout.guard.training_values import Predictions, Trained, fixed, trained
from thresholdout.ledger.entry_checks import ContentKey, check_short_texts
from thresholdout.mechanisms import Known
from thresholdout.planning.declaration import Declaration
from thresholdout.scoring.metrics import Metric
from thresholdout.scoring.statistics import Estimate, Statistic, get_score

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.guard.holdout import Records
    from thresholdout.guard.sample_weights import Weights
    from thresholdout.mechanisms.kind import Parameters

__all__ = ["AsksAboutEstimators", "Listed", "checked_keep", "listed"]

_MOST_KEPT = 0.99

Asked = tuple[Question, Callable[[], Any]]
"""A question, and what computes the mechanism's reading of it on the holdout."""


class AsksAboutEstimators(AsksAboutColumns):
    """The part of a guard that turns estimators into questions, and asks lists of questions."""

    n: int
    dependence: DependenceModel
    _declared: Declaration
    _records: Records
    _parameters: Parameters
    _mechanism: Any
    _interaction: Interaction

    _worth: Callable[[], Worth]

    def ask_all(
        self,
        questions: Sequence[tuple[object, object]],
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        names: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        binary: bool | None = None,
        keep: float = 0.2,
    ) -> list[Answer]:
        """Ask questions that were fixed together, before any of their answers was seen.

        Their intervals are as narrow as those of a list that was written down in advance: no question pays for what
        the others told. All are answered, in one transaction, or none.

        Parameters
        ----------
        questions : sequence of (train_values, holdout_values)
            As in `ask`, one pair for each question.
        bounds : tuple of float, default=(0, 1)
            The declared range of all values.
        names, keys : sequence of str, optional
            As in `ask`, one for each question.
        binary : bool, optional
            As in `ask`.
        keep : float, default=0.2
            Share of the risk for questions after the list, at most 0.99. They also pay for what it has told, about
            three or four nats for each of its questions; 0 for a list that is the last.

        Returns
        -------
        list of Answer

        Raises
        ------
        InputError
            When there is no question, or one cannot be used; nothing is spent.
        BudgetExhausted
            When there are fewer questions, or answers from the holdout, left; nothing is spent.

        Examples
        --------
        >>> import numpy as np
        >>> from thresholdout import Thresholdout
        >>> holdout = np.arange(1000.0)
        >>> guard = Thresholdout(holdout)
        >>> answers = guard.ask_all([(0.25, holdout < 250), (0.5, holdout < 470)], binary=True, keep=0)
        >>> [tuple(round(limit, 3) for limit in answer.interval) for answer in answers]
        [(0.22, 0.282), (0.434, 0.506)]
        """
        limits = check_bounds(bounds)
        _check_lists(questions, names=names, keys=keys)
        if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in questions):
            raise InputTypeError("questions", "something else than pairs", "pairs (train_values, holdout_values)")
        asked: list[Asked] = []
        for k, (train_values, holdout_values) in enumerate(questions):
            if self._lazy:
                called, key = names[k] if names else "", keys[k] if keys else None
                asked.append(self._ask_columns(train_values, holdout_values, limits, called, key, binary))
                continue
            ends = is_boolean(holdout_values) if binary is None and as_real(train_values) is not None else binary
            mean, known = self._records.train_mean(train_values, limits, self._mechanism, ends)
            question = Question(mean, limits, names[k] if names else "", keys[k] if keys else None, known)
            ordered = self._records.ordered(holdout_values, "holdout_values")
            read = self._interaction.read(ordered, self.n, question, "holdout_values")
            asked.append((question, lambda read=read: read))  # type: ignore[misc]
        first = first_places([question.key for question, _ in asked])
        places = sorted(set(first))
        some = [asked[place] for place in places]
        told = zip(
            places, self._interaction.answer_all("holdout_values", some, checked_keep(keep), self._worth), strict=True
        )
        found = dict(told)
        return [
            found[at] if at == place else replace(found[at], repeated=True, name=asked[place][0].name)
            for place, at in enumerate(first)
        ]

    def score_all(
        self,
        models: Sequence[Any] | Mapping[str, Any],
        metric: str | Metric | Statistic = "accuracy",
        *,
        cv: object | None = None,
        train_values: Sequence[object] | None = None,
        keys: Sequence[str] | None = None,
        keep: float = 0.2,
        tell: Literal["all", "best"] = "all",
    ) -> list[Answer]:
        """Score fitted estimators that were fixed together, before any of their answers was seen.

        Parameters
        ----------
        models : sequence or mapping of fitted estimators
            At least one; the keys of a mapping are the candidates' names in the history, which otherwise are their
            classes with the parameters that are no defaults.
        metric, cv
            As in `score`; each model is fitted as many times as there are folds.
        train_values : sequence, optional
            As in `score`, for each model; ``None`` for one that is cross-validated.
        keys : sequence of str, optional
            As in `ask`, one for each model.
        keep : float, default=0.2
            As in `ask_all`.
        tell : {"all", "best"}, default="all"
            What is told: every score, or the best one alone, which costs later questions much less. With "best" the
            history names the one it is. Where values are 0 or 1, the truths of the others are at most (for losses, at
            least) the far end of its interval.

        Returns
        -------
        list of Answer

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from thresholdout import Thresholdout
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> guard = Thresholdout((X[:300], y[:300]), train=(X[300:], y[300:]))
        >>> models = {f"depth {d}": DecisionTreeClassifier(max_depth=d, random_state=0) for d in (1, 2, 3)}
        >>> fitted = {name: model.fit(X[300:], y[300:]) for name, model in models.items()}
        >>> max(answer.half_width for answer in guard.score_all(fitted, keep=0)) < 0.06
        True
        """
        candidates = listed(models, keys)
        given = _checked_values(train_values, len(candidates))
        check_word("tell", tell, ("all", "best"))
        share = checked_keep(keep)
        score, cv = get_score(metric), checked_cv(cv)
        known = [
            self._score_key(one.key, "score", [one.model], score, cv, values, None)
            for one, values in zip(candidates, given, strict=True)
        ]
        first = first_places(known)
        names = _names(candidates, unique=tell == "best")
        told = self._recalled_list(tell, known, first, names, score)
        how = self._fixed(cv)
        asked = {}
        places = [place for place in sorted(set(first)) if place not in told]
        for place in progress_bar(places, doing="scores of training", unit="models"):
            question, read = self._scoring(candidates[place].model, metric, how, None, known[place], given[place])
            asked[place] = question.about(names[place]), read
        some = list(asked.values())
        if tell == "best":
            if not told:
                best = score.greater_is_better
                told[0] = self._interaction.answer_best("estimator", some, share, best, self._worth)
            return [told[0]]
        if some:
            told |= zip(asked, self._interaction.answer_all("estimator", some, share, self._worth), strict=True)
        return repeats(told, first, names)

    def final_check(
        self,
        estimator: Any,
        metric: str | Metric | Statistic = "accuracy",
        *,
        cv: object | None = None,
        train_values: object | None = None,
        key: str | None = None,
        name: str = "",
    ) -> Answer:
        """Ask the last question: how good the model is that was chosen. The guard answers no more afterwards.

        It takes all of the risk that is left, so its interval is as narrow as one look at the holdout allows; if every
        claim before was confirmed, and the guard was made with ``final_check=True``, about as narrow as that of a first
        look. It is answered also where declared numbers of questions, or of answers from the holdout, are used up.

        Parameters
        ----------
        estimator, metric, cv, train_values, key, name
            As in `score`.

        Returns
        -------
        Answer

        Raises
        ------
        BudgetExhausted
            When there was a final check, or nothing is left of the risk; nothing is computed then.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from thresholdout import Thresholdout
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> guard = Thresholdout((X[:300], y[:300]), train=(X[300:], y[300:]), final_check=True)
        >>> models = [DecisionTreeClassifier(max_depth=d, random_state=0).fit(X[300:], y[300:]) for d in (1, 2, 3)]
        >>> best = max(models, key=lambda model: guard.score(model).value)
        >>> guard.final_check(best).half_width < 0.1
        True
        """
        score, cv = get_score(metric), checked_cv(cv)
        check_short_texts(name=name)
        key = self._score_key(key, "final check", [estimator], score, cv, train_values)
        told = self._recalled(key, score)
        if told is not None:
            return told
        question, read = self._scoring(estimator, metric, cv, None, key, train_values)
        question.name += ", final check"  # so that the key of an earlier question is not taken for this one's
        answer = self._interaction.look(
            "estimator", question.about(name or class_and_parameters(estimator)), read, self._worth, final=True
        )
        return self._beside(answer, question, cv, score.greater_is_better)

    def _beside(self, answer: Answer, question: Question, cv: object, greater_is_better: bool) -> Answer:
        """Return an answer; warn where it is far from the training value, if that was not the one of a fit."""
        if cv != "training" and answer.about == "question":
            size = None if self._lazy else self._records.train_size
            warn_of_gap(answer, question.shown, size, greater_is_better=greater_is_better)
        return answer

    def _recalled(self, key: str | None, score: Metric | Statistic) -> Answer | None:
        """Return the answer to a question that was asked before; nothing is computed for it."""
        return self._interaction.recall(key, score.target if isinstance(score, Statistic) else "")

    def _recalled_list(
        self,
        tell: str,
        keys: Sequence[str | None],
        first: Sequence[int],
        names: Sequence[str],
        score: Metric | Statistic,
    ) -> dict[int, Answer]:
        """Return answers that there are already, by place; that of the best stands for all, at place 0."""
        places = sorted(set(first))
        if tell == "best":
            whole = key_of_list("best", [keys[place] for place in places], [names[place] for place in places])
            found = {0: self._recalled(whole, score)}
        else:
            found = {place: self._recalled(keys[place], score) for place in places}
        return {place: answer for place, answer in found.items() if answer is not None}

    def _reading(
        self,
        argument: str,
        question: Question,
        on_holdout: Callable[[], object],
        missing: float | None = None,
        among: int | None = None,
    ) -> Callable[[], Any]:
        """Return what reads per-record values that are computed on the holdout, or on so many of its records.

        Values out of range are clipped, and missing ones replaced: a function of each record alone.
        """
        records = self.n if among is None else among

        def read() -> Any:
            values = self._records.ordered(on_holdout(), argument)
            try:
                return self._interaction.read(values, records, question, argument)
            except InputError:
                inside = clipped(values, records, question.limits, argument, missing)
                return self._interaction.read(inside, records, question, argument)

        return read

    def _checked_score(
        self, metric: str | Metric | Statistic, sample_weight: tuple[object, object] | None
    ) -> tuple[Metric | Statistic, Weights | None]:
        """Refuse a score that this guard cannot be asked for."""
        if self._lazy:
            chosen = self._column_score(metric, sample_weight)
            self._parameters.check_direction(chosen.name, chosen.greater_is_better)
            return chosen, None
        return check_score(
            self._mechanism, self._parameters, self._records, metric, sample_weight, self._declared.sampling
        )

    def _scoring(
        self,
        estimator: Any,
        metric: str | Metric | Statistic,
        cv: object | None,
        sample_weight: tuple[object, object] | None,
        key: str | None,
        given: Any = None,
    ) -> Asked:
        """Return the question about a fitted estimator's score."""
        if self._lazy:
            return self._score_column(estimator, self._checked_score(metric, sample_weight)[0], cv, key, given)
        chosen, weights = self._checked_score(metric, sample_weight)
        train, holdout = self._records.labelled()
        found = self._trained(chosen, estimator, cv, given)
        values = found.values
        if isinstance(chosen, Statistic):
            if not isinstance(values, Estimate):  # a search's own cross-validated score
                values = chosen.estimate_at(_one_number(values, chosen), estimator, *train)
            question, evidence = statistic_question(
                chosen, self._records, self.dependence, estimator, values, key, self._declared.sampling == "iid"
            )
            return question, lambda: self._interaction.statistic(evidence(), question.known)
        limits = chosen.bounds
        if weights is not None:
            values, limits = weights.on_train(values, chosen.bounds, found.tested)
        mean, known = self._records.train_mean(values, limits, self._mechanism, tested=found.tested)
        if np.ndim(values) == 0 and weights is None and not getattr(estimator, "only_holdout", False):
            known = self._resembling(chosen.of(estimator, *train), mean, limits)
        question = Question(mean, limits, chosen.name, key, known)
        worst = limits[0] if chosen.greater_is_better else limits[1]

        def on_holdout() -> object:
            protected = chosen.of(estimator, *handed_out(holdout))
            if weights is None:
                return protected
            return weights.on_holdout(clipped(protected, self.n, chosen.bounds, "estimator"))

        return question, self._reading("estimator", question, on_holdout, worst)

    def _trained(
        self, metric: Metric | Statistic, estimator: Any, cv: object | None, given: object | None = None
    ) -> Trained:
        """Return a fitted estimator's values on the training part."""
        return trained(
            metric, estimator, self._records.labelled()[0], self._training_folds, cv, given, self._predictions
        )

    def _fixed(self, cv: object | None) -> object | None:
        """Return how to cross-validate several estimators by the same folds."""
        if self._lazy:
            return cv
        return fixed(cv, self._records.labelled()[0], self._training_folds)

    @cached_property
    def _predictions(self) -> Predictions:
        """Out-of-fold predictions that were made."""
        return Predictions()

    @property
    def _training_folds(self) -> TrainingFolds:
        """How the training part is cut."""
        return self._records.training_folds

    def _resembling(self, values: object, mean: float, limits: tuple[float, float]) -> Known:
        """Return what values on the records that a model was fitted to say, beside a mean over others."""
        fitted, known = self._records.train_mean(values, limits, self._mechanism)
        if known.variance is None:
            return known
        return replace(known, variance=min(0.25, known.variance + 0.5 * abs(mean - fitted)))  # of losses that jump


def first_places(keys: Sequence[str | None]) -> list[int]:
    """Return for each question of a list the place of the first one that is the same by its content.

    Examples
    --------
    >>> first_places([None, ContentKey("content:1"), None, ContentKey("content:1")])
    [0, 1, 2, 1]
    """
    found: dict[str, int] = {}
    return [found.setdefault(key, place) if isinstance(key, ContentKey) else place for place, key in enumerate(keys)]


def repeats(told: Mapping[int, Answer], first: Sequence[int], names: Sequence[str]) -> list[Answer]:
    """Return the answers of a list, of which some are those of earlier places."""
    return [
        told[at] if at == place else replace(told[at], repeated=True, candidate=names[place])
        for place, at in enumerate(first)
    ]


class Listed(NamedTuple):
    """One model of a list.

    Parameters
    ----------
    name : str
        Its key in a mapping; empty in a sequence.
    model : estimator
        Fitted.
    key : str or None
        Identity of its question.
    """

    name: str
    model: Any
    key: str | None


def listed(models: Sequence[Any] | Mapping[str, Any], keys: Sequence[str] | None) -> list[Listed]:
    """Return a list's models with their names and keys.

    Raises
    ------
    InputTypeError
        When it is neither a list nor a mapping.
    InputError
        When it is empty, or there are more or fewer keys.
    """
    if not isinstance(models, (Mapping, list, tuple)):
        raise InputTypeError("models", f"a {type(models).__name__}", "a list of estimators, or a mapping of names")
    if isinstance(models, Mapping) and (odd := [name for name in models if not isinstance(name, str)]):
        seen = f"a mapping with a name that is no text, {odd[0]!r}"
        raise InputTypeError("models", seen, "texts for names: {str(name): model, ...}")
    named = list(models.items()) if isinstance(models, Mapping) else [("", model) for model in models]
    _check_lists(named, keys=keys)
    return [Listed(name, model, keys[k] if keys else None) for k, (name, model) in enumerate(named)]


def _names(candidates: Sequence[Listed], *, unique: bool) -> list[str]:
    """Return what the history calls models; those that are described alike by their places where names are told."""
    names = [one.name or class_and_parameters(one.model) for one in candidates]
    if not unique:
        return names
    return [
        f"{name}, number {place}" if not one.name and names.count(name) > 1 else name
        for place, (one, name) in enumerate(zip(candidates, names, strict=True), 1)
    ]


def _check_lists(questions: object, **others: object) -> None:
    """Refuse what is no list, an empty one, and lists that do not go with it."""
    if not isinstance(questions, (list, tuple)):
        raise InputTypeError("questions", f"a {type(questions).__name__}", "a list")
    if not questions:
        raise InputError("questions", "an empty list", "at least one question")
    for argument, values in others.items():
        if values is None:
            continue
        if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
            raise InputTypeError(argument, f"a {type(values).__name__}", "a list of texts")
        if len(values) != len(questions):
            raise InputError(argument, f"{len(values)} of them", f"{len(questions)}, one for each question")


def _one_number(value: object, statistic: Statistic) -> float:
    """Return a statistic's training value that was given."""
    number = as_real(value)
    if number is None:
        raise InputTypeError("train_values", f"a {type(value).__name__}", f"the {statistic.name} of the training part")
    return number


def _checked_values(values: object, models: int) -> Sequence[Any]:
    """Return a training value for each model, or nothing for each."""
    if values is None:
        return [None] * models
    if not isinstance(values, (list, tuple, np.ndarray)):
        raise InputTypeError("train_values", f"a {type(values).__name__}", "a list")
    if len(values) != models:
        raise InputError("train_values", f"{len(values)} of them", f"{models}, one for each model")
    return list(values)


def checked_keep(keep: object) -> float:
    """Return the share of the risk that is kept after a list.

    Raises
    ------
    InputError
        When it is none.
    """
    share = as_real(keep)
    if share is None or not 0.0 <= share <= _MOST_KEPT:
        raise InputError("keep", repr(keep), f"a share from 0 to {_MOST_KEPT}")
    return share
