"""One page about a guard's life: what it was asked, what it answered, and what that is worth."""

from __future__ import annotations

from thresholdout.report.contents import GuardReport, report_of

__all__ = ["GuardReport", "report_of"]
