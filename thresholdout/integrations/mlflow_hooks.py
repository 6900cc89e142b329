"""Guards in MLflow: a metric for ``mlflow.models.evaluate``, and the promotion of registered models.

MLflow is loaded when a hook is used. Its evaluation is handed features alone: it would log whatever it computes from
labels of the holdout, and tries each metric on the first record by itself before it computes it, which is its label.
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
    """Return the features that `guarded_metric` needs predictions for: the training part's, then the holdout's.

    Parameters
    ----------
    models : GuardedModels
        What judges, in this process.

    Returns
    -------
    DataFrame or ndarray
        As the guard has its features. There are no labels in it.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Thresholdout
    >>> from thresholdout.integrations.models import GuardedModels
    >>> X, y = np.arange(2000.0)[:, None], np.arange(2000) % 2
    >>> guard = Thresholdout((X[1000:], y[1000:]), train=(X[:1000], y[:1000]))
    >>> evaluation_data(GuardedModels(guard)).shape
    (2000, 1)
    """
    train, holdout = models.guard._records.labelled()
    first, second = handed_out((train[0],))[0], handed_out((holdout[0],))[0]
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat([first, second], ignore_index=True)
    return np.concatenate([np.asarray(first), np.asarray(second)])


def guarded_metric(models: GuardedModels, *, name: str = "guarded") -> Any:
    """Return a metric for ``mlflow.models.evaluate(model, evaluation_data(models), extra_metrics=[...])``.

    The model is judged by its predictions for all records of both parts. What is logged is the verdict:
    ``name/kept`` and ``name/certified`` are 1 or 0, ``name/score`` is the verdict's number to rank by, and
    ``name/asked`` is 0 where the guard answers no more. ``MetricThreshold(threshold=1, greater_is_better=True)`` for
    ``name/certified`` makes ``mlflow.validate_evaluation_results`` refuse every other model.

    Parameters
    ----------
    models : GuardedModels
        What judges. Predictions of the training part are taken as they are, so a model should not be fitted to it:
        make the guard with records that validate as its training part. If it is, nothing is less certain, but looks
        are paid for gains that are none.
    name : str, default="guarded"
        What MLflow calls it.

    Returns
    -------
    mlflow.models.EvaluationMetric
        For predictions of a part of the records it raises, but for a single one, which MLflow tries each metric with:
        for that it is 0 everywhere.

    Raises
    ------
    ImportError
        MLflow is not installed.

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
    """Give a version of a registered model an alias if it is certified to be better than the one that has it.

    Where no version has the alias yet, this one gets it, and nobody has judged it. A program that ends between the
    verdict and the alias calls again: the verdict is the same, costs nothing, and the alias is set.

    Parameters
    ----------
    models : GuardedModels
        What judges, made for this registered model and alias alone.
    name : str
        The registered model.
    version : str or int
        Its version.
    alias : str, default="champion"
        What the best version is known by.
    load : callable, optional
        ``load(uri)``: a fitted estimator; ``mlflow.pyfunc.load_model`` by default, whose models cannot be fitted again:
        then make `models` with ``cv="training"``. ``mlflow.sklearn.load_model`` gives estimators that are
        cross-validated.
    client : mlflow.MlflowClient, optional
        A new one by default.

    Returns
    -------
    CandidateVerdict
        The alias is moved for the outcomes "first" and "kept".

    Raises
    ------
    InputError
        When another version has the alias than the one that was certified last, because somebody moved it by hand or a
        program ended before it had moved it; and for `models` with ``certify="milestones"``. Nothing is spent.
    ImportError
        MLflow is not installed.

    Examples
    --------
    ::

        models = GuardedModels(guard, name="churn champion")
        verdict = promote(models, "churn", 7, load=mlflow.sklearn.load_model)
    """
    import mlflow

    if models.certify != "each":
        raise InputError(
            "models", f"one with certify={models.certify!r}", "certify='each': what is promoted is certified"
        )
    if client is None:
        client = mlflow.MlflowClient()
    loaded = load or mlflow.pyfunc.load_model
    wanted, holder = _known_as(client, name, str(version)), _holder(client, name, alias)
    champion = models.candidates.champion
    if champion is None and holder is not None:
        models.propose(loaded(holder["version"]), holder["version"], known_as=holder)
    elif champion not in (None, wanted, holder):
        seen = f"{alias!r} of {name!r} is not {champion['version']}, which was certified last"
        raise InputError("alias", seen, "that version promoted again, or models with another name")
    verdict = models.candidates.judged(wanted)
    if verdict is None:
        verdict = models.propose(loaded(wanted["version"]), wanted["version"], known_as=wanted)
    if models.candidates.champion == wanted and holder != wanted:
        client.set_registered_model_alias(name, alias, str(version))
    return verdict


def _known_as(client: Any, name: str, version: str) -> dict[str, str]:
    """Return what a version is known by; numbers begin again when a registered model is made anew."""
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
