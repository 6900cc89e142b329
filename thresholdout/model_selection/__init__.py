"""Guards in scikit-learn's model selection."""

from thresholdout.model_selection.scorer import GuardScorer
from thresholdout.model_selection.split import TrainSplit

__all__ = ["GuardScorer", "TrainSplit"]
