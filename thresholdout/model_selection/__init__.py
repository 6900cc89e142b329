"""Guards in scikit-learn's model selection."""

from thresholdout.model_selection.guarded_stopping import GuardedStopping
from thresholdout.model_selection.lightgbm_hooks import LightGBMCallback, LightGBMEval
from thresholdout.model_selection.loops import keras_callback, lightning_callback
from thresholdout.model_selection.optuna_study import GuardedObjective, stop_when_exhausted
from thresholdout.model_selection.scorer import GuardScorer
from thresholdout.model_selection.split import TrainSplit
from thresholdout.model_selection.xgboost_hooks import xgboost_callback

__all__ = [
    "GuardScorer",
    "GuardedObjective",
    "GuardedStopping",
    "LightGBMCallback",
    "LightGBMEval",
    "TrainSplit",
    "keras_callback",
    "lightning_callback",
    "stop_when_exhausted",
    "xgboost_callback",
]
