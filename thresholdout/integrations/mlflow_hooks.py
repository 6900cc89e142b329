"""Guards in MLflow: a metric for ``mlflow.models.evaluate``, and the promotion of registered models.

MLflow is loaded when a hook is used. Its evaluation receives features alone. With labels of the holdout it would log
values computed from them, and it tries each metric on the first record first, whose value is its label.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.data.identity import handed_out
from thresholdout.errors import InputError
from thresholdout.integrations.models import GuardedModels, numbers
from thresholdout.integrations.verdicts import CandidateVerdict

if TYPE_CHECKING:
    from numpy.typing import NDArray


__all__ = ["evaluation_data", "guarded_metric", "promote"]


def evaluation_data(models: GuardedModels) -> Any:
    """Return the features without labels for `guarded_metric`: the training part's, then the holdout's."""
    train, holdout = models.guard._records.labelled()
    first, second = handed_out((train[0],))[0], handed_out((holdout[0],))[0]
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat([first, second], ignore_index=True)
    return np.concatenate([np.asarray(first), np.asarray(second)])


def guarded_metric(models: GuardedModels, *, name: str = "guarded") -> Any:
    """Return a metric for ``mlflow.models.evaluate(model, evaluation_data(models), extra_metrics=[...])``.

    The guard judges the model by its predictions for all records of both parts. MLflow logs the verdict: ``name/kept``
    and ``name/certified`` are 1 or 0, ``name/score`` is the verdict's number for rankings, and ``name/asked`` is 0 if
    the guard is exhausted. With ``MetricThreshold(threshold=1, greater_is_better=True)`` for ``name/certified``,
    ``mlflow.validate_evaluation_results`` refuses every model that is not certified. Predictions for a part of the
    records raise, except a single one, which MLflow tries each metric with: for it all values are 0.

    Parameters
    ----------
    models : GuardedModels
        Judges the models. Predictions of the training part count as they are, so the model should not be fitted to it:
        give the guard validation records as its training part. Otherwise the certificate remains valid, but evaluations
        of the holdout are spent on gains that do not exist.
    name : str, default "guarded"
        Name in MLflow.

    Returns
    -------
    mlflow.models.EvaluationMetric

    Examples
    --------
    ::

        models = GuardedModels(guard)
        result = mlflow.models.evaluate(
            "models:/churn/7", evaluation_data(models), extra_metrics=[guarded_metric(models)]
        )
        required = {"guarded/certified": MetricThreshold(threshold=1, greater_is_better=True)}
        mlflow.validate_evaluation_results(required, result)
    """
    from mlflow.metrics import MetricValue
    from mlflow.models import make_metric

    def judge(predictions: Any) -> Any:
        verdict = CandidateVerdict("failed")
        if len(predictions) > 1:
            verdict = _judged(models, np.array(list(predictions)))
        return MetricValue(aggregate_results=numbers(verdict))

    return make_metric(eval_fn=judge, greater_is_better=True, name=name)


def promote(
    models: GuardedModels,
    name: str,
    version: str | int,
    *,
    alias: str = "champion",
    load: Callable[[str], Any] | None = None,
    client: Any = None,
) -> CandidateVerdict:
    """Give a version of a registered model an alias if it is certified to be better than the version that has it.

    If no version has the alias, this one gets it without a judgement. A program that ends between the verdict and the
    alias can call again: the verdict is the same and free, and the alias is set.

    Parameters
    ----------
    models : GuardedModels
        Judges the versions; made for this registered model and alias alone.
    name : str
        The registered model.
    version : str or int
        Its version.
    alias : str, default "champion"
        Alias of the best version.
    load : callable, optional
        ``load(uri)`` returns a fitted estimator; ``mlflow.pyfunc.load_model`` by default. Its models cannot be fitted
        again, so make `models` with ``cv="training"``. Estimators of ``mlflow.sklearn.load_model`` are cross-validated.
    client : mlflow.MlflowClient, optional
        A new one by default.

    Returns
    -------
    CandidateVerdict
        The alias moves for the outcomes "first" and "kept".

    Raises
    ------
    InputError
        Another version than the last certified one has the alias, since somebody moved it by hand or a program ended
        before it moved it; or `models` has ``certify="milestones"``. Nothing is spent.

    Examples
    --------
    ::

        models = GuardedModels(guard, name="churn champion")
        verdict = promote(models, "churn", 7, load=mlflow.sklearn.load_model)
    """
    import mlflow

    if models.certify != "each":
        seen = f"one with certify={models.certify!r}"
        raise InputError("models", seen, "a GuardedModels with certify='each'", "Only certified versions are promoted.")
    if client is None:
        client = mlflow.MlflowClient()
    loaded = load or mlflow.pyfunc.load_model
    wanted, holder = _known_as(client, name, str(version)), _holder(client, name, alias)
    champion = models.candidates.champion
    if champion is None and holder is not None:
        models.propose(loaded(holder["version"]), holder["version"], known_as=holder)
    elif champion not in (None, wanted, holder):
        seen = f"{alias!r}, the alias of another version of {name!r}"
        advice = "Promote that version again, or use models with another name."
        raise InputError("alias", seen, f"that of {champion['version']}, which was certified last", advice)
    verdict = models.candidates.judged(wanted)
    if verdict is None:
        verdict = models.propose(loaded(wanted["version"]), wanted["version"], known_as=wanted)
    if models.candidates.champion == wanted and holder != wanted:
        client.set_registered_model_alias(name, alias, str(version))
    return verdict


def _known_as(client: Any, name: str, version: str) -> dict[str, str]:
    """Return the identity of a version; numbers begin again when a registered model is made anew."""
    return {"version": f"models:/{name}/{version}", "source": str(client.get_model_version(name, version).source)}


def _holder(client: Any, name: str, alias: str) -> dict[str, str] | None:
    """Return the version that has an alias."""
    version = client.get_registered_model(name).aliases.get(alias)
    return None if version is None else _known_as(client, name, str(version))


def _judged(models: GuardedModels, outputs: NDArray[Any]) -> CandidateVerdict:
    """Judge predictions for both parts, the training part's first."""
    size = len(models.guard._open[1])
    if len(outputs) != size + models.guard.n:
        expected = f"predictions for evaluation_data(models), {size} and {models.guard.n} records"
        raise InputError("predictions", f"{len(outputs)} of them", expected)
    return models.propose_outputs(outputs[:size], outputs[size:])
