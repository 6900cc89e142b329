"""Guards in Ray Tune; it is loaded when a hook is made.

Trials run in other processes. A guard in a trainable is sent there as a reference, so ``guard.score(model)`` in a
trainable queries the one guard of the driver, and each query is answered once. The hooks here stay in the driver.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import InputError, InputTypeError, LedgerError, SharingError
from thresholdout.integrations.verdicts import CandidateVerdict

if TYPE_CHECKING:
    from thresholdout.guard.guard import Thresholdout
    from thresholdout.integrations.models import GuardedModels

__all__ = ["gate_callback", "stop_when_exhausted"]

_LOG: Final = logging.getLogger(__name__)


def gate_callback(models: GuardedModels, load: Callable[[Any], Any]) -> Any:
    """Return a callback for ``RunConfig(callbacks=[...])`` that keeps or rejects the model of each completed trial.

    Trials are judged in the order of completion, each against the last one that was kept. Trials that end with an error
    are not judged, nor are attempts that Ray repeats.

    Parameters
    ----------
    models : GuardedModels
        Judges the models.
    load : callable
        ``load(checkpoint)`` returns the fitted estimator of a trial's last checkpoint.

    Returns
    -------
    ray.tune.Callback
        With ``verdicts``, a dict of `CandidateVerdict` by trial identifier, and ``best_trial_id``, that of the
        champion, None before there is one. A trial without a checkpoint, or with one that `load` cannot read, has the
        verdict "failed", free of charge; the log has the reason.

    Notes
    -----
    Ray's searchers and schedulers do not see the verdicts, and use the trials' reports. A callback that is restored
    with its experiment keeps its verdicts, in the process that holds the guard. Ray's storage of an experiment has the
    address of that process and a key for queries, and no record.

    Examples
    --------
    ::

        def train(config):
            tree = DecisionTreeClassifier(**config).fit(X_train, y_train)
            with tempfile.TemporaryDirectory() as folder:
                joblib.dump(tree, Path(folder, "tree"))
                tune.report({"depth": tree.get_depth()}, checkpoint=tune.Checkpoint.from_directory(folder))


        def load(checkpoint):
            with checkpoint.as_directory() as folder:
                return joblib.load(Path(folder, "tree"))


        callback = gate_callback(GuardedModels(guard), load)
        tuner = tune.Tuner(train, param_space=space, run_config=tune.RunConfig(callbacks=[callback]))
        tuner.fit()
    """
    if not callable(load):
        raise InputTypeError("load", f"a {type(load).__name__}", "a function load(checkpoint)")
    from ray.tune import Callback

    return type("GateCallback", (_GateHooks, Callback), {})(models, load)


def stop_when_exhausted(guard: Thresholdout) -> Any:
    """Return a stopper for ``RunConfig(stop=...)`` that ends an experiment when the guard is exhausted.

    For trainables that query the guard themselves. Running trials are stopped too; `guard` is the driver's.
    """
    from ray.tune import Stopper

    return type("StopWhenExhausted", (_StopHooks, Stopper), {})(guard)


class _GateHooks:
    """Methods that Ray Tune calls."""

    def __init__(self, models: GuardedModels, load: Callable[[Any], Any]) -> None:
        super().__init__()
        self._models = models
        self._load = load
        self.verdicts: dict[str, CandidateVerdict] = {}
        self.best_trial_id: str | None = None

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Judge the trial's model."""
        name = str(trial.trial_id)
        try:
            if trial.checkpoint is None:
                advice = "Call tune.report(..., checkpoint=...) in the trainable."
                raise InputError("checkpoint", "nothing", "a checkpoint with each report of a trial", advice)
            verdict = self._models.propose(self._load(trial.checkpoint), name)
        except (LedgerError, SharingError):
            raise
        except Exception:
            _LOG.warning("trial %s could not be judged", name, exc_info=True)
            verdict = CandidateVerdict("failed")
        self.verdicts[name] = verdict
        if verdict and not verdict.repeated:
            self.best_trial_id = name

    def get_state(self) -> dict[str, Any]:
        """Return the state of a stored experiment."""
        return {"verdicts": dict(self.verdicts), "best_trial_id": self.best_trial_id}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state of an experiment."""
        self.verdicts, self.best_trial_id = dict(state["verdicts"]), state["best_trial_id"]


class _StopHooks:
    """Methods with which Ray Tune decides whether to stop."""

    def __init__(self, guard: Thresholdout) -> None:
        self._guard = guard

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Return whether this trial ends: never by itself."""
        return False

    def stop_all(self) -> bool:
        """Return whether the experiment ends."""
        return self._guard.status.exhausted is not None
