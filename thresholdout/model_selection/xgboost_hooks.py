"""Guards in XGBoost, which is loaded only when a callback is made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.model_selection.guarded_stopping import GuardedStopping
from thresholdout.model_selection.predicting_functions import Kind, check_objective, predictor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["xgboost_callback"]

_OBJECTIVES: dict[str, Literal["probabilities", "values", "codes"]] = {
    "binary:logistic": "probabilities",
    "multi:softprob": "probabilities",
    "multi:softmax": "codes",
    "binary:hinge": "codes",
    "count:poisson": "values",
}
"""Kinds of outputs of XGBoost's objectives; all that begin with ``reg:`` have values."""


def xgboost_callback(stopping: GuardedStopping, *, classes: ArrayLike | None = None) -> Any:
    """Return an XGBoost callback that stops training early by a `GuardedStopping`.

    Pass it in ``xgboost.train(callbacks=[...])`` or ``XGBClassifier(callbacks=[...])``. A `GuardedStopping` follows a
    free signal and queries a guard about a few rounds. The holdout does not pass through XGBoost: the model predicts it
    in the guard's process, and only for queries. After the fit the booster's ``best_iteration`` is the chosen round,
    counted from 0, as with XGBoost's own early stopping, and ``XGBClassifier.predict`` uses it. `stopping` holds the
    answers.

    Parameters
    ----------
    stopping : GuardedStopping
        The stopping rule with its guard. Each fit needs a new one.
    classes : array-like, optional
        Labels of the booster's outputs, in their order. If None, the sorted labels of the guard's training part, as
        ``XGBClassifier`` numbers them.

    Returns
    -------
    xgboost.callback.TrainingCallback
        The callback. During the fit, ``xgboost.cv`` and the booster ``"dart"`` are refused, because they fit several
        models or change earlier trees.

    Examples
    --------
    >>> import xgboost
    >>> from sklearn.datasets import load_breast_cancer
    >>> from thresholdout import Claims, Thresholdout
    >>> from thresholdout.model_selection import GuardedStopping
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> guard = Thresholdout((X[300:], y[300:]), train=(X[:300], y[:300]), queries=50,
    ...                      mechanism=Claims(holdout_answers=5, noise=0.0))
    >>> stopping = GuardedStopping(guard, "accuracy", validation=range(200, 300))
    >>> model = xgboost.XGBClassifier(n_estimators=200, callbacks=[xgboost_callback(stopping)]).fit(X[:200], y[:200])
    >>> model.best_iteration == stopping.best_round, stopping.asked <= 6 < stopping.rounds < 200
    (True, True)
    """
    from xgboost import Booster, DMatrix
    from xgboost.callback import TrainingCallback

    labels = stopping.classes if classes is None else np.asarray(classes)

    class GuardedCallback(TrainingCallback):
        """Follows a `GuardedStopping`."""

        def __init__(self) -> None:
            super().__init__()
            self.stopping = stopping
            self._first = 0
            self._output = ""
            self._threads: int | None = None
            self._free: Any = None

        def before_training(self, model: Any) -> Any:
            if not isinstance(model, Booster):
                advice = "xgboost.cv fits several models."
                raise InputTypeError("callbacks", "a guard's callback in xgboost.cv", "used in xgboost.train", advice)
            if stopping.rounds:
                raise InputError("stopping", "the GuardedStopping of an earlier fit", "a new one for each fit")
            self._first = model.num_boosted_rounds()
            return model

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            if not self._output:
                self._output, self._threads = _configuration(model, stopping)
                self._free = DMatrix(stopping.free[0], nthread=self._threads)
            kind: Kind = "probabilities" if self._output == "probabilities" else "values"
            rounds, codes = model.num_boosted_rounds(), self._output == "codes"
            threads, free = self._threads, self._free

            def output(matrix: Any) -> Any:
                put_out = model.predict(matrix, iteration_range=(0, rounds))
                return labels[np.rint(put_out).astype(np.intp)] if codes else put_out

            # the free records are converted once; a kept predictor converts anew, so that it can be pickled
            now = predictor(lambda _: output(free), kind, labels)
            return stopping.update(
                now, keep=lambda _: predictor(lambda X: output(DMatrix(X, nthread=threads)), kind, labels)
            )

        def after_training(self, model: Any) -> Any:
            stopping.finish()
            if stopping.best_round is not None:
                score = stopping.best.value if stopping.best is not None else stopping.best_signal
                model.set_attr(best_iteration=str(self._first + stopping.best_round), best_score=str(score))
            return model

    return GuardedCallback()


def _configuration(model: Any, stopping: GuardedStopping) -> tuple[str, int | None]:
    """Return a booster's kind of output, from its objective, and its number of threads."""
    learner = json.loads(model.save_config())["learner"]
    if learner["gradient_booster"]["name"] == "dart":
        raise InputError("booster", "'dart', which changes earlier trees", "'gbtree' or 'gblinear'")
    name = learner["objective"]["name"]
    output = _OBJECTIVES.get(name, "values" if name.startswith("reg:") else None)
    check_objective(name, "probabilities" if output == "codes" else output, stopping.metric)
    threads = int(learner["generic_param"].get("nthread", 0))
    return str(output), threads if threads > 0 else None
