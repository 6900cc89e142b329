"""Analysts who reuse a holdout, and what becomes of it with and without a guard.

An `Analyst` asks, something `Answering` answers, and a `Session` (see `interview`) knows the truth; `DependentRecords`
draws data whose records depend on each other as a model says; `run_experiment` runs a grid of settings by seeds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresholdout.simulation.analysts import AggregationAnalyst, BenignSearch, QuadraticAnalyst, Vote, agreement
    from thresholdout.simulation.dependent_records import DependentRecords
    from thresholdout.simulation.experiment import ExperimentError, run_experiment
    from thresholdout.simulation.feature_selection import FeatureSelectionAnalyst
    from thresholdout.simulation.simulated_session import (
        Analyst,
        Answering,
        Asking,
        Exchange,
        NaiveReuse,
        Part,
        Question,
        Reply,
        Session,
        SimulatedGuard,
        interview,
    )
    from thresholdout.simulation.strategic import ClusterAnalyst, StrategicAnalyst, around_hubs

__all__ = [
    "AggregationAnalyst",
    "Analyst",
    "Answering",
    "Asking",
    "BenignSearch",
    "ClusterAnalyst",
    "DependentRecords",
    "Exchange",
    "ExperimentError",
    "FeatureSelectionAnalyst",
    "NaiveReuse",
    "Part",
    "QuadraticAnalyst",
    "Question",
    "Reply",
    "Session",
    "SimulatedGuard",
    "StrategicAnalyst",
    "Vote",
    "agreement",
    "around_hubs",
    "interview",
    "run_experiment",
]

_HOMES = {
    "AggregationAnalyst": "thresholdout.simulation.analysts",
    "Analyst": "thresholdout.simulation.simulated_session",
    "Answering": "thresholdout.simulation.simulated_session",
    "Asking": "thresholdout.simulation.simulated_session",
    "BenignSearch": "thresholdout.simulation.analysts",
    "ClusterAnalyst": "thresholdout.simulation.strategic",
    "DependentRecords": "thresholdout.simulation.dependent_records",
    "Exchange": "thresholdout.simulation.simulated_session",
    "ExperimentError": "thresholdout.simulation.experiment",
    "FeatureSelectionAnalyst": "thresholdout.simulation.feature_selection",
    "NaiveReuse": "thresholdout.simulation.simulated_session",
    "Part": "thresholdout.simulation.simulated_session",
    "QuadraticAnalyst": "thresholdout.simulation.analysts",
    "Question": "thresholdout.simulation.simulated_session",
    "Reply": "thresholdout.simulation.simulated_session",
    "Session": "thresholdout.simulation.simulated_session",
    "SimulatedGuard": "thresholdout.simulation.simulated_session",
    "StrategicAnalyst": "thresholdout.simulation.strategic",
    "Vote": "thresholdout.simulation.analysts",
    "agreement": "thresholdout.simulation.analysts",
    "around_hubs": "thresholdout.simulation.strategic",
    "interview": "thresholdout.simulation.simulated_session",
    "run_experiment": "thresholdout.simulation.experiment",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
