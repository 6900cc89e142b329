"""Measured lower bounds on the leakage of a mechanism or learner.

Modules are loaded when they are first used, so that importing the package stays fast.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "AuditResult",
    "CanaryAudit",
    "ClaimAudit",
    "audit_canaries",
    "audit_delta",
    "audit_epsilon",
    "audit_learner",
    "audit_outputs",
    "audit_sampler",
    "audit_training",
    "make_neighbour",
    "models_needed",
]
