"""Analysts who reuse a holdout, and what becomes of it with and without a guard.

An `Analyst` asks, something `Answering` answers, and a `Session` (see `interview`) knows the truth; `DependentRecords`
draws data whose records depend on each other as a model says; `run_experiment` runs a grid of settings by seeds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresholdout.simulation.analysts import AggregationAnalyst, BenignSearch, QuadraticAnalyst, Vote, agreement
    from thresholdout.simulation.experiment import ExperimentError, run_experiment
    from thresholdout.simulation.feature_selection import FeatureSelectionAnalyst
    from thresholdout.simulation.records import DependentRecords
    from thresholdout.simulation.session import (
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
    "AggregationAnalyst": "analysts",
    "Analyst": "session",
    "Answering": "session",
    "Asking": "session",
    "BenignSearch": "analysts",
    "ClusterAnalyst": "strategic",
    "DependentRecords": "records",
    "Exchange": "session",
    "ExperimentError": "experiment",
    "FeatureSelectionAnalyst": "feature_selection",
    "NaiveReuse": "session",
    "Part": "session",
    "QuadraticAnalyst": "analysts",
    "Question": "session",
    "Reply": "session",
    "Session": "session",
    "SimulatedGuard": "session",
    "StrategicAnalyst": "strategic",
    "Vote": "analysts",
    "agreement": "analysts",
    "around_hubs": "strategic",
    "interview": "session",
    "run_experiment": "experiment",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"thresholdout.simulation.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
