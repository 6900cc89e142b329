"""A real browser without a screen, for pages.

Run as ``python -m tests.thresholdout.report.browser`` to install Chromium from the system's packages where that is
possible; it says in one line what it found, and never fails.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.system_packages import apt_get

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FLAGS = (
    "--headless",
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


def programs() -> tuple[str, str] | None:
    """Return the browser and its driver, or None."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


def missing() -> str | None:
    """Return why no browser can be started here, or None."""
    return None if programs() else "needs Chromium and chromedriver: make browser installs them where it can"


def install() -> str:
    """Install the system's packages where that is possible, and say what there is now."""
    if programs() is None:
        apt_get(["chromium", "chromium-driver"], 300.0)
        return (
            "Chromium installed" if programs() else "no Chromium and no way to install it here: its tests are skipped"
        )
    return "Chromium found"


@contextmanager
def started(folder: Path, width: int = 1000) -> Iterator[Chrome]:
    """Start a browser that keeps its files in a folder, and logs what it asks of a network."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    found = programs()
    assert found is not None
    options = ChromeOptions()
    options.binary_location = found[0]
    for flag in (*FLAGS, f"--user-data-dir={folder}", f"--window-size={width},900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = Chrome(options=options, service=Service(found[1]))
    try:
        yield driver
    finally:
        driver.quit()


if __name__ == "__main__":
    print(install())
