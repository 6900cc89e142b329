"""Hooks for training loops, against fakes that keep the frameworks' documented contracts.

Keras: callbacks get `set_params` and `set_model`; `on_epoch_end(epoch, logs)` shares one dict of logs among all
callbacks, in their order; training ends after an epoch that set `model.stop_training`. Lightning: callbacks get every
hook by name with `(trainer, pl_module)`; a sanity check runs validation before training with `trainer.sanity_checking`;
validation runs in evaluation mode; `trainer.should_stop` ends the fit after the epoch; a metric is known by
`pl_module.log`; `EarlyStopping(check_finite=True)` stops at NaN.
"""

import math
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier, SGDRegressor

from tests.cases import for_each
from thresholdout import Claims, Thresholdout
from thresholdout.errors import GuardExhaustedWarning, InputError, InputTypeError
from thresholdout.model_selection import GuardedStopping, keras_callback, lightning_callback
from thresholdout.scoring.metrics import squared_error

pytestmark = pytest.mark.filterwarnings("ignore:a query cannot be identified by its content")  # pytest rewrites asserts

X, Y = load_digits(return_X_y=True)
X = X / 16.0
FIT, VALID = slice(0, 600), np.arange(600, 1000)


def make(y: Any = Y, **changes: object) -> Thresholdout:
    choices: dict[str, Any] = {"queries": 60, "mechanism": Claims(holdout_answers=5), **changes}
    return Thresholdout((X[1000:], y[1000:]), train=(X[:1000], y[:1000]), **choices)


def softmax(scores: Any) -> Any:
    """Normalise raw scores to probabilities."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


class Network:
    """One linear layer; what both fakes train."""

    def __init__(self, y: Any = Y) -> None:
        self.y = y
        self.inner: Any = SGDRegressor(random_state=0) if y.dtype.kind == "f" else None
        self.inner = self.inner or SGDClassifier(loss="log_loss", random_state=0, alpha=0.01)
        self.epoch()
        self.inner.coef_ *= 0

    def epoch(self) -> None:
        """Train one epoch."""
        more = {} if self.y.dtype.kind == "f" else {"classes": np.unique(self.y)}
        self.inner.partial_fit(X[FIT], self.y[FIT], **more)

    def output(self, X: Any) -> Any:
        """Return probabilities, or numbers in one column."""
        if self.y.dtype.kind == "f":
            return self.inner.predict(X)[:, None]
        return softmax(self.inner.decision_function(X))


class KerasModel(Network):
    """Keras' `Model` as far as callbacks see it."""

    stop_training = False

    def get_weights(self) -> list[Any]:
        return [self.inner.coef_.copy(), self.inner.intercept_.copy()]

    def set_weights(self, weights: list[Any]) -> None:
        self.inner.coef_, self.inner.intercept_ = (piece.copy() for piece in weights)

    def predict(self, X: Any, verbose: Any = "auto") -> Any:
        assert verbose == 0
        return self.output(X)

    def fit(self, epochs: int, callbacks: list[Any]) -> list[dict[str, float]]:
        """Train as `Model.fit` does, and return the logs."""
        self.stop_training = False
        for callback in callbacks:
            callback.set_params({"epochs": epochs})
            callback.set_model(self)
        for callback in callbacks:
            callback.on_train_begin({})
        history = []
        for number in range(epochs):
            self.epoch()
            logs = {"loss": 1.0 / (number + 1)}
            for callback in callbacks:
                callback.on_epoch_end(number, logs)
            history.append(logs)
            if self.stop_training:
                break
        for callback in callbacks:
            callback.on_train_end({})
        return history


class Module(Network):
    """Lightning's `LightningModule` as far as callbacks see it."""

    training = True

    def __init__(self, y: Any = Y) -> None:
        super().__init__(y)
        self.logged: list[tuple[str, float]] = []

    def eval(self) -> None:
        self.training = False

    def train(self, mode: bool = True) -> None:
        self.training = mode

    def state_dict(self) -> dict[str, Any]:
        return {"weight": self.inner.coef_, "bias": self.inner.intercept_}  # references, as in PyTorch

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.inner.coef_[...] = state["weight"]
        self.inner.intercept_[...] = state["bias"]

    def log(self, name: str, value: float) -> None:
        self.logged.append((name, value))


class Trainer:
    """Lightning's `Trainer` as far as callbacks see it."""

    def __init__(self, max_epochs: int, callbacks: list[Any], monitor: str | None = None) -> None:
        self.max_epochs = max_epochs
        self.callbacks = callbacks
        self.monitor = monitor
        self.should_stop = False
        self.sanity_checking = False

    def fit(self, module: Module) -> None:
        """Train, with a sanity check first."""
        self._call("on_fit_start", module)
        self.sanity_checking = True
        self._validate(module)
        self.sanity_checking = False
        for _ in range(self.max_epochs):
            module.epoch()
            self._validate(module)
            seen = [value for name, value in module.logged if name == self.monitor]
            if self.should_stop or (seen and not math.isfinite(seen[-1])):  # EarlyStopping(check_finite=True)
                break
        module.train()
        self._call("on_train_end", module)

    def _validate(self, module: Module) -> None:
        module.eval()
        self._call("on_validation_epoch_end", module)
        module.train()

    def _call(self, hook: str, module: Module) -> None:
        for callback in self.callbacks:
            getattr(callback, hook)(self, module)


def by_output(module: Module, X: Any) -> Any:
    assert not module.training
    return module.output(X)


def reference(epochs: int) -> list[float]:
    """Return validation accuracies epoch by epoch, computed on their own."""
    network = Network()
    scores = []
    for _ in range(epochs):
        network.epoch()
        scores.append(float(np.mean(network.output(X[VALID]).argmax(axis=1) == Y[VALID])))
    return scores


def weights_after(epochs: int) -> Any:
    network = Network()
    for _ in range(epochs):
        network.epoch()
    return network.inner.coef_


Fit = Callable[[GuardedStopping, int], tuple[Network, int]]


def keras_fit(stopping: GuardedStopping, epochs: int) -> tuple[Network, int]:
    model = KerasModel()
    return model, len(model.fit(epochs, [keras_callback(stopping)]))


def lightning_fit(stopping: GuardedStopping, epochs: int) -> tuple[Network, int]:
    module = Module()
    Trainer(epochs, [lightning_callback(stopping, predict=by_output)]).fit(module)
    return module, stopping.rounds


@pytest.mark.slow
@for_each("fit", [keras_fit, lightning_fit])
def test_training_stops_and_the_chosen_epoch_is_restored(fit: Fit) -> None:
    guard = make()
    stopping = GuardedStopping(guard, "accuracy", validation=VALID, patience=4)
    network, epochs = fit(stopping, 100)
    scores = reference(epochs)
    assert [evaluation.signal for evaluation in stopping.evaluations] == pytest.approx(scores)
    assert epochs == int(np.argmax(scores)) + 1 + 4
    assert stopping.asked == len(guard.history) <= 6
    assert stopping.best_round is not None
    assert np.array_equal(network.inner.coef_, weights_after(stopping.best_round + 1))
    assert stopping.best is not None
    truth = float(np.mean(network.output(X[1000:]).argmax(axis=1) == Y[1000:]))
    assert abs(truth - stopping.best.value) <= stopping.best.half_width


@pytest.mark.slow
@for_each("fit", [keras_fit, lightning_fit])
def test_a_fit_that_ends_by_itself_asks_about_its_best_epoch(fit: Fit) -> None:
    stopping = GuardedStopping(make(), "accuracy", validation=VALID, patience=50, queries=1)
    network, _ = fit(stopping, 7)
    best = int(np.argmax(reference(7)))
    assert list(stopping.answers) == [best]
    assert np.array_equal(network.inner.coef_, weights_after(best + 1))


def test_a_query_about_an_earlier_epoch_leaves_the_present_weights() -> None:
    stopping = GuardedStopping(make(), "accuracy", validation=VALID, patience=4, queries=1)
    module = Module()
    Trainer(50, [lightning_callback(stopping, predict=by_output, restore=False)]).fit(module)
    assert list(stopping.answers) == [stopping.rounds - 5]
    assert np.array_equal(module.inner.coef_, weights_after(stopping.rounds))


@for_each("fit", [keras_fit, lightning_fit])
def test_one_callback_serves_one_fit(fit: Fit) -> None:
    stopping = GuardedStopping(make(), "accuracy", validation=VALID, queries=1)
    fit(stopping, 2)
    with pytest.raises(InputError, match="a new one for each fit"):
        fit(stopping, 2)


def test_keras_logs_are_there_for_later_callbacks() -> None:
    seen = []

    class Later:
        def __getattr__(self, _: str) -> Any:
            return lambda *_: None

        def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
            seen.append(logs["val_guarded"])

    stopping = GuardedStopping(make(), "accuracy", validation=VALID, ask="rounds", every=2, patience=50)
    logs = KerasModel().fit(6, [keras_callback(stopping), Later()])
    assert seen == [stopping.answers[k - k % 2].value for k in range(6)]
    assert [log["val_guarded"] for log in logs] == seen


def test_lightning_logs_answers_only() -> None:
    stopping = GuardedStopping(make(), "accuracy", validation=VALID, ask="rounds", patience=50)
    module = Module()
    Trainer(3, [lightning_callback(stopping, predict=by_output, name="guarded", restore=False)]).fit(module)
    assert module.logged == [("guarded", stopping.answers[k].value) for k in range(3)]
    assert np.array_equal(module.inner.coef_, weights_after(3))
    assert module.training


def test_nan_at_exhaustion_stops_a_finite_check() -> None:
    stopping = GuardedStopping(
        make(queries=2), "accuracy", validation=VALID, ask="rounds", exhausted="nan", patience=50
    )
    module = Module()
    with pytest.warns(GuardExhaustedWarning):
        Trainer(20, [lightning_callback(stopping, predict=by_output)], "val_guarded").fit(module)
    assert [math.isnan(value) for _, value in module.logged] == [False, False, True]
    assert (stopping.rounds, stopping.replaced, stopping.exhausted) == (3, 1, "queries")


@pytest.mark.slow
@for_each("fit", [keras_fit, lightning_fit])
def test_stop_at_exhaustion_ends_the_fit_with_what_it_has(fit: Fit) -> None:
    stopping = GuardedStopping(make(queries=2), "accuracy", validation=VALID, ask="rounds", exhausted="stop")
    with pytest.warns(GuardExhaustedWarning):
        network, epochs = fit(stopping, 20)
    assert epochs == 3
    assert stopping.best_round in (0, 1)
    assert np.array_equal(network.inner.coef_, weights_after((stopping.best_round or 0) + 1))


def test_sigmoid_outputs_and_texts_as_labels() -> None:
    named = np.where(Y < 5, "low", "high")
    guard = make(named)
    model = KerasModel(named)
    stopping = GuardedStopping(guard, "log_loss", validation=VALID, patience=3)
    callback = keras_callback(stopping, predict=lambda model, X: model.output_of_low(X))
    model.output_of_low = lambda X: 1 / (1 + np.exp(-model.inner.decision_function(X)))[:, None]  # type: ignore[attr-defined]
    model.output = lambda X: None  # type: ignore[method-assign]
    model.fit(5, [callback])
    assert set(stopping.best_model.predict(X[:50])) == {"low", "high"}


def test_regression() -> None:
    target = Y.astype(float)
    stopping = GuardedStopping(make(target), squared_error(81.0), validation=VALID, patience=3)
    model = KerasModel(target)
    model.fit(30, [keras_callback(stopping)])
    assert stopping.best is not None
    truth = float(np.mean(np.minimum((model.inner.predict(X[1000:]) - target[1000:]) ** 2, 81.0)))
    assert abs(truth - stopping.best.value) <= stopping.best.half_width


def test_logits_are_refused() -> None:
    guard = make()
    callback = keras_callback(GuardedStopping(guard), predict=lambda model, X: model.inner.decision_function(X))
    with pytest.raises(InputError, match="raw scores"):
        KerasModel().fit(2, [callback])
    assert guard.history.empty


def test_tensors_are_taken_off_the_graph() -> None:
    class Tensor:
        def __init__(self, values: Any) -> None:
            self.values = values

        def detach(self) -> "Tensor":
            return Tensor(self.values)

        def cpu(self) -> Any:
            return self.values

    stopping = GuardedStopping(make(), "accuracy", validation=VALID, queries=1)
    predict = lambda module, X: Tensor(module.output(X))  # noqa: E731
    Trainer(2, [lightning_callback(stopping, predict=predict)]).fit(Module())
    assert [evaluation.signal for evaluation in stopping.evaluations] == pytest.approx(reference(2))


@for_each("module", ["keras.callbacks", "lightning.pytorch.callbacks", "pytorch_lightning.callbacks"])
def test_where_the_framework_is_loaded_it_is_a_callback_of_its_class(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Callback:
        """Keras and Lightning demand their own class; Keras gives the model by a property."""

        def __init__(self) -> None:
            self._model: Any = None

        def set_model(self, model: Any) -> None:
            self._model = model

        def set_params(self, params: Any) -> None:
            pass

        @property
        def model(self) -> Any:
            return self._model

    fake = types.ModuleType(module)
    fake.Callback = Callback  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module, fake)
    stopping = GuardedStopping(make(), "accuracy", validation=VALID, queries=1)
    if module.startswith("keras"):
        callback = keras_callback(stopping)
        KerasModel().fit(2, [callback])
    else:
        callback = lightning_callback(stopping, predict=by_output)
        Trainer(2, [callback]).fit(Module())
    assert isinstance(callback, Callback)
    assert stopping.asked == 1


def test_arguments_are_checked() -> None:
    stopping = GuardedStopping(make())
    with pytest.raises(InputTypeError, match=r"predict must be .*; got a str"):
        keras_callback(stopping, predict="predict")  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match=r"predict must be .*; got a NoneType"):
        lightning_callback(stopping, predict=None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"kind must be .*; got 'logits'"):
        keras_callback(stopping, kind="logits")  # type: ignore[arg-type]


def test_importing_the_hooks_loads_no_framework() -> None:
    import subprocess

    code = (
        "import sys, thresholdout.model_selection as m\n"
        "print(sorted({'optuna', 'lightgbm', 'xgboost', 'keras', 'lightning', 'torch', 'sklearn'} & set(sys.modules)))"
    )
    with warnings.catch_warnings():
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
