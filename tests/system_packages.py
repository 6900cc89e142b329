"""Programs from the system's packages, installed where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence

__all__ = ["apt_get", "privileged", "works"]


def privileged() -> list[str] | None:
    """Return what a command starts with to run as root, or None where packages cannot be installed."""
    root: list[str] = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") is None or (root and not works([*root, "true"], 10)):
        return None
    return root


def apt_get(packages: Sequence[str], seconds: float = 240.0) -> None:
    """Install Debian's packages where that is possible; never fail."""
    root = privileged()
    if root is None:
        return
    quiet = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=60"]
    until = time.monotonic() + seconds
    works([*quiet, "update"], until - time.monotonic())
    works([*quiet, "install", "-y", "--no-install-recommends", *packages], until - time.monotonic())


def works(words: Sequence[str], seconds: float) -> bool:
    """Run a command for so long at most, and say whether it ended well."""
    try:
        return subprocess.run(words, capture_output=True, timeout=max(seconds, 1), check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
