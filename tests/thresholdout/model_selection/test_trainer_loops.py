"""Hooks for training loops, in the libraries' own loops; test_trainer_hooks.py has the cases, against fakes."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from thresholdout import Thresholdout
from thresholdout.model_selection import (
    GuardedStopping,
    keras_callback,
    lightning_callback,
    transformers_callback,
)

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

X, Y = load_digits(return_X_y=True)
X = (X / 16.0).astype(np.float32)
FIT, VALID, HOLDOUT = slice(0, 700), slice(700, 1000), slice(1000, None)
EPOCHS = 30


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


def made(**settings: Any) -> GuardedStopping:
    guard = Thresholdout((X[HOLDOUT], Y[HOLDOUT]), train=(X[:1000], Y[:1000]), sampling="iid")
    return GuardedStopping(guard, "accuracy", validation=range(700, 1000), patience=2, key="fit", **settings)


def accuracy(told: Any, part: slice) -> float:
    return float(np.mean(np.asarray(told).argmax(1) == Y[part]))


def check(stopping: GuardedStopping, rounds: int, restored: Any) -> None:
    """Check that it stopped in time, asked about few epochs, and gave the network the weights of the best one."""
    assert stopping.stopped
    assert stopping.rounds == rounds < EPOCHS
    assert 1 <= stopping.asked <= 6
    assert stopping.asked == len(stopping.guard.history)
    assert stopping.best is stopping.answers[stopping.best_round or 0]
    signals = {evaluation.round: evaluation.signal for evaluation in stopping.evaluations}
    assert accuracy(restored, VALID) == pytest.approx(signals[stopping.best_round or 0])


def test_keras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    keras.utils.set_random_seed(0)
    stopping = made()
    network = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(10, activation="softmax")])
    network.compile(keras.optimizers.Adam(0.1), "sparse_categorical_crossentropy")
    slower = keras.callbacks.ReduceLROnPlateau(monitor="val_guarded", mode="max", patience=1)
    hooks = [keras_callback(stopping), slower]
    logs = network.fit(X[FIT], Y[FIT], epochs=EPOCHS, batch_size=64, verbose=0, callbacks=hooks).history
    check(stopping, len(logs["loss"]), network.predict(X[VALID], verbose=0))
    assert logs["val_guarded"][-1] in [answer.value for answer in stopping.answers.values()]


def test_lightning(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning", reason="Lightning is not installed")

    class Network(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(64, 10)

        def training_step(self, batch: Any, index: int) -> Any:
            return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

        def validation_step(self, batch: Any, index: int) -> None:
            pass

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), 0.1)

    def predict(module: Any, X: Any) -> Any:
        with torch.no_grad():
            return module.layer(torch.tensor(X)).softmax(1)

    stopping, network = made(), Network()
    records = torch.utils.data.TensorDataset(torch.tensor(X[FIT]), torch.tensor(Y[FIT]))
    stop = lightning.pytorch.callbacks.EarlyStopping("val_guarded", strict=False, mode="max", patience=EPOCHS)
    trainer = lightning.Trainer(
        max_epochs=EPOCHS,
        callbacks=[lightning_callback(stopping, predict=predict), stop],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=1,
        default_root_dir=tmp_path,
    )
    loader = torch.utils.data.DataLoader(records, 64, shuffle=True)
    trainer.fit(network, loader, torch.utils.data.DataLoader(records, 350))
    check(stopping, trainer.current_epoch, predict(network, X[VALID]))
    logged = float(trainer.callback_metrics["val_guarded"])
    assert any(logged == pytest.approx(answer.value) for answer in stopping.answers.values())


def test_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(64, 10)

        def forward(self, x: Any, labels: Any = None) -> dict[str, Any]:
            logits = self.layer(x)
            loss = {} if labels is None else {"loss": torch.nn.functional.cross_entropy(logits, labels)}
            return {**loss, "logits": logits}

    def predict(model: Any, X: Any) -> Any:
        with torch.no_grad():
            return model(torch.tensor(X))["logits"].softmax(1)

    rows = [{"x": X[k], "labels": int(Y[k])} for k in range(1000)]
    stopping = made()
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        num_train_epochs=EPOCHS,
        eval_strategy="epoch",
        save_strategy="no",
        logging_strategy="no",
        learning_rate=0.1,
        per_device_train_batch_size=64,
        label_names=["labels"],
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    seen: list[float] = []

    class Reading(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            seen.extend(value for name, value in more["metrics"].items() if name == "eval_guarded")

    sets = {"one": rows[VALID], "other": rows[VALID][:100]}  # two sets, and one look for each epoch
    hooks = [transformers_callback(stopping, predict=predict), Reading()]
    trainer = transformers.Trainer(Network(), arguments, train_dataset=rows[FIT], eval_dataset=sets, callbacks=hooks)
    trainer.train()
    check(stopping, round(trainer.state.epoch), predict(trainer.model, X[VALID]))
    assert seen
    assert set(seen) <= {answer.value for answer in stopping.answers.values()}
    trainer.evaluate()  # after training it looks no more
    assert stopping.rounds == round(trainer.state.epoch)
