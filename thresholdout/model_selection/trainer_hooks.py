"""Guards in the training loops of Keras, Lightning and transformers; none is loaded, nor needs to be installed.

The callbacks follow a `GuardedStopping`, which your own loop calls directly. If the framework is loaded they belong to
its callback class, as its trainers demand; otherwise they are plain objects with the same methods.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.model_selection.guarded_stopping import GuardedStopping
from thresholdout.model_selection.predicting_functions import Kind, check_kind, predictor
from thresholdout.scoring.fitted_models import classifies

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["keras_callback", "lightning_callback", "transformers_callback"]


def keras_callback(
    stopping: GuardedStopping,
    *,
    predict: Callable[[Any, Any], Any] | None = None,
    kind: Kind | None = None,
    classes: ArrayLike | None = None,
    name: str = "val_guarded",
    restore: bool = True,
) -> Any:
    """Return a Keras callback that stops training early by a `GuardedStopping`.

    Pass it in ``model.fit(callbacks=[...])``. At the end of every epoch it evaluates the model on the records of the
    free signal, queries the guard if needed, writes the last answer to ``logs[name]``, and sets ``model.stop_training``
    if the rule stops. Place it before callbacks that read ``logs[name]``.

    Parameters
    ----------
    stopping : GuardedStopping
        The stopping rule with its guard. Each fit needs a new one.
    predict : callable, optional
        Function ``predict(model, X)`` that returns the model's output as an array. If None, ``model.predict(X,
        verbose=0)``.
    kind : {"probabilities", "values"}, optional
        Output of `predict`. "probabilities" of all classes, or of the second of two classes. "values" are predicted
        labels or numbers. If None, "probabilities" for metrics of classes, otherwise "values".
    classes : array-like, optional
        Labels of the columns of probabilities. If None, the sorted labels of the guard's training part.
    name : str, default "val_guarded"
        Name of the last answer in the logs. Epochs between queries repeat it, and it is NaN before the first query. If
        the guard is exhausted and ``exhausted="train"``, the signal replaces it.
    restore : bool, default True
        Whether the model gets the weights of the chosen epoch when training ends. The weights of at most two epochs are
        kept in memory.

    Returns
    -------
    keras.callbacks.Callback
        The callback, or a plain object with the same methods if Keras is not loaded.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Thresholdout
    >>> from thresholdout.model_selection import GuardedStopping
    >>> X, y = np.arange(4000.0).reshape(2000, 2), np.arange(2000) % 2
    >>> guard = Thresholdout((X[1000:], y[1000:]), train=(X[:1000], y[:1000]))
    >>> stopping = GuardedStopping(guard, "accuracy", validation=range(700, 1000))
    >>> hook = keras_callback(stopping)

    With a model of Keras: ``model.fit(X[:700], y[:700], epochs=100, callbacks=[hook])``, and then `stopping.best`.
    """
    if predict is not None and not callable(predict):
        raise InputTypeError("predict", f"a {type(predict).__name__}", "a function predict(model, X)")
    view = _View(stopping, predict or _keras_predict, kind, classes)

    return _made(_KerasHooks, _PlainKeras, "keras.callbacks")(stopping, view, name, restore)


def lightning_callback(
    stopping: GuardedStopping,
    *,
    predict: Callable[[Any, Any], Any],
    kind: Kind | None = None,
    classes: ArrayLike | None = None,
    name: str = "val_guarded",
    restore: bool = True,
) -> Any:
    """Return a Lightning callback that stops training early by a `GuardedStopping`.

    Pass it in ``Trainer(callbacks=[...])``. At the end of every validation epoch it evaluates the module on the records
    of the free signal, queries the guard if needed, logs the last answer by ``pl_module.log(name, ...)``, and sets
    ``trainer.should_stop`` if the rule stops. Sanity checks before training are ignored.

    Parameters
    ----------
    stopping : GuardedStopping
        The stopping rule with its guard. Each fit needs a new one.
    predict : callable
        Function ``predict(pl_module, X)`` that returns the output as a tensor or an array. The module is in evaluation
        mode.
    kind : {"probabilities", "values"}, optional
        Output of `predict`. "probabilities" of all classes, or of the second of two classes. "values" are predicted
        labels or numbers. If None, "probabilities" for metrics of classes, otherwise "values".
    classes : array-like, optional
        Labels of the columns of probabilities. If None, the sorted labels of the guard's training part.
    name : str, default "val_guarded"
        Name of the last answer in the log, from the first answer on. An ``EarlyStopping(monitor=name)`` beside this
        callback needs ``strict=False`` until then. If the guard is exhausted and ``exhausted="nan"``, NaN is logged, at
        which ``check_finite=True`` stops.
    restore : bool, default True
        Whether the module gets the weights of the chosen epoch when training ends.

    Returns
    -------
    lightning.pytorch.callbacks.Callback
        The callback, or a plain object with the same methods if Lightning is not loaded.

    Notes
    -----
    For replicas in several processes pass ``GuardedStopping(key=...)``. All replicas then receive the same answers,
    which are charged once.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Thresholdout
    >>> from thresholdout.model_selection import GuardedStopping
    >>> X, y = np.arange(4000.0).reshape(2000, 2), np.arange(2000) % 2
    >>> guard = Thresholdout((X[1000:], y[1000:]), train=(X[:1000], y[:1000]))
    >>> stopping = GuardedStopping(guard, "accuracy", validation=range(700, 1000))
    >>> hook = lightning_callback(stopping, predict=lambda module, X: module(torch.as_tensor(X)).softmax(1))

    With Lightning: ``Trainer(callbacks=[hook]).fit(module, loader, validation_loader)``, and then `stopping.best`.
    """
    view = _View(stopping, _in_evaluation(predict), kind, classes)

    base = ("lightning.pytorch.callbacks", "pytorch_lightning.callbacks")
    return _made(_LightningHooks, object, *base)(stopping, view, name, restore)


def transformers_callback(
    stopping: GuardedStopping,
    *,
    predict: Callable[[Any, Any], Any],
    kind: Kind | None = None,
    classes: ArrayLike | None = None,
    name: str = "eval_guarded",
    restore: bool = True,
) -> Any:
    """Return a callback for the Trainer of transformers that stops training early by a `GuardedStopping`.

    Pass it in ``Trainer(callbacks=[...])``. After every evaluation during training it evaluates the model on the
    records of the free signal, queries the guard if needed, writes the last answer to ``metrics[name]``, and ends
    training if the rule stops. The Trainer evaluates its own data, which should not be holdout records. The holdout
    does not pass through the Trainer.

    Parameters
    ----------
    stopping : GuardedStopping
        The stopping rule with its guard. Each training needs a new one.
    predict : callable
        Function ``predict(model, X)`` that returns the output as a tensor or an array. The model is in evaluation mode.
    kind : {"probabilities", "values"}, optional
        Output of `predict`. "probabilities" of all classes, or of the second of two classes. "values" are predicted
        labels or numbers. If None, "probabilities" for metrics of classes, otherwise "values".
    classes : array-like, optional
        Labels of the columns of probabilities. If None, the sorted labels of the guard's training part.
    name : str, default "eval_guarded"
        Name of the last answer in the metrics, from the first answer on, added after the Trainer has logged them. It is
        usable as ``metric_for_best_model`` with ``ask="rounds"``, which has an answer from the first evaluation on.
    restore : bool, default True
        Whether the model gets the weights of the chosen evaluation when training ends.

    Returns
    -------
    transformers.TrainerCallback
        The callback, or a plain object with the same methods if the Trainer is not loaded.

    Notes
    -----
    With several evaluation sets the first one of each step is used. For replicas in several processes pass
    ``GuardedStopping(key=...)``, as for `lightning_callback`. To judge models by a gate, from predictions that the
    Trainer makes, see `thresholdout.integrations.transformers_hooks.GuardedMetrics`.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Thresholdout
    >>> from thresholdout.model_selection import GuardedStopping
    >>> X, y = np.arange(4000.0).reshape(2000, 2), np.arange(2000) % 2
    >>> guard = Thresholdout((X[1000:], y[1000:]), train=(X[:1000], y[:1000]))
    >>> stopping = GuardedStopping(guard, "accuracy", validation=range(700, 1000))
    >>> hook = transformers_callback(stopping, predict=lambda model, X: model(torch.as_tensor(X)).logits.softmax(1))

    With transformers: ``Trainer(model, arguments, callbacks=[hook], ...).train()``, and then `stopping.best`.
    """
    view = _View(stopping, _in_evaluation(predict), kind, classes)
    return _made(_TransformersHooks, _PlainTrainer, "transformers.trainer_callback")(stopping, view, name, restore)


class _KerasHooks:
    """Methods that Keras calls."""

    model: Any

    def __init__(self, stopping: GuardedStopping, view: _View, name: str, restore: bool) -> None:
        super().__init__()
        self.stopping = stopping
        self._view = view
        self._name = name
        self._restore = restore

    def on_train_begin(self, logs: Any = None) -> None:
        """Refuse a second fit."""
        self._view.check_fresh()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Evaluate the model, and write the last answer to the logs."""
        stopped = self._view.update(self.model, self.model.get_weights, self.model.set_weights)
        if logs is not None:
            logs[self._name] = self.stopping.last_value
        if stopped:
            self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        """Make the last query, and restore the chosen epoch."""
        self._view.finish(self.model.set_weights if self._restore else None)


class _PlainKeras:
    """Methods with which Keras gives a model to its callbacks."""

    model: Any = None
    params: Any = None

    def set_params(self, params: Any) -> None:
        """Take the parameters of the fit."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Take the model."""
        self.model = model


class _LightningHooks:
    """Methods that Lightning calls."""

    def __init__(self, stopping: GuardedStopping, view: _View, name: str, restore: bool) -> None:
        super().__init__()
        self.stopping = stopping
        self._view = view
        self._name = name
        self._restore = restore

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Refuse a second fit."""
        self._view.check_fresh()

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Evaluate the module, and log the last answer."""
        if trainer.sanity_checking or self.stopping.stopped:
            return

        def weights() -> Any:
            return copy.deepcopy(pl_module.state_dict())

        stopped = self._view.update(pl_module, weights, pl_module.load_state_dict)
        if self.stopping.answers or self.stopping.replaced:
            pl_module.log(self._name, self.stopping.last_value)
        if stopped:
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Make the last query, and restore the chosen epoch."""
        self._view.finish(pl_module.load_state_dict if self._restore else None)


class _TransformersHooks:
    """Methods that the Trainer calls."""

    def __init__(self, stopping: GuardedStopping, view: _View, name: str, restore: bool) -> None:
        super().__init__()
        self.stopping = stopping
        self._view = view
        self._name = name
        self._restore = restore
        self._step: int | None = None
        self._training = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Refuse a second training."""
        self._view.check_fresh()
        self._training = True

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Evaluate the model, and write the last answer to the metrics."""
        if not self._training or self.stopping.stopped or state.global_step == self._step:
            return
        self._step, model = state.global_step, more["model"]

        def weights() -> Any:
            return copy.deepcopy(model.state_dict())

        stopped = self._view.update(model, weights, model.load_state_dict)
        if self.stopping.answers or self.stopping.replaced:
            more["metrics"][self._name] = self.stopping.last_value
        if stopped:
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Make the last query, and restore the chosen evaluation."""
        self._training = False
        self._view.finish(more["model"].load_state_dict if self._restore else None)


class _PlainTrainer:
    """Empty methods for the Trainer's other events, which it calls by name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda args, state, control, **more: None
        raise AttributeError(name)


class _View:
    """A network as an estimator; earlier epochs are kept as weights, and loaded for a query."""

    def __init__(
        self,
        stopping: GuardedStopping,
        predict: Callable[[Any, Any], Any],
        kind: Kind | None,
        classes: ArrayLike | None,
    ) -> None:
        chosen = check_kind(kind) if kind is not None else "probabilities" if classifies(stopping.metric) else "values"
        self._stopping = stopping
        self._predict = predict
        self._kind: Kind = chosen
        self._classes = stopping.classes if classes is None else np.asarray(classes)

    def check_fresh(self) -> None:
        """Refuse a second fit."""
        if self._stopping.rounds:
            raise InputError("stopping", "the GuardedStopping of an earlier fit", "a new one for each fit")

    def update(self, model: Any, get: Callable[[], Any], put: Callable[[Any], Any]) -> bool:
        """Evaluate the present model, and return whether to stop."""

        def keep(_: Any) -> Any:
            weights = get()

            def predict(X: Any) -> Any:
                present = get()
                put(weights)
                try:
                    return self._predict(model, X)
                finally:
                    put(present)

            return predictor(predict, self._kind, self._classes, weights)

        present = predictor(lambda X: self._predict(model, X), self._kind, self._classes)
        return self._stopping.update(present, keep=keep)

    def finish(self, put: Callable[[Any], Any] | None) -> None:
        """Make the last query, and load the weights of the chosen epoch on request."""
        self._stopping.finish()
        best = self._stopping.best_model
        if put is not None and best is not None:
            put(best.state)


def _keras_predict(model: Any, X: Any) -> Any:
    return model.predict(X, verbose=0)


def _in_evaluation(predict: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function that predicts in evaluation mode, and restores the module's mode."""
    if not callable(predict):
        raise InputTypeError("predict", f"a {type(predict).__name__}", "a function predict(pl_module, X)")

    def predicted(module: Any, X: Any) -> Any:
        training = module.training
        module.eval()
        try:
            return predict(module, X)
        finally:
            module.train(training)

    return predicted


def _made(hooks: type, plain: type, *modules: str) -> Any:
    """Return a class with these hooks that is a framework's callback, where the framework is loaded."""
    found = [sys.modules[name] for name in modules if name in sys.modules]
    loaded = [getattr(module, "TrainerCallback", None) or module.Callback for module in found]
    return type(hooks.__name__.strip("_"), (hooks, loaded[0] if loaded else plain), {})
