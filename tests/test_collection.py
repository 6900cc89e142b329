"""What is collected in one process does not depend on the order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

FILES = ["thresholdout/guard/content_keys.py", "tests/thresholdout/guard/test_query_content.py"]


@pytest.mark.slow
def test_a_module_whose_examples_come_first_is_the_one_that_tests_know() -> None:
    command = [sys.executable, "-m", "pytest", "-q", *FILES, "-k", "version_of or what_cannot_be_told"]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout
