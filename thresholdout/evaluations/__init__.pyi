from .agreement import (
    Agreement as Agreement,
    agreement as agreement,
)
from .difference import (
    Difference as Difference,
    Ranking as Ranking,
    diff as diff,
    rank as rank,
)
from .guard import (
    Check as Check,
    EvaluationGuard as EvaluationGuard,
    Status as Status,
)
from .item_guard import guard_of_items as guard_of_items
from .reading import read as read
from .scores import Scores as Scores

__all__: list[str]
