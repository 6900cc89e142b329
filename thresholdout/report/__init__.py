"""Report of a guard on one page: its queries, its answers, and its certificate."""

from __future__ import annotations

from thresholdout.report.contents import GuardReport, report_of

__all__ = ["GuardReport", "report_of"]
