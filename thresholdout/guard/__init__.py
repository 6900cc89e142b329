"""The guard around a holdout, and what it consists of.

What a guard is in other processes is loaded with it: it has to be there when a guard is sent to one.
"""

from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.remote_guard import RemoteGuard

__all__ = ["RemoteGuard", "Thresholdout"]
