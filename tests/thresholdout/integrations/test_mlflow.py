"""MLflow's evaluation and its registry of models, in files of a test."""

import shutil
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from tests.thresholdout.integrations.contract import HOLDOUT, TRAIN, HookContract, Told, act, right
from tests.thresholdout.integrations.digits import TRAIN as FIT
from tests.thresholdout.integrations.digits import X, Y, guard, tree
from thresholdout import Thresholdout
from thresholdout.errors import InputError
from thresholdout.integrations import GuardedModels
from thresholdout.integrations.mlflow_hooks import evaluation_data, guarded_metric, promote

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


@cache
def empty() -> Path:
    """Return the file of a tracking server with nothing in it; making one takes seconds."""
    file = Path(mkdtemp(), "empty.db")
    mlflow.set_tracking_uri(f"sqlite:///{file}")
    mlflow.search_experiments()
    return file


def track(folder: Path) -> Any:
    """Track in this folder from here on, and return a client."""
    if not (folder / "mlflow.db").exists():
        shutil.copy(empty(), folder / "mlflow.db")
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    mlflow.set_registry_uri(f"sqlite:///{folder / 'mlflow.db'}")
    return mlflow.MlflowClient()


class Text:
    """A text as a model that is right for some examples."""

    def __init__(self, text: str, evaluated: list[tuple[str, Any]]) -> None:
        self.text = text
        self.evaluated = evaluated
        self.classes_ = np.array([0, 1])

    def predict(self, X: Any) -> Any:
        part: Any = "holdout" if X[0, 0] >= 1000 else "train"
        if len(X) in (len(TRAIN), len(HOLDOUT)):
            self.evaluated.append((self.text, part))
        act(self.text, part)
        return np.array([right(self.text, {"id": row[0]}) for row in X], dtype=int)


def of_version(known: dict[str, Any], evaluated: list[tuple[str, Any]], uri: str) -> Text:
    """Return the text of a version."""
    said = {f"models:/texts/{version}": text for text, version in known.items()}
    return Text(said[uri], evaluated)


class TestPromotion(HookContract):
    def run(self, texts: Sequence[str], folder: Path, **declared: Any) -> Told:
        client = track(folder)
        parts = [np.array([[example["id"]] for example in part], dtype=float) for part in (HOLDOUT, TRAIN)]
        ones = [np.ones(len(part), dtype=int) for part in parts]
        guard = Thresholdout((parts[0], ones[0]), train=(parts[1], ones[1]), **declared)
        models = GuardedModels(guard, cv="training", name="candidates")
        evaluated: list[tuple[str, Any]] = []
        shown: list[str] = []
        if not client.search_registered_models():
            client.create_registered_model("texts")
        known = {found.source.split("?")[1]: found.version for found in client.search_model_versions()}
        for text in texts:
            if text not in known:
                known[text] = client.create_model_version("texts", f"file:///none?{text}").version
            loaded = partial(of_version, known, evaluated)
            try:
                promote(models, "texts", known[text], load=loaded)
            except InputError as error:
                shown.append(str(error))
        best = client.get_model_version_by_alias("texts", "champion").version
        return Told(
            models.candidates, {str(v): text for text, v in known.items()}[str(best)], "".join(shown), evaluated
        )


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    found = track(tmp_path)
    found.create_registered_model("m")
    for k in range(1, 5):
        found.create_model_version("m", f"file:///none?{k}")
    yield found
    mlflow.end_run()


def load(uri: str) -> Any:
    return tree({"1": 1, "2": 4, "3": 2, "4": 8}[uri.rpartition("/")[2]])


def champion(client: Any) -> str | None:
    found = client.get_registered_model("m").aliases.get("champion")
    return None if found is None else str(found)


def test_an_alias_moves_to_what_is_certified(client: Any) -> None:
    models = GuardedModels(guard(), cv="training")
    seen = []
    for version in (1, 2, 3, "4", 2):
        verdict = promote(models, "m", version, load=load)
        seen.append((verdict.outcome, champion(client)))
    assert seen == [("first", "1"), ("kept", "2"), ("rejected", "2"), ("kept", "4"), ("kept", "4")]


def test_what_has_the_alias_already_is_the_first_candidate(client: Any) -> None:
    client.set_registered_model_alias("m", "champion", "2")
    models = GuardedModels(guard(), cv="training")
    assert promote(models, "m", 3, load=load).outcome == "rejected"
    assert promote(models, "m", 4, load=load).outcome == "kept"


def test_a_program_that_ends_before_the_alias_is_moved_calls_again(client: Any, tmp_path: Path) -> None:
    class Dying:
        """A client whose program is killed when it is to move an alias."""

        def __getattr__(self, name: str) -> Any:
            if name == "set_registered_model_alias":
                raise SystemExit
            return getattr(client, name)

    def opened() -> GuardedModels:
        return GuardedModels(guard(ledger=tmp_path / "guard.db"), cv="training")

    promote(opened(), "m", 1, load=load)
    with pytest.raises(SystemExit):
        promote(opened(), "m", 2, load=load, client=Dying())
    assert champion(client) == "1"
    with pytest.raises(InputError, match="models:/m/2"):
        promote(opened(), "m", 4, load=load)
    again = promote(opened(), "m", 2, load=load)
    assert (again.outcome, again.repeated, champion(client)) == ("kept", True, "2")
    assert len(opened().guard.history) == 1


def test_an_alias_that_was_moved_by_hand_is_refused(client: Any) -> None:
    models = GuardedModels(guard(), cv="training")
    promote(models, "m", 1, load=load)
    client.set_registered_model_alias("m", "champion", "3")
    with pytest.raises(InputError, match="alias"):
        promote(models, "m", 4, load=load)
    assert len(models.guard.history) == 0


def test_milestones_promote_nothing(client: Any) -> None:
    with pytest.raises(InputError, match="certify"):
        promote(GuardedModels(guard(), cv="training", certify="milestones"), "m", 1, load=load)


def test_evaluation_logs_the_verdict_and_asks_nothing_of_the_first_record(client: Any) -> None:
    import pandas as pd

    models = GuardedModels(guard())
    data = evaluation_data(models)
    assert np.array_equal(data, np.concatenate([X[FIT], X[:900]]))
    expected = [("first", 0.5), ("kept", 2 / 3), ("kept", 2 / 3), ("rejected", 0.0)]
    for depth, (outcome, score) in zip((1, 8, 8, 2), expected, strict=True):
        model = tree(depth)
        result = mlflow.models.evaluate(
            lambda table, model=model: model.predict(np.asarray(table)),
            pd.DataFrame(data),
            extra_metrics=[guarded_metric(models)],
        )
        kept, certified = float(outcome != "rejected"), float(outcome == "kept")
        assert result.metrics == {
            "guarded/kept": kept,
            "guarded/certified": certified,
            "guarded/score": score,
            "guarded/asked": 1.0,
        }
        required = {"guarded/certified": mlflow.models.MetricThreshold(threshold=1, greater_is_better=True)}
        if certified:
            mlflow.validate_evaluation_results(required, result)
        else:
            with pytest.raises(mlflow.models.evaluation.validation.ModelValidationFailedException):
                mlflow.validate_evaluation_results(required, result)
        assert not result.artifacts
    assert len(models.guard.history) == 2


def test_an_evaluation_of_a_part_is_refused(client: Any) -> None:
    import pandas as pd

    models = GuardedModels(guard())
    constant = DummyClassifier().fit(X[FIT], Y[FIT])
    for rows in (X[:900], X[:2]):
        with pytest.raises(InputError, match="predictions"):
            mlflow.models.evaluate(constant.predict, pd.DataFrame(rows), extra_metrics=[guarded_metric(models)])
    alone = mlflow.models.evaluate(constant.predict, pd.DataFrame(X[:1]), extra_metrics=[guarded_metric(models)])
    assert set(alone.metrics.values()) == {0.0}
    assert models.candidates.champion is None


def test_a_model_of_the_registry_is_loaded_and_judged(client: Any, tmp_path: Path) -> None:
    models = GuardedModels(guard())
    experiment = client.create_experiment("trees", artifact_location=(tmp_path / "artifacts").as_uri())
    with mlflow.start_run(experiment_id=experiment):
        for depth in (1, 8):
            mlflow.sklearn.log_model(
                tree(depth),
                name="tree",
                registered_model_name="trees",
                serialization_format="cloudpickle",
                pip_requirements=["scikit-learn"],
            )
    found = [promote(models, "trees", version, load=mlflow.sklearn.load_model).outcome for version in (1, 2)]
    assert found == ["first", "kept"]
