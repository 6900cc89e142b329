from .agreement import (
    Agreement as Agreement,
    agreement as agreement,
)
from .check_results import (
    Check as Check,
    Status as Status,
)
from .difference import (
    Difference as Difference,
    Ranking as Ranking,
    diff as diff,
    rank as rank,
)
from .guard import EvaluationGuard as EvaluationGuard
from .item_guard import guard_of_items as guard_of_items
from .reading import read as read
from .scores import Scores as Scores

__all__: list[str]
