"""Small private fits, as tests make them, are worth nothing, and say so; tests of that look for it by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests of this folder pass where a learner says that its noise is too much."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LowSignalWarning"))
