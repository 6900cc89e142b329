"""How a guard compares models: by their difference, or by the share of wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphs.progress_bar import progress_bar
from thresholdout.data.arguments import check_word
from thresholdout.data.identity import handed_out
from thresholdout.data.record_labels import aligned
from thresholdout.data.values import unit_mean
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.asking import AsksAboutEstimators, checked_keep, first_places, listed, repeats
from thresholdout.guard.candidate_names import class_and_parameters
from thresholdout.guard.comparison import About, Comparison
from thresholdout.guard.given_features import Said, described, said_by
from thresholdout.guard.question import Question
from thresholdout.guard.scores import check_mean
from thresholdout.guard.training_folds import checked_cv
from thresholdout.ledger.entry_checks import check_short_texts
from thresholdout.mechanisms import UNKNOWN, Known
from thresholdout.mechanisms.base import Duel
from thresholdout.scoring.metrics import Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.guard.answer import Answer
    from thresholdout.guard.holdout import Records

__all__ = ["ComparesModels", "Expected", "Side", "among_counted"]

_INSTEAD = "compare(b, a), which is about the difference"


@dataclass(frozen=True, slots=True)
class Side:
    """One model as a comparison sees it.

    Parameters
    ----------
    train : ndarray or None
        Values of the metric on the training records; None where they are not known, see `Expected`.
    holdout : callable
        Returns the same on the holdout. Secret.
    said : Said or None
        What it says about the holdout's records, where truths are given their features.
    tested : ndarray or None
        Which training records the values are of, where it is not each of them once.
    counted : ndarray of bool or None
        Which of the holdout's records the comparison is about, where that is not all of them; public, and for truths
        that are given the features.
    """

    train: NDArray[np.float64] | None
    holdout: Callable[[], NDArray[np.float64]]
    said: Said | None
    tested: NDArray[np.intp] | None = None
    counted: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What whoever compares two models expects, in place of values on the training records.

    Parameters
    ----------
    difference : float or None
        Of both scores; ``None`` for nothing.
    binary : bool
        Whether a model's value of each record is one end of the metric's range or the other.
    """

    difference: float | None
    binary: bool


class ComparesModels(AsksAboutEstimators):
    """The part of a guard that compares models, two or a list with a baseline."""

    def compare(
        self,
        b: Any,
        a: Any,
        metric: str | Metric = "accuracy",
        *,
        about: About = "difference",
        cv: object | None = None,
        train_values: tuple[object, object] | None = None,
        key: str | None = None,
        name: str = "",
    ) -> Comparison:
        """Ask whether one fitted estimator is better than another, and by how much.

        What both agree on cancels, record by record, so a difference is known much more sharply than either score.

        Parameters
        ----------
        b, a : estimator
            Fitted; the question is whether `b` is better.
        metric : str or Metric, default="accuracy"
            A metric that is a mean over records.
        about : {"difference", "wins"}, default="difference"
            The difference of both scores, in the metric's units; or the share of wins of `b` among the records on which
            exactly one of both is right. A share of wins settles more with as many records. It needs a metric that is
            right or wrong on a record, independent records, and ``sampling="iid"``.
        cv : int, splitter, iterable of (fit, test) or "training", optional
            As in `score`, for the training values of both, by the same folds. How often models differ is taken from
            them; on the records that they were fitted to they do so too seldom.
        train_values : tuple of two array-likes, optional
            As in `score`: of `b` and of `a`, one value for each training record.
        key : str, optional
            As in `score`.
        name : str, optional
            What the history calls the candidates; by default both classes, with the parameters that are no defaults.

        Returns
        -------
        Comparison
            A difference is the population's (or the average of the records' own); in a session with
            ``sampling="fixed_features"`` it is the one that is expected given the features. A share of wins is the
            population's.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.dummy import DummyClassifier
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from thresholdout import Thresholdout
        >>> X, y = load_digits(return_X_y=True)
        >>> guard = Thresholdout((X[:800], y[:800]), train=(X[800:], y[800:]), sampling="iid")
        >>> bayes, dummy = GaussianNB().fit(X[800:], y[800:]), DummyClassifier().fit(X[800:], y[800:])
        >>> guard.compare(bayes, dummy).verdict, guard.compare(bayes, dummy, about="wins").verdict
        ('better', 'better')
        """
        chosen = self._compared(metric, about)
        cv = checked_cv(cv)
        check_short_texts(name=name)
        key = self._score_key(key, "compare", [b, a], chosen, about, cv, train_values)
        told = self._recalled(key, chosen)
        if told is not None:
            return self._concluded(told, chosen, about)
        both = name or f"{class_and_parameters(b)} against {class_and_parameters(a)}"
        if self._lazy:
            question, read = self._compare_columns(b, a, chosen, about, cv, train_values, key)
        else:
            of_b, of_a = _checked_pair(train_values, self._records)
            how = self._fixed(cv)
            sides = self._side(b, chosen, how, of_b), self._side(a, chosen, how, of_a)
            question, read = self._versus(chosen, *sides, about, key)
        found = self._decide(chosen, question.about(both), read, about)
        self._beside(found.answer, question, cv, about == "wins" or chosen.greater_is_better)
        return found

    def compare_all(
        self,
        models: Sequence[Any] | Mapping[str, Any],
        baseline: Any,
        metric: str | Metric = "accuracy",
        *,
        about: About = "difference",
        cv: object | None = None,
        keys: Sequence[str] | None = None,
        keep: float = 0.2,
    ) -> list[Comparison]:
        """Compare fitted estimators with a baseline; they were fixed together, before any of their answers was seen.

        Parameters
        ----------
        models : sequence or mapping of fitted estimators
            At least one; the keys of a mapping are their names in the history.
        baseline : estimator
            What each of them is compared with.
        metric, about, cv
            As in `compare`.
        keys : sequence of str, optional
            As in `ask`, one for each model.
        keep : float, default=0.2
            As in `ask_all`: the share of the risk for what comes after the list.

        Returns
        -------
        list of Comparison
            One for each model; all verdicts hold at once. All are told, in one transaction, or none.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.dummy import DummyClassifier
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from thresholdout import Thresholdout
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> guard = Thresholdout((X[:300], y[:300]), train=(X[300:], y[300:]))
        >>> models = {f"depth {d}": DecisionTreeClassifier(max_depth=d, random_state=0) for d in (1, 2, 3)}
        >>> fitted = {name: model.fit(X[300:], y[300:]) for name, model in models.items()}
        >>> [found.verdict for found in guard.compare_all(fitted, DummyClassifier().fit(X[300:], y[300:]))]
        ['better', 'better', 'better']
        """
        candidates = listed(models, keys)
        chosen = self._compared(metric, about)
        cv = checked_cv(cv)
        share, base = checked_keep(keep), self._digest(baseline, chosen) or baseline
        known = [self._score_key(one.key, "compare", [one.model, base], chosen, about, cv, None) for one in candidates]
        names, first = [one.name for one in candidates], first_places(known)
        told = self._recalled_list("all", known, first, names, chosen)
        how = self._fixed(cv)
        asked = {}
        places = [place for place in sorted(set(first)) if place not in told]
        against = self._side(baseline, chosen, how) if places and not self._lazy else None
        for place in progress_bar(places, doing="scores of training", unit="models"):
            model = candidates[place].model
            if self._lazy:
                question, read = self._compare_columns(model, baseline, chosen, about, cv, None, known[place])
            else:
                side = self._side(model, chosen, how)
                question, read = self._versus(chosen, side, cast(Side, against), about, known[place])
            asked[place] = question.about(names[place] or class_and_parameters(candidates[place].model)), read
        if asked:
            some = list(asked.values())
            told |= zip(asked, self._interaction.answer_all("models", some, share, self._worth), strict=True)
        return [
            self._concluded(answer, chosen, about, name)
            for answer, name in zip(repeats(told, first, names), names, strict=True)
        ]

    def _decide(
        self,
        metric: Metric,
        question: Question,
        read: Callable[[], Any],
        about: About = "difference",
        argument: str = "b",
    ) -> Comparison:
        """Answer a question of `_versus`; `argument` is at fault when it fails on the holdout."""
        return self._concluded(self._interaction.look(argument, question, read, self._worth), metric, about)

    def _compared(self, metric: str | Metric, about: About) -> Metric:
        """Refuse a comparison that this guard cannot be asked for."""
        check_word("about", about, ("difference", "wins"))
        chosen = check_mean(self._checked_score(metric, None)[0])
        self._mechanism.shares_risk("a comparison", private="a comparison of models")
        if about == "wins" and self._declared.sampling != "iid":
            seen = "'wins' of records that are not declared to have one law"
            raise InputError("about", seen, f"{_INSTEAD}; or a guard with sampling='iid', if they have")
        if about == "wins" and not self._mechanism.parameters.independent:
            raise InputError("about", f"'wins' for {self.dependence.describe()}", f"independent records; or {_INSTEAD}")
        return chosen

    def _side(self, model: Any, metric: Metric, cv: object | None, given: object | None = None) -> Side:
        """Return a fitted estimator as comparisons see it; on the holdout it is computed once at most."""
        holdout = self._records.labelled()[1]
        found = self._trained(metric, model, cv, given)
        classes = getattr(model, "classes_", None)
        output = (
            None
            if self._declared.sampling != "fixed_features"
            else np.array(getattr(model, metric.response)(handed_out(holdout)[0]))
        )

        @cache
        def on_holdout() -> NDArray[np.float64]:
            if output is None:
                return np.asarray(metric.of(model, *handed_out(holdout)), dtype=np.float64)
            # what it said before, and not what it would say now: records on which models agree are left out
            labels = np.asarray(handed_out(holdout)[1])
            return np.asarray(metric.values(labels, output.copy(), classes), dtype=np.float64)

        said = None if output is None else said_by(metric, output, classes)
        return Side(np.asarray(found.values, dtype=np.float64), on_holdout, said, found.tested)

    def _versus(
        self,
        metric: Metric,
        b: Side,
        a: Side,
        about: About,
        key: str | None,
        name: str = "",
        expected: Expected | None = None,
    ) -> tuple[Question, Callable[[], Any]]:
        """Return the question about two sides, and what reads it on the holdout.

        Without values on the training records, `expected` stands in for them.
        """
        if about == "wins":
            return self._wins(metric, b, a, key)
        title, most = name or f"{metric.name}, difference", metric.bounds[1] - metric.bounds[0]
        if b.said is None or a.said is None:
            if expected is not None:
                mean, known = _guessed(expected, most, 1.0), UNKNOWN
            else:
                difference = _trained(b) - _trained(a)
                mean, known = self._records.train_mean(difference, (-most, most), self._mechanism, False, b.tested)
            known = replace(known, difference=True, vague=expected is not None and expected.difference is None)
            question = Question(mean, (-most, most), title, key, known)
            return question, self._reading("b", question, lambda: self._both(b, a)[0], 0.0)
        differ, among = among_counted(b.said.differs(a.said, self.n), b.counted)
        share = float(np.count_nonzero(differ)) / among
        two = np.unique(self._records.train[1]).size <= 2 and b.said.same_classes(a.said)
        if expected is not None:
            training, variance, binary = self._records.train_size or self.n, None, two and expected.binary
            mean = _guessed(expected, most, share)
        else:
            z = np.clip((_trained(b) - _trained(a)) / most, -1.0, 1.0)
            # of the training records like these, were they as many among the others
            middle, square = min(1.0, max(-1.0, float(z.mean()) / share)), min(1.0, float(np.mean(z * z)) / share)
            training, mean = z.size, 0.5 * (middle + 1.0)
            binary = two and _right_or_wrong(*((_trained(one) - metric.bounds[0]) / most for one in (b, a)))
            variance = None if binary else 0.25 * max(0.0, square - middle * middle)
        part = described(differ, self.dependence, training)
        vague = expected is not None and expected.difference is None
        known = Known(variance, binary, difference=True, part=part, vague=vague)
        question = Question(mean, (-most * share, most * share), title, key, known)
        return question, self._reading("b", question, lambda: share * self._both(b, a)[0][differ], 0.0, part.records)

    def _wins(self, metric: Metric, b: Side, a: Side, key: str | None) -> tuple[Question, Callable[[], Any]]:
        """Return the question about the share of wins."""
        if not _right_or_wrong(_trained(b), _trained(a)):
            seen = f"'wins' by {metric.name}, of which values are neither 0 nor 1"
            raise InputError("about", seen, f"a metric that is right or wrong, such as 'accuracy'; or {_INSTEAD}")
        duel = _duel(_trained(b) - _trained(a), metric)
        known = Known(difference=True, duel=duel)
        question = Question(duel.share, (0.0, 1.0), f"{metric.name}, share of wins", key, known)

        def read() -> Any:
            difference, whole = self._both(b, a)
            if not whole:
                raise InputError("b", "values that are neither 0 nor 1", "a metric that is right or wrong")
            return self._interaction.duel(_duel(difference, metric), known)

        return question, read

    def _both(self, b: Side, a: Side) -> tuple[NDArray[np.float64], bool]:
        """Compute the difference of two sides on the holdout, and whether each of them is right or wrong."""
        first, second = b.holdout(), a.holdout()
        if not first.shape == second.shape == (self.n,):
            raise InputError("b", "values of another shape", "one value per record")
        return first - second, _right_or_wrong(first, second)

    def _concluded(self, answer: Answer, metric: Metric, about: About, candidate: str = "") -> Comparison:
        return Comparison.of(
            answer, self.n, greater_is_better=metric.greater_is_better, about=about, candidate=candidate
        )


def among_counted(differ: NDArray[np.bool_], counted: NDArray[np.bool_] | None) -> tuple[NDArray[np.bool_], int]:
    """Return on which records that count two models say something else, and how many count.

    As with `Said.differs`, it is the first that counts where there is none.
    """
    if counted is None:
        return differ, differ.size
    found = differ & counted
    if not found.any():
        found[np.argmax(counted)] = True
    return found, int(np.count_nonzero(counted))


def _trained(side: Side) -> NDArray[np.float64]:
    """Return a side's values on the training records."""
    assert side.train is not None
    return side.train


def _guessed(expected: Expected, most: float, share: float) -> float:
    """Return an expected difference in units of what is possible where so many of the records differ."""
    if expected.difference is None:
        return 0.5
    unit = unit_mean([expected.difference], 1, (-most, most), "expected")
    return min(1.0, max(0.0, 0.5 + (unit - 0.5) / share))


def _checked_pair(values: object, records: Records) -> tuple[Any, Any]:
    """Return given training values of two models, or nothing."""
    if values is None:
        return None, None
    if not isinstance(values, (tuple, list)) or len(values) != 2:
        raise InputTypeError("train_values", f"a {type(values).__name__}", "a pair: values of b, and of a")
    b, a = (np.asarray(aligned(one, records.train_labels, "train_values")) for one in values)
    n = records.train_size
    if any(one.shape != (n,) or one.dtype.kind not in "biuf" for one in (b, a)):
        seen = " and ".join(f"{one.dtype} of shape {one.shape}" for one in (b, a))
        raise InputError("train_values", seen, f"a number for each of {n} training records, of b and of a")
    return b, a


def _right_or_wrong(*values: NDArray[np.float64]) -> bool:
    """Whether all values are 0 or 1."""
    return all(bool(((one == 0.0) | (one == 1.0)).all()) for one in values)


def _duel(difference: NDArray[np.float64], metric: Metric) -> Duel:
    """Count the records on which the first model is better, and those on which it is worse."""
    more, less = int(np.count_nonzero(difference > 0.0)), int(np.count_nonzero(difference < 0.0))
    return Duel(more, less, difference.size) if metric.greater_is_better else Duel(less, more, difference.size)
