"""Verdicts in the Trainer of transformers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.thresholdout.integrations.digits import X, Y
from thresholdout import Thresholdout
from thresholdout.errors import InputError
from thresholdout.integrations import GuardedModels
from thresholdout.integrations.transformers_hooks import GuardedMetrics

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

ROWS = [{"x": X[k], "labels": int(Y[k])} for k in range(len(Y))]
FIT, VALID, HOLDOUT = slice(0, 700), slice(700, 1000), slice(1000, None)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network() -> Any:
    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(64, 10)

        def forward(self, x: Any, labels: Any = None) -> dict[str, Any]:
            logits = self.layer(x)
            loss = {} if labels is None else {"loss": torch.nn.functional.cross_entropy(logits, labels)}
            return {**loss, "logits": logits}

    return Network()


def guard(**declared: Any) -> Thresholdout:
    return Thresholdout((X[HOLDOUT], Y[HOLDOUT]), train=(X[VALID], Y[VALID]), sampling="iid", **declared)


def trainer(metrics: GuardedMetrics, folder: Path, sets: Any = None, callbacks: Any = (), **settings: Any) -> Any:
    chosen = {
        "num_train_epochs": 6,
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "logging_strategy": "no",
        "learning_rate": 0.03,
        "per_device_train_batch_size": 64,
        "per_device_eval_batch_size": 64,
        "label_names": ["labels"],
        **settings,
    }
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), report_to=[], disable_tqdm=True, use_cpu=True, **chosen
    )
    sets = sets or {"free": metrics.free(ROWS[VALID]), "holdout": metrics.holdout(ROWS[HOLDOUT])}
    return transformers.Trainer(
        network(),
        arguments,
        train_dataset=ROWS[FIT],
        eval_dataset=sets,
        compute_metrics=metrics,
        callbacks=list(callbacks),
    )


def accuracy(model: Any, part: slice) -> float:
    with torch.no_grad():
        told = model(torch.as_tensor(X[part]))["logits"].argmax(1).numpy()
    return float(np.mean(told == Y[part]))


def test_the_best_checkpoint_is_the_champion(tmp_path: Path) -> None:
    metrics = GuardedMetrics(GuardedModels(guard()))
    best = {"metric_for_best_model": "eval_holdout_score", "greater_is_better": True, "load_best_model_at_end": True}
    stop = transformers.EarlyStoppingCallback(2)
    run = trainer(metrics, tmp_path, callbacks=[stop], **best)
    run.train()
    history = [log for log in run.state.log_history if "eval_holdout_score" in log]
    free = [log["eval_free_accuracy"] for log in run.state.log_history if "eval_free_accuracy" in log]
    places = [log["eval_holdout_score"] for log in history if log["eval_holdout_kept"]]
    assert places == [k / (k + 1) for k in range(1, len(places) + 1)]
    assert len(places) >= 2
    assert [log["eval_holdout_certified"] for log in history if log["eval_holdout_kept"]] == [
        0.0,
        *[1.0] * (len(places) - 1),
    ]
    chosen = [log["eval_holdout_score"] for log in history].index(places[-1])
    assert accuracy(run.model, VALID) == pytest.approx(free[chosen])
    assert all(np.isnan(log["eval_holdout_loss"]) for log in history)


def test_no_label_of_the_holdout_goes_through_the_trainer(tmp_path: Path) -> None:
    metrics = GuardedMetrics(GuardedModels(guard()))
    rows = metrics.holdout(ROWS[HOLDOUT])
    assert {row["labels"] for row in (rows[k] for k in range(len(rows)))} == {-100}
    with pytest.raises(IndexError):
        rows[len(rows)]


def test_the_order_in_which_sets_are_read_makes_no_difference(tmp_path: Path) -> None:
    """A sampler of one's own permutes both sets, as grouping by length does."""
    told = []
    for permuted in (False, True):
        models = GuardedModels(guard())
        metrics = GuardedMetrics(models)
        run = trainer(metrics, tmp_path, num_train_epochs=2)
        if permuted:
            run._get_eval_sampler = lambda rows: np.random.default_rng(len(rows)).permutation(len(rows)).tolist()
        found = [run.evaluate()]
        run.train()
        found.append(run.evaluate())
        told.append([(one["eval_free_accuracy"], one["eval_holdout_kept"]) for one in found])
        assert found[0]["eval_free_accuracy"] == pytest.approx(accuracy(network(), VALID))
    assert told[0] == told[1]


def test_parts_and_other_sets_are_refused(tmp_path: Path) -> None:
    models = GuardedModels(guard())
    metrics = GuardedMetrics(models)
    for part, rows in ((metrics.free, ROWS[FIT]), (metrics.holdout, ROWS[HOLDOUT][:-1])):
        with pytest.raises(InputError, match="dataset"):
            part(rows)
    with pytest.raises(InputError, match="another set"):
        trainer(metrics, tmp_path).evaluate(ROWS[VALID])
    with pytest.raises(InputError, match="free set before"):
        trainer(metrics, tmp_path, {"holdout": metrics.holdout(ROWS[HOLDOUT])}).evaluate()
    shuffled = metrics.free(ROWS[VALID][::-1])
    with pytest.raises(InputError, match="other labels"):
        trainer(metrics, tmp_path, {"free": shuffled}).evaluate()
    part_of_it = torch.utils.data.Subset(metrics.holdout(ROWS[HOLDOUT]), range(64))
    with pytest.raises(InputError, match="got 64 records"):
        trainer(metrics, tmp_path, {"holdout": part_of_it}).evaluate()
    assert models.candidates.champion is None


def test_workers_that_read_elsewhere_are_refused(tmp_path: Path) -> None:
    metrics = GuardedMetrics(GuardedModels(guard()))
    with pytest.raises(InputError, match="dataloader_num_workers"):
        trainer(metrics, tmp_path, dataloader_num_workers=1).evaluate()


def test_the_same_predictions_are_judged_once(tmp_path: Path) -> None:
    models = GuardedModels(guard())
    metrics = GuardedMetrics(models)
    run = trainer(metrics, tmp_path, num_train_epochs=1)
    first = run.evaluate()["eval_holdout_score"]
    run.train()
    asked = len(models.guard.history)
    assert run.evaluate()["eval_holdout_kept"] == 1.0
    assert (first, asked, len(models.guard.history)) == (1 / 2, 1, 1)


def test_labels_of_another_name_have_to_be_named() -> None:
    metrics = GuardedMetrics(GuardedModels(guard()))
    rows = [{"x": row["x"], "species": row["labels"], "family": row["labels"] // 2} for row in ROWS[HOLDOUT]]
    with pytest.raises(InputError, match=r"label_names.*'species'"):
        metrics.holdout(rows)
    for names in (["species", "family"], ["family", "species", "label"]):
        made = metrics.holdout(rows, names)
        assert all(set(made[k]) == {"x", "labels"} and made[k]["labels"] == -100 for k in range(len(made)))
    without = metrics.holdout([{"x": row["x"]} for row in rows], [])
    assert set(without[0]) == {"x", "labels"}
