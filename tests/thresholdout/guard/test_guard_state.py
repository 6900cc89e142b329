"""The state of a guard, and the text that ledgers keep of it."""

from typing import Any, get_args

import numpy as np
import pytest

from graphs import Groups
from tests.cases import for_each
from thresholdout import Thresholdout
from thresholdout.errors import InputError
from thresholdout.guard.guard_state import GuardState
from thresholdout.mechanisms import LadderState
from thresholdout.planning.declaration import MechanismName

INNER = LadderState(log_error_budget=-4.5, asked=7, failed=0, releases=2, best=60, low=0.5, high=0.6).to_text()

TEXTS = {
    INNER: (0, ""),
    f"failures 1\n{INNER}": (1, ""),
    f"corrected 7 0.25 0.5\n{INNER}": (0, "7 0.25 0.5"),
    f"failures 12\ncorrected 7 0.25\n{INNER}": (12, "7 0.25"),
}


@for_each("text", TEXTS)
def test_the_text_is_read_and_written_as_it_is(text: str) -> None:
    state = GuardState.from_text(text, LadderState.from_text)
    assert (state.failures, state.corrected) == TEXTS[text]
    assert state.mechanism == LadderState.from_text(INNER)
    assert state.to_text() == text


def test_without_failures_and_corrections_it_is_the_text_of_the_mechanism() -> None:
    assert GuardState(LadderState.from_text(INNER)).to_text() == INNER


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::thresholdout.errors.WideAnswersWarning")
@for_each("mechanism", [*get_args(MechanismName), "groups"])
def test_what_a_guard_remembers_is_what_the_ledger_keeps(mechanism: Any) -> None:
    """A state that was written is not read again; another process, which reads it, must have the same one."""
    rng = np.random.default_rng(0)
    n, groups = 400, mechanism == "groups"
    guard = Thresholdout(
        rng.random(n),
        queries=40,
        mechanism=None if groups else mechanism,
        dependence=Groups(np.arange(n) // 2) if groups else None,
    )
    interaction, sources = guard._engine, set()
    for k in range(12):
        values = rng.random(n) < 0.8 if k % 2 else rng.random(n)
        sources.add(guard.ask(rng.random() if k % 3 == 0 else values, values).source)
        assert interaction._last is not None
        text, remembered = interaction._last
        assert text == guard._ledger.state(guard._id)
        assert remembered == GuardState.from_text(text, guard._mechanism.restore)
    assert "holdout" in sources


@for_each(
    "text",
    [
        f"failures -1\n{INNER}",
        f"failures \n{INNER}",
        f"failures one\n{INNER}",
        f"failures 1.0\n{INNER}",
        f"failures \u0661\n{INNER}",
        f"failures {'1' * 20}\n{INNER}",
        f"corrected 1\nfailures 1\n{INNER}",
        "failures 1",
        "failures 1\n",
        "",
    ],
)
def test_another_text_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(InputError) as caught:
        GuardState.from_text(text, LadderState.from_text)
    assert "0.6" not in str(caught.value)
