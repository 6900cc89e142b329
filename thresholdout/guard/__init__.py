"""Guards of a holdout.

`RemoteGuard` is imported here because its class must be registered before a guard is sent to another process.
"""

from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.remote_guard import RemoteGuard

__all__ = ["RemoteGuard", "Thresholdout"]
