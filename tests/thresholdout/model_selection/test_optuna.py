import multiprocessing
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import optuna
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from tests.patience import PATIENCE
from tests.thresholdout.ledger.postgres_server import Server
from tests.thresholdout.model_selection.optuna_worker import BUDGET, QUERIES, build, make
from thresholdout import BudgetExhausted, Claims, Thresholdout
from thresholdout.errors import GuardExhaustedWarning, InputError, InputTypeError
from thresholdout.model_selection import GuardedObjective, stop_when_exhausted
from thresholdout.scoring.metrics import absolute_error, squared_error

ROOT = Path(__file__).parents[3]
X, Y = load_breast_cancer(return_X_y=True)
COMPLETE, FAIL = optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.FAIL


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    yield
    optuna.logging.set_verbosity(before)


def cancer(**changes: object) -> Thresholdout:
    choices: dict[str, Any] = {"queries": 40, "mechanism": Claims(holdout_answers=4), **changes}
    return Thresholdout((X[300:], Y[300:]), train=(X[:300], Y[:300]), **choices)


def tree(trial: Any) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=trial.suggest_int("max_depth", 1, 3), random_state=0)


def study(direction: Literal["minimize", "maximize"] = "maximize", **options: Any) -> optuna.Study:
    return optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=0), **options)


def test_values_are_the_guards_answers_and_trials_say_what_they_are_worth() -> None:
    guard = cancer()
    objective = GuardedObjective(guard, tree, "accuracy", cv=5)
    done = study()
    done.optimize(objective, n_trials=6)
    history = guard.history
    assert [trial.value for trial in done.trials] == list(history["value"])
    for trial, row in zip(done.trials, history.to_dict("records"), strict=True):
        noted = trial.user_attrs["accuracy"]
        assert {name: noted[name] for name in ("value", "half_width", "source", "query", "remaining")} == {
            name: row[name] for name in ("value", "half_width", "source", "query", "remaining")
        }
        model = DecisionTreeClassifier(max_depth=trial.params["max_depth"], random_state=0).fit(X[:300], Y[:300])
        assert abs(model.score(X[300:], Y[300:]) - noted["value"]) <= noted["half_width"]
    assert done.user_attrs["guard_state"] == {"asked": 6, "remaining": guard.status.answers_left, "exhausted": None}
    assert (objective.asked, objective.repeated, objective.replaced) == (6, 0, 0)
    assert objective.spent == list(history["source"]).count("holdout")


def test_a_forked_child_does_not_wait_for_a_lock_of_its_parent(tmp_path: Path) -> None:
    objective = GuardedObjective(cancer(ledger=tmp_path / "guard.db"), tree, cv="training")
    answered = multiprocessing.get_context("fork").Process(
        target=objective, args=(optuna.trial.FixedTrial({"max_depth": 2}),), daemon=True
    )
    with objective._lock:
        answered.start()
    answered.join(PATIENCE)
    exitcode = answered.exitcode
    answered.kill()
    assert (exitcode, len(objective.guard.history)) == (0, 1)


def test_a_repeated_trial_is_free_and_another_study_of_its_name_is_not() -> None:
    guard = cancer()
    objective = GuardedObjective(guard, tree, cv="training")
    first = study(study_name="same")
    trial = first.ask()
    values = [objective(trial) for _ in range(3)]
    assert values[0] == values[1] == values[2]
    assert (objective.asked, objective.repeated, len(guard.history)) == (1, 2, 1)
    assert objective(study(study_name="same").ask()) is not None
    assert len(guard.history) == 2


def test_repeated_parameters_are_free_when_asked_for(tmp_path: Path) -> None:
    guard = cancer(ledger=tmp_path / "guard.db")
    done = study()
    done.optimize(GuardedObjective(guard, tree, key="params", cv="training"), n_trials=12)
    depths = [trial.params["max_depth"] for trial in done.trials]
    assert len(guard.history) == len(set(depths)) < 12
    by_depth = {depth: {t.value for t in done.trials if t.params["max_depth"] == depth} for depth in depths}
    assert {len(values) for values in by_depth.values()} == {1}
    # A new process with a new study: nothing is charged for what is known.
    again = GuardedObjective(cancer(ledger=tmp_path / "guard.db"), tree, key="params", cv="training")
    study().optimize(again, n_trials=12)
    assert (again.asked, again.repeated) == (0, 12)


def test_other_parameters_or_another_build_are_other_queries() -> None:
    guard = cancer()

    def deeper(trial: Any) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(max_depth=3 + trial.suggest_int("max_depth", 1, 3), random_state=0)

    for function in (tree, deeper):
        study().optimize(GuardedObjective(guard, function, key="params", cv="training"), n_trials=1)
    assert len(guard.history) == 2


def test_several_objectives_ask_one_query_each() -> None:
    data = load_diabetes(return_X_y=True)
    guard = Thresholdout(
        (data[0][200:], data[1][200:]),
        train=(data[0][:200], data[1][:200]),
        queries=20,
        mechanism=Claims(holdout_answers=2),
    )
    metrics = [squared_error(25_000.0), absolute_error(150.0)]
    objective = GuardedObjective(guard, lambda t: Ridge(t.suggest_float("alpha", 0.01, 1.0)), metrics, cv="training")
    done = optuna.create_study(directions=["minimize", "minimize"])
    done.optimize(objective, n_trials=3)
    assert [value for trial in done.trials for value in trial.values] == list(guard.history["value"])
    assert list(guard.history["name"]) == [metric.name for metric in metrics] * 3
    assert set(done.trials[0].user_attrs) == {metric.name for metric in metrics}
    assert done.user_attrs["guard_state"]["asked"] == 6


def test_directions_are_checked_before_anything_is_asked() -> None:
    guard = cancer()
    with pytest.raises(
        InputError, match=r"directions \['MINIMIZE'\] for log_loss.*; got one with directions \['MAXIMIZE'\]"
    ):
        study().optimize(GuardedObjective(guard, tree, "log_loss", cv="training"), n_trials=1)
    with pytest.raises(InputError, match="for accuracy, brier_score"):
        study().optimize(GuardedObjective(guard, tree, ["accuracy", "brier_score"], cv="training"), n_trials=1)
    assert guard.history.empty


def test_a_study_belongs_to_one_guard() -> None:
    done, other = study(), make()
    done.optimize(GuardedObjective(cancer(), tree, cv="training"), n_trials=1)
    with pytest.raises(InputError, match=r"study must be .*; got a study of guard"):
        done.optimize(GuardedObjective(other, build, cv="training"), n_trials=1)
    assert other.history.empty


def test_exhaustion_raises() -> None:
    guard, done = cancer(queries=2), study()
    with pytest.raises(BudgetExhausted):
        done.optimize(GuardedObjective(guard, tree, exhausted="raise", cv="training"), n_trials=5)
    assert [trial.state for trial in done.trials] == [COMPLETE, COMPLETE, FAIL]


def test_a_study_without_any_answer_is_an_error_that_names_what_goes_on() -> None:
    guard = cancer(queries=1)
    study().optimize(GuardedObjective(guard, tree, exhausted="nan", cv="training"), n_trials=1)
    with pytest.raises(BudgetExhausted) as caught:
        study().optimize(GuardedObjective(guard, tree, cv="training"), n_trials=3)
    assert "pass exhausted='nan' or 'train'" in "".join(caught.value.__notes__)
    done, pruned = study(), study()
    pruned.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.PRUNED, intermediate_values={0: 0.9}))
    with pytest.raises(BudgetExhausted):
        pruned.optimize(GuardedObjective(guard, tree, cv="training"), n_trials=3)
    with pytest.warns(GuardExhaustedWarning, match="This search has 0 answers"):
        done.optimize(GuardedObjective(guard, tree, exhausted="train", cv="training"), n_trials=3)
    assert [trial.state for trial in done.trials] == [COMPLETE] * 3


def test_exhaustion_stops_the_study() -> None:
    guard, done = cancer(queries=3), study()
    objective = GuardedObjective(guard, tree, cv="training")
    with pytest.warns(GuardExhaustedWarning, match="The study stops after trial 2, and this run has 3 answers"):
        done.optimize(objective, n_trials=50)
    assert [trial.state for trial in done.trials] == [COMPLETE] * 3
    assert (objective.exhausted, objective.replaced) == ("queries", 0)
    assert done.best_value == max(guard.history["value"])
    assert done.user_attrs["guard_state"] == {
        "asked": 3,
        "remaining": guard.status.answers_left,
        "exhausted": "queries",
    }
    resumed = GuardedObjective(guard, tree, exhausted="stop", cv="training")
    with pytest.warns(GuardExhaustedWarning):
        done.optimize(resumed, n_trials=50)
    assert [trial.state for trial in done.trials] == [COMPLETE] * 3 + [FAIL]
    assert done.trials[-1].user_attrs["accuracy"] == {"unanswered": "queries"}


def test_exhaustion_fails_trials_and_goes_on() -> None:
    guard, done, built = cancer(queries=2), study(), []

    class Counted(GaussianNB):  # type: ignore[misc]
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            built.append(len(X))
            return super().fit(X, y, sample_weight)

    objective = GuardedObjective(guard, lambda _: Counted(), exhausted="nan", cv="training")
    with pytest.warns(GuardExhaustedWarning) as caught:
        done.optimize(objective, n_trials=6)
    assert len(caught) == 1
    assert [trial.state for trial in done.trials] == [COMPLETE] * 2 + [FAIL] * 4
    assert (objective.asked, objective.replaced) == (2, 4)
    assert len(built) == 3  # known to be exhausted, it fits no more


def test_exhaustion_leaves_training_values() -> None:
    guard, done = cancer(queries=1), study()
    objective = GuardedObjective(guard, tree, exhausted="train", cv="training")
    with pytest.warns(GuardExhaustedWarning, match="training values, which have no guarantee"):
        done.optimize(objective, n_trials=3)
    for trial in done.trials[1:]:
        model = DecisionTreeClassifier(max_depth=trial.params["max_depth"], random_state=0).fit(X[:300], Y[:300])
        assert trial.value == pytest.approx(model.score(X[:300], Y[:300]))
        assert trial.user_attrs["accuracy"] == {"unanswered": "queries"}


def test_the_callback_stops_objectives_of_ones_own() -> None:
    guard, done = cancer(queries=4), study()

    def objective(trial: Any) -> float:
        model = tree(trial).set_params(random_state=trial.number).fit(X[:300], Y[:300])
        return guard.score(model, "accuracy", cv="training").value

    done.optimize(objective, n_trials=50, callbacks=[stop_when_exhausted(guard)])
    assert [trial.state for trial in done.trials] == [COMPLETE] * 4


def test_pruned_trials_ask_nothing() -> None:
    guard, done = cancer(), study()

    def pruning(trial: Any) -> DecisionTreeClassifier:
        model = tree(trial)
        if trial.params["max_depth"] == 2:
            raise optuna.TrialPruned
        return model

    done.optimize(GuardedObjective(guard, pruning, cv="training"), n_trials=9)
    kept = [trial for trial in done.trials if trial.state == COMPLETE]
    assert 0 < len(kept) == len(guard.history) < 9


def test_threads_are_charged_exactly_and_all_stop() -> None:
    guard = make()
    objective = GuardedObjective(guard, build, exhausted="stop", cv="training")
    done = study()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuardExhaustedWarning)
        done.optimize(objective, n_trials=200, n_jobs=4)
    history = guard.history
    assert guard.status.exhausted is not None
    assert objective.asked == len(history) == sum(trial.state == COMPLETE for trial in done.trials)
    assert objective.spent == list(history["source"]).count("holdout") == BUDGET - (guard.status.answers_left or 0)
    assert list(history["query"]) == list(range(1, len(history) + 1))
    assert len(done.trials) <= len(history) + 4  # at most one trial a thread was under way


@pytest.mark.slow
def test_processes_on_one_database_are_charged_exactly_and_all_stop(tmp_path: Path) -> None:
    share_a_study(tmp_path, str(tmp_path / "guard.db"), workers=3)


@pytest.mark.slow
def test_processes_whose_guards_are_in_postgresql(tmp_path: Path, server: Server) -> None:
    share_a_study(tmp_path, server.new_database(), workers=2)


def share_a_study(tmp_path: Path, ledger: str, workers: int) -> None:
    """Let workers search until the guard answers no more, and compare what they say with the two stores."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(study_name="shared", storage=url, direction="maximize")
    make(ledger)  # the file is there before the workers open it
    worker = Path(__file__).with_name("optuna_worker.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(worker), url, ledger, "200", "stop"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(workers)
    ]
    outputs = [process.communicate(timeout=PATIENCE) for process in processes]
    assert [process.returncode for process in processes] == [0] * workers, outputs
    reports = [output.split() for output, _ in outputs]
    guard = make(ledger)
    history = guard.history
    done = optuna.load_study(study_name="shared", storage=url)
    assert guard.status.exhausted is not None
    assert {report[3] for report in reports} == {guard.status.exhausted}
    assert sum(int(report[0]) for report in reports) == len(history) <= QUERIES
    assert sum(int(report[1]) for report in reports) == list(history["source"]).count("holdout")
    complete = [trial for trial in done.trials if trial.state == COMPLETE]
    assert sorted(trial.user_attrs["accuracy"]["query"] for trial in complete) == list(history["query"])
    by_query = dict(zip(history["query"], history["value"], strict=True))
    assert all(trial.value == by_query[trial.user_attrs["accuracy"]["query"]] for trial in complete)
    assert {trial.state for trial in done.trials} <= {COMPLETE, FAIL}
    assert sum(int(report[2]) for report in reports) == len(done.trials) - len(complete) <= workers
    assert done.user_attrs["guard_state"]["exhausted"] == guard.status.exhausted


def test_without_a_study_each_model_is_a_query() -> None:
    guard = cancer()
    objective = GuardedObjective(guard, tree, cv="training")
    for depth in (2, 2, 3):
        objective(optuna.trial.FixedTrial({"max_depth": depth}))
    assert len(guard.history) == 2
    assert objective.repeated == 1


def test_arguments_are_checked() -> None:
    guard = cancer()
    with pytest.raises(InputTypeError, match=r"build must be .*; got a DecisionTreeClassifier"):
        GuardedObjective(guard, DecisionTreeClassifier(), cv="training")
    with pytest.raises(InputError, match="without repetitions"):
        GuardedObjective(guard, tree, ["accuracy", "accuracy"], cv="training")
    with pytest.raises(InputError, match="'trial' or 'params'"):
        GuardedObjective(guard, tree, key="number", cv="training")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'raise', 'train', 'nan', 'stop'"):
        GuardedObjective(guard, tree, exhausted="pause", cv="training")  # type: ignore[arg-type]
    bare = Thresholdout(np.arange(50.0), train=np.arange(100.0, 150.0), queries=5, mechanism=Claims(holdout_answers=1))
    with pytest.raises(InputError, match="a training part without labels"):
        GuardedObjective(bare, tree, cv="training")
