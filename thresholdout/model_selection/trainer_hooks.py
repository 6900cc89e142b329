"""Guards in the training loops of Keras, Lightning and transformers; none is loaded, nor needs to be installed.

The callbacks follow a `GuardedStopping`; a loop of one's own calls that directly. Where the framework is loaded they
are callbacks of its class, as its trainers demand; otherwise they are plain objects with the same methods, for whatever
calls these.
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
    """Return a callback for ``model.fit(callbacks=[...])`` of Keras.

    At the end of every epoch it looks at the model, writes ``logs[name]``, and sets ``model.stop_training`` when it is
    time. Place it before callbacks that read ``logs[name]``.

    Parameters
    ----------
    stopping : GuardedStopping
        What to follow, and when to ask. One for each fit.
    predict : callable, optional
        ``predict(model, X)``; ``model.predict(X, verbose=0)`` by default.
    kind : {"probabilities", "values"}, optional
        What `predict` returns: probabilities by default for metrics of classes, else the predicted numbers.
    classes : array-like, optional
        The labels that the columns of probabilities stand for; by default those of the guard's training part, sorted.
    name : str, default="val_guarded"
        Where the last answer goes. Until there is one, and for epochs between queries, it is the last answer known,
        or NaN; with ``exhausted="train"`` the signal that stands in.
    restore : bool, default=True
        Give the model the weights of the chosen epoch when training ends. The weights of at most two epochs are kept.

    Returns
    -------
    keras.callbacks.Callback
        Or a plain object with its methods, where Keras is not loaded.

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
    """Return a callback for ``Trainer(callbacks=[...])`` of Lightning.

    At the end of every validation epoch it looks at the module, logs the last answer by ``pl_module.log(name, ...)``,
    and sets ``trainer.should_stop`` when it is time. Sanity checks before the training do not count.

    Parameters
    ----------
    stopping : GuardedStopping
        What to follow, and when to ask. One for each fit.
    predict : callable
        ``predict(pl_module, X)``: a tensor or an array. The module is in evaluation mode.
    kind, classes : optional
        As in `keras_callback`.
    name : str, default="val_guarded"
        What the last answer is logged as, from the first one on; an ``EarlyStopping(monitor=name)`` beside this
        callback needs ``strict=False`` until then. When the guard answers no more and ``exhausted="nan"``, NaN is
        logged, which ``check_finite=True`` takes as a reason to stop.
    restore : bool, default=True
        Give the module the weights of the chosen epoch when training ends.

    Returns
    -------
    lightning.pytorch.callbacks.Callback
        Or a plain object with its methods, where Lightning is not loaded.

    Notes
    -----
    With replicas in several processes give ``GuardedStopping(key=...)``: each then gets the same answers, and they are
    charged once.

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
    """Return a callback for ``Trainer(callbacks=[...])`` of Hugging Face's transformers.

    After every evaluation in the course of training it looks at the model, writes ``metrics[name]``, and ends training
    when it is time. The Trainer evaluates its own data, which should be free records; those of the holdout do not pass
    through it.

    Parameters
    ----------
    stopping : GuardedStopping
        What to follow, and when to ask. One for each training.
    predict : callable
        ``predict(model, X)``: a tensor or an array. The model is in evaluation mode.
    kind, classes : optional
        As in `keras_callback`.
    name : str, default="eval_guarded"
        Where the last answer goes, from the first one on, after the Trainer has logged its metrics; usable as
        ``metric_for_best_model`` with ``ask="rounds"``, which answers from the first evaluation on.
    restore : bool, default=True
        Give the model the weights of the chosen evaluation when training ends.

    Returns
    -------
    transformers.TrainerCallback
        Or a plain object with its methods, where the Trainer is not loaded.

    Notes
    -----
    With several evaluation sets the first one of each step counts. With replicas in several processes see
    `lightning_callback`. `thresholdout.integrations.transformers_hooks.GuardedMetrics` judges models by a gate, from
    predictions that the Trainer makes.

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
    """What Keras calls."""

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
        """Look at the model, and say in the logs what is known."""
        stopped = self._view.update(self.model, self.model.get_weights, self.model.set_weights)
        if logs is not None:
            logs[self._name] = self.stopping.last_value
        if stopped:
            self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        """Ask the last query, and restore the chosen epoch."""
        self._view.finish(self.model.set_weights if self._restore else None)


class _PlainKeras:
    """How Keras hands a model to its callbacks."""

    model: Any = None
    params: Any = None

    def set_params(self, params: Any) -> None:
        """Take the parameters of the fit."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Take the model."""
        self.model = model


class _LightningHooks:
    """What Lightning calls."""

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
        """Look at the module, and log what is known."""
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
        """Ask the last query, and restore the chosen epoch."""
        self._view.finish(pl_module.load_state_dict if self._restore else None)


class _TransformersHooks:
    """What the Trainer calls."""

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
        """Look at the model, and say in the metrics what is known."""
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
        """Ask the last query, and restore the chosen evaluation."""
        self._training = False
        self._view.finish(more["model"].load_state_dict if self._restore else None)


class _PlainTrainer:
    """What the Trainer calls beside that; it calls all of its events by name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda args, state, control, **more: None
        raise AttributeError(name)


class _View:
    """A network as an estimator; earlier epochs are kept as weights, and loaded for the time of a query."""

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
            raise InputError("stopping", "a GuardedStopping of an earlier fit", "a new one for each fit")

    def update(self, model: Any, get: Callable[[], Any], put: Callable[[Any], Any]) -> bool:
        """Look at the present model, and say whether to stop."""

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
        """Ask the last query, and load the weights of the chosen epoch if wanted."""
        self._stopping.finish()
        best = self._stopping.best_model
        if put is not None and best is not None:
            put(best.state)


def _keras_predict(model: Any, X: Any) -> Any:
    return model.predict(X, verbose=0)


def _in_evaluation(predict: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function that predicts in evaluation mode, and leaves the module in the mode it was in."""
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
