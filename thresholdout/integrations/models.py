"""Fitted models, and predictions of both parts, as candidates that a guard keeps or rejects."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.data.identity import handed_out
from thresholdout.errors import InputError
from thresholdout.guard.content_keys import content_digest, content_key
from thresholdout.guard.model_queries import check_mean
from thresholdout.guard.sharing.shared_objects import Proxy, shared
from thresholdout.integrations.candidates import CandidateVerdict, GuardedCandidates, Part, unlogged
from thresholdout.model_selection.predicting_functions import Kind, predictor
from thresholdout.scoring.fitted_models import classifies
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from thresholdout.guard.gates import Certify
    from thresholdout.guard.guard import Thresholdout
    from thresholdout.scoring.metrics import Metric

__all__ = ["GuardedModels", "numbers"]


def numbers(verdict: CandidateVerdict) -> dict[str, float]:
    """Return a verdict as numbers for trackers: kept, certified, score, and asked (0 if the guard is exhausted)."""
    asked = verdict.outcome not in ("exhausted", "failed")
    kept, certified = float(bool(verdict)), float(verdict.certified)
    return {"kept": kept, "certified": certified, "score": verdict.score, "asked": float(asked)}


@shared
class GuardedModels:
    """Keep or reject models by their predictions on a holdout.

    Use it in a loop that trains models. A guard (`Thresholdout`) answers queries about a holdout and tracks an error
    budget. The first model becomes the champion, and each later one replaces it only if the guard certifies that it is
    better, or, with ``certify="milestones"``, also if its training scores are. Models are judged by
    `GuardedCandidates`, which describes verdicts, crashes, duplicates and exhaustion.
    `thresholdout.integrations.ray_hooks`, `mlflow_hooks`, `transformers_hooks` and `inspect_hooks` are built on this
    class. If the object is pickled, other processes get a reference, and models are judged in the process that made it.

    Parameters
    ----------
    guard : Thresholdout
        Guard of pairs (X, y) with a training part, in this process.
    metric : str or Metric, default "accuracy"
        Metric that is a mean over records, or its name.
    cv : int, splitter or "training", optional
        Cross-validation that scores models on the training part. It needs an estimator that can be refitted, and must
        test each record once. ``"training"`` scores the fitted model on the training records. If None, 5 folds.
        `propose_outputs` scores the predictions as they are.
    classes : array-like, optional
        Labels of the columns of probabilities. If None, the sorted labels of the training part.
    name : str, default "models"
        Name in the history, which distinguishes several loops on one guard. Use another name for another metric.
    certify : {"each", "milestones"}, default "each"
        "each" tests every model that is better on the training part. "milestones" lets the training scores accept
        models at no cost, and from time to time tests the current one against the last certified one.
    delta : float, default 0.0
        By how much the mean score of a model has to be better.

    Attributes
    ----------
    guard : Thresholdout
        The guard, as passed.
    metric : Metric
        Metric of the comparisons.
    candidates : GuardedCandidates
        Object that judges the models.
    certify : {"each", "milestones"}
        As passed.
    classes : ndarray
        Labels of the columns of probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from thresholdout import Thresholdout
    >>> X, y = load_digits(return_X_y=True)
    >>> guard = Thresholdout((X[:900], y[:900]), train=(X[900:], y[900:]), sampling="iid")
    >>> models = GuardedModels(guard)
    >>> for depth in (2, 8, 1, 8):
    ...     tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[900:], y[900:])
    ...     verdict = models.propose(tree, f"depth {depth}")
    ...     print(depth, verdict.outcome, verdict.repeated)
    2 first False
    8 kept False
    1 rejected False
    8 kept True
    """

    def __init__(
        self,
        guard: Thresholdout,
        metric: str | Metric = "accuracy",
        *,
        cv: object | None = None,
        classes: ArrayLike | None = None,
        name: str = "models",
        certify: Certify = "each",
        delta: float = 0.0,
    ) -> None:
        self.metric = check_mean(metric)
        self.candidates = GuardedCandidates(
            guard,
            self._when_looked_at,
            name=name,
            bounds=self.metric.bounds,
            greater_is_better=self.metric.greater_is_better,
            certify=certify,
            delta=delta,
        )
        self.candidates.hold_to(metric=self.metric.name)
        self.guard = guard
        self.certify = certify
        self._cv = guard._fixed(cv)
        labels = np.asarray(guard._open[1])
        self.classes = np.unique(labels) if classes is None else np.asarray(classes)
        self._lock = threading.RLock()
        self._present: tuple[Any, Any] | None = None

    def propose(self, model: Any, name: str, *, known_as: Any = None) -> CandidateVerdict:
        """Judge a fitted estimator: keep it as the new champion, or reject it.

        Parameters
        ----------
        model : estimator
            Fitted estimator.
        name : str
            Identity of the model, such as a trial's identifier. It is used only if the model's content has no hash.
        known_as : optional
            Identity in place of the model's content, of a type that JSON represents.

        Returns
        -------
        CandidateVerdict
            Verdict with its ``outcome``. It is true if the model is kept.

        Raises
        ------
        InputError
            If the model cannot be cross-validated, or its folds do not test each training record once.
        """
        candidate = {"model": content_key(model) or name} if known_as is None else known_as
        told = self.candidates.judged(candidate)
        if told is not None:
            return told
        if self.candidates.exhausted:
            return self.candidates.propose(candidate)
        found = self.guard._trained(self.metric, model, self._cv)
        if found.tested is not None:
            seen = "folds that test some records never, or more than once"
            raise InputError("cv", seen, "folds that test each record once")
        with self._lock:
            if self.certify != "each" or self.candidates.champion is None:
                return self._judged_now(candidate, found.values, model)
            self._present = candidate, model
            try:
                return self.candidates.propose(candidate, train_values=found.values)
            finally:
                self._present = None

    def propose_outputs(self, train: ArrayLike, holdout: ArrayLike) -> CandidateVerdict:
        """Judge a model by its predictions alone, for models that cannot be passed as estimators.

        Parameters
        ----------
        train : array-like of shape (n_train,) or (n_train, k)
            Predictions of the training part: labels or numbers, or probabilities of the classes if the metric needs
            probabilities or there are several columns.
        holdout : array-like of shape (n,) or (n, k)
            Predictions of all records of the holdout, in the guard's order.

        Returns
        -------
        CandidateVerdict
            Verdict with its ``outcome``. It is true if the model is kept.

        Raises
        ------
        InputError
            If predictions are missing for some records, or are not probabilities where these are needed. Nothing is
            spent.
        """
        train_output, holdout_output = np.asarray(train), np.asarray(holdout)
        for argument, output, n in (
            ("train", train_output, len(self.guard._open[1])),
            ("holdout", holdout_output, self.guard.n),
        ):
            if output.ndim == 0 or len(output) != n:
                expected = f"predictions for all {n} records"
                raise InputError(argument, f"predictions of shape {output.shape}", expected)
        models = [self._predicting(output) for output in (train_output, holdout_output)]
        values = self.metric.of(models[0], None, self.guard._open[1])
        getattr(models[1], self.metric.response)(None)  # refused before a label of the holdout is read
        candidate = {"outputs": content_digest(train_output, holdout_output)}
        with self._lock:
            return self._judged_now(candidate, values, models[1])

    def values_on_train(self, outputs: ArrayLike, positions: ArrayLike) -> NDArray[np.float64]:
        """Return the metric's value for each of some training records, which are public.

        Parameters
        ----------
        outputs : array-like of shape (m,) or (m, k)
            Predictions of these records.
        positions : array-like of int of shape (m,)
            Positions of the records in the training part.

        Returns
        -------
        ndarray of shape (m,)
            Value of each record.
        """
        labels = np.asarray(self.guard._open[1])[np.asarray(positions, dtype=np.intp)]
        found = self.metric.of(self._predicting(np.asarray(outputs)), None, labels)
        return np.asarray(found, dtype=np.float64)

    def _judged_now(self, candidate: Any, train_values: ArrayLike, model: Any) -> CandidateVerdict:
        """Judge a candidate whose values on the holdout are computed and kept at once.

        The gate may need them when the model is gone. A failure here shows nowhere: the gate meets it if it evaluates
        the holdout, and charges it there.
        """
        interrupt = None
        try:
            holdout_values = self._on_holdout(model)
        except Exception:
            holdout_values = None
        except BaseException as error:
            holdout_values, interrupt = None, error
        try:
            return self.candidates.propose(candidate, train_values=train_values, holdout_values=holdout_values)
        finally:
            if interrupt is not None:
                raise interrupt

    def _on_holdout(self, model: Any) -> NDArray[np.float64]:
        """Return a model's values on the holdout; secret."""
        with suppress_warnings(), unlogged:
            found = self.metric.of(model, *handed_out(self.guard._records.labelled()[1]))
        return np.asarray(found, dtype=np.float64).reshape(self.guard.n)

    def _when_looked_at(self, candidate: Any, part: Part) -> NDArray[np.float64]:
        """Return the values of the candidate under judgement; the gate evaluates it."""
        if self._present is None or self._present[0] != candidate:
            raise InputError("model", "one that fails on the holdout", "predictions for all records")
        return self._on_holdout(self._present[1])

    def _predicting(self, output: NDArray[Any]) -> Any:
        """Return predictions as an estimator."""
        several = output.ndim == 2 and output.shape[1] > 1
        kind: Kind = "probabilities" if several or self.metric.response == "predict_proba" else "values"
        model: Any = predictor(lambda X: output, kind, self.classes)
        if classifies(self.metric):
            model.classes_ = self.classes  # predictions of few records may lack some classes
        return model

    def __repr__(self) -> str:
        return f"<GuardedModels: {self.metric.name}; {self.candidates!r}>"


class _RemoteModels(
    Proxy,
    of=GuardedModels,
    serves="__repr__ candidates certify classes guard metric propose propose_outputs values_on_train",
):
    """A reference in another process, which sends models to the one that made the object."""
