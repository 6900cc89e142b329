"""Private learners: minibatch gradient descent, Langevin dynamics, federated averaging, expectation propagation.

Modules are loaded when they are first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresholdout.learning.privacy_report import PrivacyReport
    from thresholdout.learning.streams import Streams, streams

_HOMES = {
    "PrivacyReport": "thresholdout.learning.privacy_report",
    "Streams": "thresholdout.learning.streams",
    "streams": "thresholdout.learning.streams",
}

__all__ = [
    "PrivacyReport",
    "Streams",
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
