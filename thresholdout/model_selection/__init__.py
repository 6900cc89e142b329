"""Guards in scikit-learn's model selection."""

from thresholdout.model_selection.guarded_stopping import GuardedStopping
from thresholdout.model_selection.lightgbm_hooks import LightGBMCallback, LightGBMEval
from thresholdout.model_selection.scorer import GuardScorer
from thresholdout.model_selection.split import TrainSplit
from thresholdout.model_selection.xgboost_hooks import xgboost_callback

__all__ = ["GuardScorer", "GuardedStopping", "LightGBMCallback", "LightGBMEval", "TrainSplit", "xgboost_callback"]
