from .counting import count_queries as count_queries
from .guarded_search import GuardedSearchCV as GuardedSearchCV
from .guarded_stopping import GuardedStopping as GuardedStopping
from .lightgbm_hooks import (
    LightGBMCallback as LightGBMCallback,
    LightGBMEval as LightGBMEval,
)
from .optuna_study import (
    GuardedObjective as GuardedObjective,
    stop_when_exhausted as stop_when_exhausted,
)
from .trainer_hooks import (
    keras_callback as keras_callback,
    lightning_callback as lightning_callback,
    transformers_callback as transformers_callback,
)
from .xgboost_hooks import xgboost_callback as xgboost_callback

__all__: list[str]
