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
    """Return a verdict as the numbers that trackers of experiments log.

    Parameters
    ----------
    verdict : CandidateVerdict

    Returns
    -------
    dict
        ``"kept"`` and ``"certified"``, 1 or 0; ``"score"``, the verdict's number to rank by; ``"asked"``, 0 where the
        guard answers no more, or the model could not be evaluated.

    Examples
    --------
    >>> numbers(CandidateVerdict("on the way", 3))
    {'kept': 1.0, 'certified': 0.0, 'score': 0.75, 'asked': 1.0}
    """
    asked = verdict.outcome not in ("exhausted", "failed")
    kept, certified = float(bool(verdict)), float(verdict.certified)
    return {"kept": kept, "certified": certified, "score": verdict.score, "asked": float(asked)}


@shared
class GuardedModels:
    """Keeps or rejects models by their predictions; the first one is the champion that the next is compared with.

    For loops that train models: `thresholdout.integrations.ray_hooks`, `mlflow_hooks`, `transformers_hooks` and
    `inspect_hooks` stand on it. See `GuardedCandidates` for what a verdict says, and for crashes, duplicates and the
    end of the budget. Pickled, it is sent to other processes as a reference, and models are judged where it was made.

    Parameters
    ----------
    guard : Thresholdout
        Of pairs (X, y), with its training part; in this process.
    metric : str or Metric, default="accuracy"
        A metric that is a mean over records.
    cv : int, splitter or "training", optional
        How models are scored on the training part, as in `Thresholdout.score`: cross-validated by default, which takes
        an estimator that can be fitted again; each record is tested once. Predictions count as they are.
    classes : array-like, optional
        The labels that columns of probabilities stand for; by default those of the training part, sorted.
    name : str, default="models"
        As in `GuardedCandidates`; another one for another metric, which is refused otherwise.
    certify, delta
        As in `Thresholdout.gate`.

    Attributes
    ----------
    guard : Thresholdout
        As given.
    metric : Metric
        What is compared.
    candidates : GuardedCandidates
        What judges.
    certify : {"each", "milestones"}
        As given.
    classes : ndarray
        The labels that columns of probabilities stand for.

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
        """Keep or reject a fitted estimator.

        Parameters
        ----------
        model : estimator
            Fitted.
        name : str
            What tells it from all others, such as a trial's identifier, where its content cannot be told.
        known_as : optional
            What JSON can write and tells it from all others, in place of its content.

        Returns
        -------
        CandidateVerdict
            "failed" for a model that predicts nothing on the training part.

        Raises
        ------
        InputError
            When it cannot be cross-validated, or by folds that do not test each training record once.
        """
        candidate = {"model": content_key(model) or name} if known_as is None else known_as
        told = self.candidates.judged(candidate)
        if told is not None:
            return told
        if self.candidates.exhausted:
            return self.candidates.propose(candidate)
        found = self.guard._trained(self.metric, model, self._cv)
        if found.tested is not None:
            raise InputError("cv", "folds that test some records never, or more than once", "folds of all records")
        with self._lock:
            if self.certify != "each" or self.candidates.champion is None:
                return self._judged_now(candidate, found.values, model)
            self._present = candidate, model
            try:
                return self.candidates.propose(candidate, train_values=found.values)
            finally:
                self._present = None

    def propose_outputs(self, train: ArrayLike, holdout: ArrayLike) -> CandidateVerdict:
        """Keep or reject a model of which the predictions are known.

        Parameters
        ----------
        train : array-like of shape (n_train,) or (n_train, k)
            What it predicts for the training part: labels or numbers, or probabilities of the classes where the metric
            is about probabilities or there are several columns.
        holdout : array-like of shape (n,) or (n, k)
            The same for the holdout: for all of its records, in the guard's order.

        Returns
        -------
        CandidateVerdict

        Raises
        ------
        InputError
            When there are predictions of a part of the records only, or no probabilities; nothing is spent.
        """
        train_output, holdout_output = np.asarray(train), np.asarray(holdout)
        for argument, output, n in (
            ("train", train_output, len(self.guard._open[1])),
            ("holdout", holdout_output, self.guard.n),
        ):
            if output.ndim == 0 or len(output) != n:
                raise InputError(argument, f"predictions of shape {output.shape}", f"one for each of all {n} records")
        models = [self._predicting(output) for output in (train_output, holdout_output)]
        values = self.metric.of(models[0], None, self.guard._open[1])
        getattr(models[1], self.metric.response)(None)  # refused here, where no label has been looked at
        candidate = {"outputs": content_digest(train_output, holdout_output)}
        with self._lock:
            return self._judged_now(candidate, values, models[1])

    def values_on_train(self, outputs: ArrayLike, positions: ArrayLike) -> NDArray[np.float64]:
        """Return the metric's values of predictions of some training records, whose labels everybody may know.

        Parameters
        ----------
        outputs : array-like of shape (m,) or (m, k)
            Predictions.
        positions : array-like of int of shape (m,)
            Of which records.
        """
        labels = np.asarray(self.guard._open[1])[np.asarray(positions, dtype=np.intp)]
        found = self.metric.of(self._predicting(np.asarray(outputs)), None, labels)
        return np.asarray(found, dtype=np.float64)

    def _judged_now(self, candidate: Any, train_values: ArrayLike, model: Any) -> CandidateVerdict:
        """Judge a candidate whose values on the holdout are kept at once.

        The gate may ask for them when the model is gone: the first candidate's, and those of one on the way. Where they
        cannot be computed nothing shows of that: the gate asks for them, if it looks, and the failure is charged there.
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
        """Return the values of the candidate that is being judged; the gate looks at it."""
        if self._present is None or self._present[0] != candidate:
            raise InputError("model", "one that fails on the holdout", "predictions for all records")
        return self._on_holdout(self._present[1])

    def _predicting(self, output: NDArray[Any]) -> Any:
        """Return what was predicted as an estimator."""
        several = output.ndim == 2 and output.shape[1] > 1
        kind: Kind = "probabilities" if several or self.metric.response == "predict_proba" else "values"
        model: Any = predictor(lambda X: output, kind, self.classes)
        if classifies(self.metric):
            model.classes_ = self.classes  # with few records none of them may be right
        return model

    def __repr__(self) -> str:
        return f"<GuardedModels: {self.metric.name}; {self.candidates!r}>"


class _RemoteModels(
    Proxy,
    of=GuardedModels,
    serves="__repr__ candidates certify classes guard metric propose propose_outputs values_on_train",
):
    """What judges models in every process but its own: it sends them there."""
