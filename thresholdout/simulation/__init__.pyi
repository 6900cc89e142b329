from .analysts import (
    AggregationAnalyst as AggregationAnalyst,
    BenignSearch as BenignSearch,
    QuadraticAnalyst as QuadraticAnalyst,
)
from .comparison import (
    Simulation as Simulation,
    simulate as simulate,
)
from .dependent_records import DependentRecords as DependentRecords
from .experiment import run_experiment as run_experiment
from .feature_selection import FeatureSelectionAnalyst as FeatureSelectionAnalyst
from .simulated_session import (
    NaiveReuse as NaiveReuse,
    SimulatedGuard as SimulatedGuard,
    interview as interview,
)
from .strategic import (
    ClusterAnalyst as ClusterAnalyst,
    StrategicAnalyst as StrategicAnalyst,
    around_hubs as around_hubs,
)

__all__: list[str]
