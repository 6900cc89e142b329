from .audit_result import AuditResult as AuditResult
from .claim_audits import ClaimAudit as ClaimAudit
from .error_counts import (
    audit_delta as audit_delta,
    audit_epsilon as audit_epsilon,
    models_needed as models_needed,
)
from .learner_audits import audit_learner as audit_learner
from .neighbours import make_neighbour as make_neighbour
from .one_training import (
    CanaryAudit as CanaryAudit,
    audit_canaries as audit_canaries,
    audit_training as audit_training,
)
from .output_audits import audit_outputs as audit_outputs
from .output_audits import audit_sampler as audit_sampler

# This is importable and not public.
from .neighbours import Neighbours as Neighbours

__all__: list[str]
