from .evaluation import EvaluationService as EvaluationService
from .prediction_guard import PredictionGuard as PredictionGuard

__all__: list[str]
