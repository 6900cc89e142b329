"""Private learners: minibatch gradient descent, Langevin dynamics, federated averaging, expectation propagation.

Modules are loaded when they are first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresholdout.learning.dpsgd.classifier import DPSGDClassifier
    from thresholdout.learning.dpsgd.descent import DivergedWarning
    from thresholdout.learning.dpsgd.regressor import DPSGDRegressor
    from thresholdout.learning.federated import FederatedRun, run_federated
    from thresholdout.learning.federated_classifier import FederatedClassifier
    from thresholdout.learning.langevin import LangevinRun, run_sgld
    from thresholdout.learning.privacy_report import PrivacyReport
    from thresholdout.learning.streams import Streams, streams

_HOMES = {
    "DPSGDClassifier": "thresholdout.learning.dpsgd.classifier",
    "DPSGDRegressor": "thresholdout.learning.dpsgd.regressor",
    "DivergedWarning": "thresholdout.learning.dpsgd.descent",
    "FederatedClassifier": "thresholdout.learning.federated_classifier",
    "FederatedRun": "thresholdout.learning.federated",
    "LangevinRun": "thresholdout.learning.langevin",
    "PrivacyReport": "thresholdout.learning.privacy_report",
    "Streams": "thresholdout.learning.streams",
    "run_federated": "thresholdout.learning.federated",
    "run_sgld": "thresholdout.learning.langevin",
    "streams": "thresholdout.learning.streams",
}

__all__ = [
    "DPSGDClassifier",
    "DPSGDRegressor",
    "DivergedWarning",
    "FederatedClassifier",
    "FederatedRun",
    "LangevinRun",
    "PrivacyReport",
    "Streams",
    "run_federated",
    "run_sgld",
    "streams",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
