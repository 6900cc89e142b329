"""Planning: the recommended procedure, expected half-widths, and a guard's parameters."""

from __future__ import annotations

from thresholdout.planning.algorithm_1 import algorithm_1
from thresholdout.planning.plan import Plan, Way
from thresholdout.planning.planner import plan

__all__ = ["Plan", "Way", "algorithm_1", "plan"]
