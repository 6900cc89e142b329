from .metrics import (
    absolute_error as absolute_error,
    log_loss as log_loss,
    squared_error as squared_error,
    top_k_accuracy as top_k_accuracy,
)
from .statistics import (
    bounded_difference as bounded_difference,
    cohen_kappa as cohen_kappa,
    f1 as f1,
    fbeta as fbeta,
    jaccard as jaccard,
    median_absolute_error as median_absolute_error,
    precision as precision,
    r2 as r2,
    recall as recall,
    root_mean_squared_error as root_mean_squared_error,
    sliced as sliced,
)

__all__: list[str]
