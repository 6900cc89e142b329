"""Guards in model selection: scikit-learn, Optuna, LightGBM, XGBoost, Keras, Lightning, and loops of one's own."""

from typing import TYPE_CHECKING, Any

from thresholdout.guard.scorer import GuardScorer
from thresholdout.guard.train_split import TrainSplit
from thresholdout.model_selection.counting import count_queries
from thresholdout.model_selection.guarded_stopping import GuardedStopping
from thresholdout.model_selection.lightgbm_hooks import LightGBMCallback, LightGBMEval
from thresholdout.model_selection.optuna_study import GuardedObjective, stop_when_exhausted
from thresholdout.model_selection.trainer_hooks import keras_callback, lightning_callback
from thresholdout.model_selection.xgboost_hooks import xgboost_callback

if TYPE_CHECKING:
    from thresholdout.model_selection.guarded_search import GuardedSearchCV

__all__ = [
    "GuardScorer",
    "GuardedObjective",
    "GuardedSearchCV",
    "GuardedStopping",
    "LightGBMCallback",
    "LightGBMEval",
    "TrainSplit",
    "count_queries",
    "keras_callback",
    "lightning_callback",
    "stop_when_exhausted",
    "xgboost_callback",
]


def __getattr__(name: str) -> Any:
    """Load `GuardedSearchCV`, a scikit-learn estimator, when it is first used."""
    if name == "GuardedSearchCV":
        from thresholdout.model_selection.guarded_search import GuardedSearchCV

        return GuardedSearchCV
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
