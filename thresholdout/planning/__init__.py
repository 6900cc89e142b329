"""Parameters from a target: `plan` chooses a guard, the number of records, or the budget."""

from __future__ import annotations

from thresholdout.planning.outlook import Outlook, Way, outlook
from thresholdout.planning.planner import plan
from thresholdout.planning.result import Plan
from thresholdout.planning.use import Alternative

__all__ = ["Alternative", "Outlook", "Plan", "Way", "outlook", "plan"]
