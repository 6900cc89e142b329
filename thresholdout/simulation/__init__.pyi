from .analysts import (
    AggregationAnalyst as AggregationAnalyst,
    BenignSearch as BenignSearch,
    QuadraticAnalyst as QuadraticAnalyst,
    Vote as Vote,
    agreement as agreement,
)
from .dependent_records import DependentRecords as DependentRecords
from .experiment import (
    ExperimentError as ExperimentError,
    run_experiment as run_experiment,
)
from .feature_selection import FeatureSelectionAnalyst as FeatureSelectionAnalyst
from .simulated_session import (
    Analyst as Analyst,
    Answering as Answering,
    Asking as Asking,
    Exchange as Exchange,
    NaiveReuse as NaiveReuse,
    Part as Part,
    Question as Question,
    Reply as Reply,
    Session as Session,
    SimulatedGuard as SimulatedGuard,
    interview as interview,
)
from .strategic import (
    ClusterAnalyst as ClusterAnalyst,
    StrategicAnalyst as StrategicAnalyst,
    around_hubs as around_hubs,
)

__all__: list[str]
