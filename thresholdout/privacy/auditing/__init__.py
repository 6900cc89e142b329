"""Lower bounds on what a mechanism or learner leaks, measured instead of believed.

Modules are loaded when they are first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresholdout.privacy.auditing.audit_result import AuditResult
    from thresholdout.privacy.auditing.error_counts import audit_delta, audit_epsilon, max_auditable_epsilon
    from thresholdout.privacy.auditing.learner_audits import audit_learner
    from thresholdout.privacy.auditing.neighbours import Neighbours, deepfool, make_neighbour
    from thresholdout.privacy.auditing.output_audits import audit_outputs
    from thresholdout.privacy.auditing.probability_limits import clopper_pearson_upper
    from thresholdout.privacy.auditing.samplers import audit_sampler

_HOMES = {
    "AuditResult": "thresholdout.privacy.auditing.audit_result",
    "Neighbours": "thresholdout.privacy.auditing.neighbours",
    "audit_delta": "thresholdout.privacy.auditing.error_counts",
    "audit_epsilon": "thresholdout.privacy.auditing.error_counts",
    "audit_learner": "thresholdout.privacy.auditing.learner_audits",
    "audit_outputs": "thresholdout.privacy.auditing.output_audits",
    "audit_sampler": "thresholdout.privacy.auditing.samplers",
    "clopper_pearson_upper": "thresholdout.privacy.auditing.probability_limits",
    "deepfool": "thresholdout.privacy.auditing.neighbours",
    "make_neighbour": "thresholdout.privacy.auditing.neighbours",
    "max_auditable_epsilon": "thresholdout.privacy.auditing.error_counts",
}

__all__ = [
    "AuditResult",
    "Neighbours",
    "audit_delta",
    "audit_epsilon",
    "audit_learner",
    "audit_outputs",
    "audit_sampler",
    "clopper_pearson_upper",
    "deepfool",
    "make_neighbour",
    "max_auditable_epsilon",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
