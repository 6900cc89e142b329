"""A real browser without a screen, for pages.

Run as ``python -m tests.thresholdout.report.browser`` to install Chromium from the system's packages where that is
possible; it says in one line what it found, and never fails.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.system_packages import apt_get

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--force-device-scale-factor=1",
)


def program() -> str | None:
    """Return where the browser is, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def missing() -> str | None:
    """Return why no browser can be started here, or None."""
    return None if program() else "needs Chromium: make system-packages installs it where it can"


def install() -> str:
    """Install the system's package where that is possible, and say what there is now."""
    if program() is None:
        apt_get(["chromium"], 300.0)
        return "Chromium installed" if program() else "no Chromium and no way to install it here: its tests are skipped"
    return "Chromium found"


@contextmanager
def started() -> Iterator[Browser]:
    """Start a browser; every page of it is in a context of its own, which keeps nothing."""
    from playwright.sync_api import sync_playwright

    found = program()
    assert found is not None
    with sync_playwright() as playwright:
        driver = playwright.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield driver
        finally:
            driver.close()


if __name__ == "__main__":
    print(install())
