import pytest


@pytest.fixture(autouse=True)
def _repeatable_noise() -> None:
    """Leave the noise as it is: it is what is tested here."""
