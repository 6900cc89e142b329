"""Ray Tune's own loop: one guard in the driver, trials in processes of Ray."""

import os
import pickle
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import pytest

from tests.thresholdout.integrations.digits import guard, tree
from thresholdout.errors import InputTypeError
from thresholdout.integrations import GuardedModels
from thresholdout.integrations.ray_hooks import gate_callback, stop_when_exhausted

ray = pytest.importorskip("ray", reason="Ray is not installed")
tune = pytest.importorskip("ray.tune", reason="Ray Tune is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

PROCESSES = 16


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """A cluster on this machine that believes to have 16 cores."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        num_cpus=PROCESSES,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        object_store_memory=80 * 2**20,
    )
    yield
    ray.shutdown()


def tuned(trainable: Any, space: Any, folder: Path, retries: int = 0, at_once: int = 2, **settings: Any) -> Any:
    """Run an experiment to its end."""
    return tune.Tuner(
        trainable,
        param_space=space,
        tune_config=tune.TuneConfig(max_concurrent_trials=at_once),
        run_config=tune.RunConfig(
            storage_path=str(folder), verbose=0, failure_config=tune.FailureConfig(max_failures=retries), **settings
        ),
    ).fit()


def load(checkpoint: Any) -> Any:
    with checkpoint.as_directory() as folder:
        return joblib.load(Path(folder, "tree"))


def test_each_completed_trial_is_judged_once(tmp_path: Path) -> None:
    """One dies and is tried again, one reports no model, one fails always, one is another's double."""
    flags = tmp_path / "flags"
    flags.mkdir()

    def train(config: dict[str, Any]) -> None:
        depth, flag = config["depth"], flags / str(config["depth"])
        if depth == 3 and not flag.exists():
            flag.touch()
            os._exit(1)
        if depth == 4:
            raise RuntimeError("always")
        with tempfile.TemporaryDirectory() as folder:
            joblib.dump(tree(depth), Path(folder, "tree"))
            checkpoint = None if depth == 5 else tune.Checkpoint.from_directory(folder)
            tune.report({"depth": depth}, checkpoint=checkpoint)

    models = GuardedModels(guard(), cv="training")
    callback = gate_callback(models, load)
    depths = [1, 2, 3, 4, 5, 8, 8]
    grid = tuned(train, {"depth": tune.grid_search(depths)}, tmp_path, retries=1, at_once=1, callbacks=[callback])
    by_depth: dict[int, list[Any]] = {}
    for result in grid:
        name = Path(result.path).name.split("_")
        verdict = callback.verdicts.get(f"{name[1]}_{name[2]}")
        by_depth.setdefault(result.config["depth"], []).append(verdict)
    assert by_depth[4] == [None]
    assert [verdict.outcome for verdict in by_depth[5]] == ["failed"]
    assert [verdict.outcome for depth in (1, 2) for verdict in by_depth[depth]] == ["first", "kept"]
    assert sorted((verdict.outcome, verdict.repeated) for verdict in by_depth[8]) == [("kept", False), ("kept", True)]
    asked = [verdict for verdict in callback.verdicts.values() if verdict.number and not verdict.repeated]
    assert sorted(verdict.number for verdict in asked) == list(range(1, len(models.guard.history) + 1))
    assert callback.verdicts[callback.best_trial_id] == by_depth[8][0]
    restored = gate_callback(models, load)
    restored.set_state(pickle.loads(pickle.dumps(callback.get_state())))
    assert (restored.verdicts, restored.best_trial_id) == (callback.verdicts, callback.best_trial_id)


def test_one_guard_is_asked_by_sixteen_processes(tmp_path: Path) -> None:
    shared = guard()

    def train(config: dict[str, Any]) -> None:
        for attempt in range(3):  # the third is another process's
            depth = 1 + (config["trial"] * 2 + attempt) % (2 * PROCESSES)
            answer = shared.score(tree(depth), cv="training")
            tune.report(
                {"answer": answer.value, "query": answer.query, "repeated": answer.repeated, "pid": os.getpid()}
            )

    space = {"trial": tune.grid_search(list(range(PROCESSES)))}
    grid = tuned(train, space, tmp_path, at_once=PROCESSES)
    told = [(row["query"], row["answer"]) for result in grid for _, row in result.metrics_dataframe.iterrows()]
    history = shared.history
    assert len(told) == 3 * PROCESSES
    assert len({result.metrics["pid"] for result in grid}) == PROCESSES
    asked = dict(told)
    assert len(set(told)) == len(asked) == len(history)
    assert asked == dict(enumerate(history["value"], 1))
    assert max(Counter(query for query, _ in told).values()) >= 2


def test_workers_that_open_one_ledger_charge_each_query_once(tmp_path: Path) -> None:
    path, depths = tmp_path / "guard.db", [1, 2, 3, 4, 5, 6]
    here = guard(ledger=path)

    def ask(worker: int) -> list[tuple[int, int, float]]:
        opened = guard(ledger=path)
        turn = [depths[(worker + k) % len(depths)] for k in range(len(depths))]
        answers = [(depth, opened.score(tree(depth), cv="training")) for depth in turn]
        return [(depth, answer.query, answer.value) for depth, answer in answers]

    answered = [row for rows in ray.get([ray.remote(ask).remote(worker) for worker in range(4)]) for row in rows]
    assert len(answered) == 4 * len(depths)
    assert len(set(answered)) == len(depths) == len(here.history)
    assert {query: value for _, query, value in answered} == dict(enumerate(here.history["value"], 1))


def test_an_experiment_ends_when_the_guard_is_exhausted(tmp_path: Path) -> None:
    shared = guard(queries=2)

    def train(config: dict[str, Any]) -> None:
        tune.report({"answer": shared.score(tree(config["depth"]), cv="training").value})

    space = {"depth": tune.grid_search([1, 2, 3, 4, 5, 6])}
    grid = tuned(train, space, tmp_path, at_once=1, stop=stop_when_exhausted(shared))
    assert shared.status.exhausted == "queries"
    assert len(shared.history) == 2
    assert len(grid) < 6 or grid.num_terminated < 6


def test_an_exhausted_guard_judges_nothing_more_and_ends_nothing(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            joblib.dump(tree(config["depth"]), Path(folder, "tree"))
            tune.report({"depth": 1}, checkpoint=tune.Checkpoint.from_directory(folder))

    callback = gate_callback(GuardedModels(guard(queries=1), cv="training"), load)
    tuned(train, {"depth": tune.grid_search([1, 3, 6])}, tmp_path, at_once=1, callbacks=[callback])
    assert [verdict.outcome for verdict in callback.verdicts.values()] == ["first", "kept", "exhausted"]


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(InputTypeError, match="load"):
        gate_callback(GuardedModels(guard()), "tree")  # type: ignore[arg-type]
