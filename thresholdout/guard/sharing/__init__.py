"""One guard for several threads and processes."""

from thresholdout.guard.sharing.shared_objects import share

__all__ = ["share"]
