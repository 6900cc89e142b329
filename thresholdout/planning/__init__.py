"""Which way to ask, how wide answers will be, and a guard's parameters: `plan`."""

from __future__ import annotations

from thresholdout.planning.planner import plan
from thresholdout.planning.posterior import algorithm_1
from thresholdout.planning.result import Plan, Way

__all__ = ["Plan", "Way", "algorithm_1", "plan"]
