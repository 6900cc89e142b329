"""Questions about columns of lazy frames: expressions, scores of columns of predictions, and comparisons of two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphs.numerics.arguments import as_real
from thresholdout.data.values import unit_mean
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.automatic_keys import Digest, RecognisesQuestions
from thresholdout.guard.column_classes import class_counts, classes_of
from thresholdout.guard.column_metrics import labels_are_zero_or_one, metric_expression
from thresholdout.guard.lazy_records import LazyRecords
from thresholdout.guard.question import Question
from thresholdout.guard.question_keys import content_digest
from thresholdout.guard.scan import Scan
from thresholdout.guard.scores import check_statistic
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.base import Duel
from thresholdout.scoring.metrics import Metric
from thresholdout.scoring.statistics import Statistic, get_score

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.data.parts.expressions import Compiled
    from thresholdout.data.parts.lazy_part import LazyPart
    from thresholdout.data.parts.totals import Joint, Totals
    from thresholdout.guard.comparison import About
    from thresholdout.guard.holdout import Records
    from thresholdout.guard.interaction import Interaction
    from thresholdout.planning.declaration import Declaration
    from thresholdout.scoring.statistics.class_counts import ClassCounts

__all__ = ["AsksAboutColumns"]

_COLUMN = "the name of a column of predictions"
_VALUES = "an expression of narwhals, such as nw.col('pred') == nw.col('y'), or the name of a column"

Asked = tuple[Question, Callable[[], Any]]


class AsksAboutColumns(RecognisesQuestions):
    """The part of a guard that asks about columns of lazy frames."""

    n: int
    dependence: DependenceModel
    _declared: Declaration
    _records: Records
    _mechanism: Any
    _interaction: Interaction

    @property
    def _lazy(self) -> bool:
        return isinstance(self._records, LazyRecords)

    @property
    def _frames(self) -> LazyRecords:
        assert isinstance(self._records, LazyRecords)
        return self._records

    def join(self, predictions: object, on: str) -> None:
        """Add columns to both parts of a guard of lazy frames, such as predictions of a model that is new.

        They can be asked about from then on, by this guard. A record that the frame does not have has no values there,
        which count as the worst ones.

        Parameters
        ----------
        predictions : lazy frame
            Of the same engine as the parts, with a row for each record of both parts (of others, too, if you like).
        on : str
            Name of the column by which records are found, which the parts and the frame have: an identifier.

        Raises
        ------
        InputError
            When the guard's parts are in memory, a name is wrong, a value of ``on`` occurs twice, there are fewer rows
            than holdout records, or the parts have columns of these names.

        Examples
        --------
        >>> import polars as pl
        >>> from thresholdout import Thresholdout
        >>> data = pl.DataFrame({"id": range(4000), "y": [k % 2 for k in range(4000)]})
        >>> guard = Thresholdout((data[:2000].lazy(), "y"), train=(data[2000:].lazy(), "y"))
        >>> guard.join(pl.LazyFrame({"id": range(4000), "zeros": [0] * 4000}), on="id")
        >>> guard.score("zeros").value
        0.5
        """
        if not self._lazy:
            raise InputError("predictions", "columns for parts in memory", "values for ask(), or a model for score()")
        self._frames.join(predictions, on)

    def _ask_columns(
        self,
        train: object,
        holdout: object | None,
        limits: tuple[float, float],
        name: str,
        key: str | None,
        binary: bool | None,
    ) -> Asked:
        """Return the question about an expression, for both parts or one for each."""
        if callable(train):
            self._records.apply(train)
        if holdout is None and as_real(train) is not None:
            raise InputError("holdout_values", "nothing", f"{_VALUES}, beside a number for the training part")
        for values, name_of in ((train, "train_values"), (holdout, "holdout_values")):
            if hasattr(values, "__len__") and not isinstance(values, str):
                self._records.ordered(values, name_of)
        argument = "train_values" if holdout is None else "holdout_values"
        return self._column_question(
            train, train if holdout is None else holdout, argument, limits, name, key, binary, None
        )

    def _column_question(
        self,
        train: object,
        holdout: Any,
        argument: str,
        limits: tuple[float, float],
        name: str,
        key: str | None,
        binary: bool | None,
        missing: float | None,
    ) -> Asked:
        """Return a question about values of the holdout that an expression has.

        A value out of range counts as the nearer end, a missing one as `missing`, the lower end by default: functions
        of each record alone.
        """
        frames = self._frames
        compiled = frames.part.compiled(holdout, argument)
        sure = _is_share(compiled, limits)
        number = as_real(train)
        if number is not None:
            told: object = number
            mean = unit_mean([number], 1, limits, "train_values")
            known = Known(binary=sure if binary is None else binary)
        else:
            found = self._train_totals(train, limits, missing)
            mean, known = self._mechanism.trained(found, None, limits, "train_values", binary)
            if binary and not found.ends:
                raise InputError("binary", "True for values between the ends of the range", "False, or nothing")
            told = found.mean.total, found.n
        content = compiled.text, frames.content(compiled.columns), limits, binary, missing, told
        question = Question(mean, limits, name, self._known_by(key, "columns", *content), known)
        squares = self._mechanism.needs_squares(known)

        def count() -> Totals:
            return frames.part.totals(holdout, limits, missing=missing, squares=squares, argument=argument)

        return question, Scan(count, lambda totals: self._interaction.read(totals, self.n, question, argument))

    def _train_totals(self, train: Any, limits: tuple[float, float], missing: float | None) -> Totals:
        """Let the engine count the training part's values."""
        part = self._train_frame()
        sure = _is_share(part.compiled(train, "train_values"), limits)
        squares = self._mechanism.expects_spread and not sure
        found = part.totals(train, limits, missing=missing, squares=squares, argument="train_values")
        if missing is None:
            found.check("train_values", limits)
        else:
            _check_predicted(found, "estimator", "predictions of all of them, or train_values= their score")
        return found

    def _train_frame(self) -> LazyPart:
        part = self._frames.train_part
        if part is None:
            raise InputError("train", "no training part in this guard", "Thresholdout(holdout, train=train)")
        return part

    def _digest(self, model: Any, score: Metric | Statistic) -> Digest | None:
        """Return what a column of predictions is known by, beside the holdout that it is a part of."""
        if not self._lazy and not isinstance(model, str):
            return super()._digest(model, score)
        column = self._column(model)
        label = self._frames.label
        assert label is not None
        return Digest(content_digest("column", column, self._frames.content([column, label]), label))

    def _column(self, model: object, argument: str = "estimator") -> str:
        """Return the name of a column of predictions, or refuse what is none."""
        if not self._lazy:
            raise InputTypeError(argument, f"the text {model!r}", "a fitted model; columns are those of lazy frames")
        if not isinstance(model, str):
            raise InputTypeError(argument, f"a {type(model).__name__}, beside lazy frames", _COLUMN)
        if self._frames.label is None:
            raise InputError(
                "label", "nothing", "Thresholdout((holdout, 'y'), train=(train, 'y')), the column of labels"
            )
        self._frames.part.compiled(model, argument)
        return model

    def _values_of(self, metric: Metric, column: str) -> Any:
        """Return a metric of a column of predictions as an expression."""
        label = self._frames.label
        assert label is not None
        train = self._frames.train_part
        if train is not None and not labels_are_zero_or_one(metric, train, label):
            raise InputError("metric", f"{metric.name!r} of labels {label!r} that are not 0 and 1", "labels 0 and 1")
        return metric_expression(metric, column, label)

    def _score_column(
        self,
        model: object,
        metric: Metric | Statistic,
        cv: object | None,
        key: str | None,
        given: object | None,
    ) -> Asked:
        """Return the question about the score of a column of predictions."""
        column = self._column(model)
        if cv is not None:
            expected = "nothing; training predictions that are out-of-fold, or train_values= a number"
            raise InputError("cv", "a way to cross-validate a column of predictions", expected)
        if given is not None and as_real(given) is None:
            seen = f"a {type(given).__name__}"
            raise InputTypeError("train_values", seen, "the score of the training part, a number")
        if isinstance(metric, Statistic):
            return self._statistic_of_column(column, metric, key, as_real(given))
        expression = self._values_of(metric, column)
        worst = metric.bounds[0] if metric.greater_is_better else metric.bounds[1]
        train = expression if given is None else given
        return self._column_question(train, expression, "estimator", metric.bounds, metric.name, key, None, worst)

    def _statistic_of_column(self, column: str, statistic: Statistic, key: str | None, given: float | None) -> Asked:
        """Return the question about a statistic that is a function of counts of classes."""
        frames, train = self._frames, self._train_frame()
        label = frames.label
        assert label is not None
        known = classes_of(statistic, train, label)
        classes = list(dict.fromkeys(part.label for part in statistic.class_ratios(known)))
        found = statistic.of_counts(class_counts(train, column, label, classes, check=True), known)
        if given is not None:
            found = statistic.moved(found, given, known)
        layout = statistic.layout(found, known, None, self.dependence, self._declared.sampling == "iid")
        question = Question(
            statistic.unit(found), statistic.bounds, statistic.name, key, Known(layout=layout), statistic.target
        )

        def read(counts: dict[Any, ClassCounts]) -> Any:
            evidence = statistic.evidence_of_counts(counts, known, self.dependence, self._declared.sampling == "iid")
            return self._interaction.statistic(evidence, question.known)

        return question, Scan(lambda: class_counts(frames.part, column, label, classes), read)

    def _column_score(self, metric: str | Metric | Statistic, weights: object | None) -> Metric | Statistic:
        """Refuse what is not asked about columns."""
        chosen = get_score(metric)
        if isinstance(chosen, Statistic):
            check_statistic(self._mechanism, chosen)
        if weights is not None:
            expected = "ask(expression, bounds=...) of weighted values"
            raise InputError("sample_weight", "weights beside lazy frames", expected)
        return chosen

    def _compare_columns(
        self,
        b: object,
        a: object,
        metric: Metric,
        about: About,
        cv: object | None,
        given: object | None,
        key: str | None,
    ) -> Asked:
        """Return the question about two columns of predictions."""
        for argument, value in (("cv", cv), ("train_values", given)):
            if value is not None:
                raise InputError(argument, "given beside lazy frames", "columns of predictions of the training part")
        first, second = (self._values_of(metric, self._column(one, name)) for one, name in ((b, "b"), (a, "a")))
        frames, most = self._frames, metric.bounds[1] - metric.bounds[0]
        trained = self._train_frame().joint(first, second, metric.bounds)
        _check_predicted(trained.difference, "b", "predictions of all of them, by both models")
        if about == "wins":
            if not trained.right_or_wrong:
                raise InputError("about", f"'wins' by {metric.name}, of which values are neither 0 nor 1", "'accuracy'")
            duel = _duel(trained, metric)
            known = Known(difference=True, duel=duel)
            question = Question(duel.share, (0.0, 1.0), f"{metric.name}, share of wins", key, known)
        else:
            mean, known = self._mechanism.trained(trained.difference, None, (-most, most), "train_values", False)
            known = replace(known, difference=True)
            question = Question(mean, (-most, most), f"{metric.name}, difference", key, known)

        def read(found: Joint) -> Any:
            if about == "wins":
                if not found.right_or_wrong:
                    raise InputError("b", "values that are neither 0 nor 1", "a metric that is right or wrong")
                return self._interaction.duel(_duel(found, metric), known)
            return self._interaction.read(found, self.n, question, "b")

        return question, Scan(lambda: frames.part.joint(first, second, metric.bounds), read)


def _is_share(compiled: Compiled, limits: tuple[float, float]) -> bool:
    """Return whether values are ends of the range for certain: how many records a statement is true of."""
    return compiled.kind == "boolean" and limits == (0.0, 1.0)


def _check_predicted(found: Totals, argument: str, expected: str) -> None:
    """Refuse training records without a prediction or a label: the holdout's are not looked at."""
    if found.missing:
        seen = f"{found.missing} of {found.n} training records without a prediction or a label"
        raise InputError(argument, seen, expected)


def _duel(joint: Joint, metric: Metric) -> Duel:
    """Return how often the first of two models is the better one, and how often the other."""
    more, less, n = joint.more, joint.less, joint.difference.n
    return Duel(more, less, n) if metric.greater_is_better else Duel(less, more, n)
