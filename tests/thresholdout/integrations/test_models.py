"""Models and predictions as candidates."""

import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from tests.thresholdout.integrations.digits import HOLDOUT, TRAIN, X, Y, guard, tree
from thresholdout.errors import GuardExhaustedWarning, InputError
from thresholdout.integrations import CandidateVerdict, GuardedModels
from thresholdout.integrations.models import numbers
from thresholdout.scoring.metrics import Metric, log_loss

SECRET = "label 3"


def outputs(depth: int) -> tuple[Any, Any]:
    model = tree(depth)
    return model.predict(X[TRAIN]), model.predict(X[HOLDOUT])


def test_models_are_judged_beside_the_last_one_that_was_kept() -> None:
    models = GuardedModels(guard())
    found = [models.propose(tree(depth), f"depth {depth}") for depth in (1, 3, 8, 2)]
    assert [verdict.outcome for verdict in found] == ["first", "kept", "kept", "rejected"]
    assert [verdict.score for verdict in found] == [1 / 2, 2 / 3, 3 / 4, 0.0]
    assert len(models.guard.history) == 3


def test_a_model_is_known_by_its_content_and_nothing_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    models = GuardedModels(guard(), cv="training")
    models.propose(tree(1), "a")
    first = models.propose(tree(8), "b")
    monkeypatch.setattr(models.guard, "_trained", None)
    again = models.propose(tree(8), "c")
    assert (first.outcome, first.repeated, again.outcome, again.repeated) == ("kept", False, "kept", True)
    assert len(models.guard.history) == 1


def test_predictions_are_a_candidate_and_the_same_ones_the_same_candidate() -> None:
    models = GuardedModels(guard())
    found = [models.propose_outputs(*outputs(depth)) for depth in (1, 8, 8, 1)]
    assert [(verdict.outcome, verdict.repeated) for verdict in found] == [
        ("first", False),
        ("kept", False),
        ("kept", True),
        ("first", True),
    ]


def test_columns_of_probabilities_are_those_of_the_sorted_labels() -> None:
    by_labels, by_shares = (GuardedModels(guard(), name=name) for name in ("labels", "shares"))
    for depth in (1, 8):
        model = tree(depth)
        shares = by_shares.propose_outputs(model.predict_proba(X[TRAIN]), model.predict_proba(X[HOLDOUT]))
        assert by_labels.propose_outputs(*outputs(depth)).outcome == shares.outcome
    losses = GuardedModels(guard(), log_loss(5.0))
    for depth, outcome in ((1, "first"), (6, "kept")):
        model = tree(depth)
        told = losses.propose_outputs(model.predict_proba(X[TRAIN]), model.predict_proba(X[HOLDOUT]))
        assert told.outcome == outcome


@for_each(
    ("train", "holdout", "argument"),
    [
        (Y[TRAIN], Y[HOLDOUT][:-1], "holdout"),
        (Y[TRAIN], Y[HOLDOUT][:1], "holdout"),
        (Y[TRAIN][:-1], Y[HOLDOUT], "train"),
        (Y[TRAIN], 3, "holdout"),
        (Y[TRAIN], np.full((900, 10), 0.2), "predictions"),
    ],
)
def test_predictions_of_a_part_are_refused_before_any_label_is_read(train: Any, holdout: Any, argument: str) -> None:
    models = GuardedModels(guard())
    models.propose_outputs(*outputs(1))
    with pytest.raises(InputError, match=argument):
        models.propose_outputs(train, holdout)
    assert len(models.guard.history) == 0
    assert models.guard.status.error_budget_left == pytest.approx(0.05)


def test_what_fails_on_the_holdout_alone_is_charged_and_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def values(y: Any, output: Any, classes: Any) -> Any:
        if len(y) == 900 and output[0] == 9:
            raise ValueError(SECRET)
        return np.asarray(output == y, dtype=float)

    models = GuardedModels(guard(), Metric("picky", "predict", values, (0.0, 1.0), True))
    models.propose_outputs(*outputs(1))
    train, holdout = outputs(8)
    holdout[0] = 9
    before = models.guard.status.error_budget_left
    verdict = models.propose_outputs(train, holdout)
    assert (verdict.outcome, verdict.score) == ("failed", 0.0)
    assert float(models.guard.status.error_budget_left or 0) < float(before or 0)
    assert SECRET not in verdict.text + caplog.text + models.guard.history.to_csv()
    assert models.propose_outputs(train, holdout).repeated


class Interrupting:
    """A model that is interrupted on the holdout."""

    def __init__(self, depth: int) -> None:
        self.inner = tree(depth)

    def predict(self, X: Any) -> Any:
        if len(X) == 900:
            raise KeyboardInterrupt
        return self.inner.predict(X)


def test_an_interrupt_on_the_holdout_is_charged() -> None:
    models = GuardedModels(guard(), cv="training")
    models.propose(tree(1), "a")
    before = models.guard.status.error_budget_left
    with pytest.raises(KeyboardInterrupt):
        models.propose(Interrupting(8), "b")
    assert float(models.guard.status.error_budget_left or 0) < float(before or 0)
    assert models.propose(Interrupting(8), "b").outcome == "failed"


def test_a_first_model_that_fails_on_the_holdout_is_not_taken_for_the_next_one() -> None:
    models = GuardedModels(guard(), cv="training")
    with pytest.raises(KeyboardInterrupt):
        models.propose(Interrupting(1), "a")
    verdict = models.propose(tree(8), "b")
    assert verdict.outcome == "failed"  # beside what nobody knows


@for_each("certify", ["each", "milestones"])
def test_the_holdout_is_predicted_once_for_each_candidate_that_is_looked_at(
    certify: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = GuardedModels(guard(), cv="training", certify=certify)
    seen: list[Any] = []
    on_holdout = models._on_holdout

    def counted(model: Any) -> Any:
        seen.append(model.max_depth)
        return on_holdout(model)

    monkeypatch.setattr(models, "_on_holdout", counted)
    for depth in (3, 8, 1, 8):
        models.propose(tree(depth), f"depth {depth}")
    assert seen == ([3, 8] if certify == "each" else [3, 8, 1])


def test_an_exhausted_guard_has_a_stated_value() -> None:
    models = GuardedModels(guard(queries=1), cv="training")
    models.propose(tree(1), "a")
    models.propose(tree(4), "b")
    with pytest.warns(GuardExhaustedWarning):
        verdict = models.propose(tree(8), "c")
    assert numbers(verdict) == {"kept": 0.0, "certified": 0.0, "score": 0.0, "asked": 0.0}
    assert models.propose(tree(4), "b").outcome == "kept"


def test_a_climb_goes_on_after_a_restart_without_its_models(tmp_path: Path) -> None:
    def opened() -> GuardedModels:
        return GuardedModels(guard(ledger=tmp_path / "guard.db"), cv="training")

    opened().propose(tree(1), "a")
    assert opened().propose(tree(4), "b").outcome == "kept"  # beside values of a model that nobody has any more
    assert opened().propose(tree(4), "b").repeated
    assert opened().propose(tree(8), "c").score == 3 / 4


def test_a_pickle_is_a_handle() -> None:
    models = GuardedModels(guard())
    assert pickle.loads(pickle.dumps(models)) is models
    assert len(pickle.dumps(models)) < 1000


def test_folds_that_leave_records_out_are_refused() -> None:
    halves = [(np.arange(400), np.arange(400, 800))]
    with pytest.raises(InputError, match="cv"):
        GuardedModels(guard(), cv=halves).propose(tree(1), "a")


def test_values_of_training_records_are_the_metric_s() -> None:
    models = GuardedModels(guard())
    expected = [float(Y[900 + k] == 3) for k in (0, 5, 7)]
    assert models.values_on_train([3, 3, 3], [0, 5, 7]).tolist() == expected


@for_each("outcome", ["first", "kept", "on the way", "rejected", "failed", "exhausted"])
def test_numbers_of_a_verdict(outcome: Any) -> None:
    told = numbers(CandidateVerdict(outcome))
    assert told["kept"] == (outcome in ("first", "kept", "on the way"))
    assert told["certified"] == (outcome == "kept")
    assert told["asked"] == (outcome not in ("failed", "exhausted"))


def test_a_name_stays_with_its_metric() -> None:
    metric = Metric("mine", "predict", lambda y, output, classes: output == y, (0.0, 1.0), True, False)
    models = GuardedModels(guard())
    models.propose_outputs(*outputs(1))
    with pytest.raises(InputError, match=r"name must be .*; got 'models', a name in use with metric='accuracy'"):
        GuardedModels(models.guard, metric)
    assert GuardedModels(models.guard, metric, name="mine").propose_outputs(*outputs(1)).repeated is False


def test_what_a_metric_logs_about_the_holdout_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    def values(y: Any, output: Any, classes: Any) -> Any:
        logging.getLogger("grader").error("%s records", len(y))
        return y == output

    models = GuardedModels(guard(), Metric("logging", "predict", values, (0.0, 1.0), True, False), cv="training")
    for depth in (1, 8):
        models.propose_outputs(*outputs(depth))
        models.propose(tree(depth), f"depth {depth}")
    assert {record.getMessage() for record in caplog.records} == {f"{len(Y[TRAIN])} records"}
