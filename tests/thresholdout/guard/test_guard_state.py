"""The state of a guard, and the text that ledgers keep of it."""

import pytest

from thresholdout.errors import InputError
from thresholdout.guard.guard_state import GuardState
from thresholdout.mechanisms.gaussian import GaussianState
from thresholdout.mechanisms.splitting import SplittingState

INNER = "gaussian/1 7 2"

TEXTS = {
    INNER: (0, ""),
    f"failures 1\n{INNER}": (1, ""),
    f"past 7 0.25 0.5\n{INNER}": (0, "7 0.25 0.5"),
    f"failures 12\npast 7 0.25\n{INNER}": (12, "7 0.25"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_is_read_and_written_as_it_is(text: str) -> None:
    state = GuardState.from_text(text, GaussianState.from_text)
    assert (state.failures, state.past) == TEXTS[text]
    assert state.mechanism == GaussianState.from_text(INNER)
    assert state.to_text() == text


def test_without_failures_and_past_it_is_the_text_of_the_mechanism() -> None:
    assert GuardState(SplittingState.from_text("splitting/1 3")).to_text() == "splitting/1 3"


@pytest.mark.parametrize(
    "text",
    [
        f"failures -1\n{INNER}",
        f"failures \n{INNER}",
        f"failures one\n{INNER}",
        f"failures 1.0\n{INNER}",
        f"failures \u0661\n{INNER}",
        f"failures {'1' * 20}\n{INNER}",
        f"past 1\nfailures 1\n{INNER}",
        "failures 1",
        "failures 1\n",
        "",
    ],
)
def test_another_text_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(InputError) as caught:
        GuardState.from_text(text, GaussianState.from_text)
    assert "7 2" not in str(caught.value)
