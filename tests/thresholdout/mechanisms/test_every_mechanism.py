"""What every mechanism has to keep: pure steps, limits that hold, states that survive as text, nothing secret shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.cases import for_each
from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.mechanisms import (
    ClaimsMechanism,
    ClaimsParameters,
    Known,
    Ladder,
    LadderParameters,
    Mechanism,
    Outcome,
    SparseVectorMechanism,
    SparseVectorParameters,
)
from thresholdout.mechanisms.claims.score import first_window, search
from thresholdout.noise.sources import SeededNoise

N = 400
AnyMechanism = Mechanism[Any, Any]

MECHANISMS: dict[str, Callable[[], AnyMechanism]] = {
    "sparse vector": lambda: SparseVectorMechanism(SparseVectorParameters(0.1, 0.01, budget=3, queries=12)),
    "ladder": lambda: Ladder(LadderParameters(queries=8), N),
    "claims": lambda: ClaimsMechanism(ClaimsParameters(queries=15, budget=9), N),
    "claims without limits": lambda: ClaimsMechanism(ClaimsParameters(), N),
    "claims without noise": lambda: ClaimsMechanism(ClaimsParameters(noise=0.0), N),
    "claims about dependent records": lambda: ClaimsMechanism(ClaimsParameters(inflation=3.0, effective=150.0), N),
}

every = pytest.mark.parametrize("make", MECHANISMS.values(), ids=MECHANISMS.keys())
queries = st.lists(st.tuples(st.floats(0, 1), st.integers(0, N)), max_size=20)


def read(mechanism: AnyMechanism, ones: int) -> Any:
    values = np.zeros(N)
    values[:ones] = 1.0
    return mechanism.read(values, N, (0.0, 1.0), "holdout_values")


@pytest.mark.slow
@every
@given(queries, st.integers(0, 2**32))
@settings(deadline=None, max_examples=40)
def test_an_interaction(make: Callable[[], AnyMechanism], asked: list[tuple[float, int]], seed: int) -> None:
    mechanism, noise = make(), SeededNoise(seed)
    state = mechanism.start(noise)
    for number, (train, ones) in enumerate(asked, start=1):
        before, left, values = state.to_text(), mechanism.remaining(state), read(mechanism, ones)
        restored = mechanism.restore(before)
        assert restored == state
        try:
            state, outcome = mechanism.step(restored, train, values, noise)
        except BudgetExhausted:
            with pytest.raises(BudgetExhausted):
                mechanism.step(mechanism.restore(before), train, values, noise)
            return
        # The state that went in is what it was, and what is left never grows.
        assert restored.to_text() == before
        remaining = mechanism.remaining(state)
        assert left is None or (remaining is not None and 0 <= remaining <= left)
        assert outcome.asked == number
        assert 0 <= outcome.hits < number
        assert 0.0 <= outcome.value <= 1.0
        assert outcome.interval is None or 0.0 <= outcome.interval[0] < outcome.interval[1] <= 1.0
        assert (outcome.about == "best") == isinstance(mechanism, Ladder)
        if outcome.source == "train" and outcome.interval is None:
            assert outcome.value == train
        check_interval(outcome, mechanism, before, state)


def check_interval(outcome: Outcome, mechanism: AnyMechanism, before: str, after: Any) -> None:
    """A mechanism that states intervals has a risk that is left, and never more than before."""
    assert (
        (outcome.interval is None) == (outcome.log_error_budget is None) == (mechanism.log_error_budget(after) is None)
    )
    if outcome.interval is None or outcome.log_error_budget is None:
        return
    low, high = outcome.interval
    assert 0.0 <= low <= outcome.value <= high <= 1.0
    earlier = mechanism.log_error_budget(mechanism.restore(before))
    assert earlier is not None
    assert outcome.log_error_budget == mechanism.log_error_budget(after)
    assert outcome.log_error_budget < earlier


@every
def test_the_same_noise_gives_the_same_outcome(make: Callable[[], AnyMechanism]) -> None:
    def run() -> list[object]:
        mechanism, noise, seen = make(), SeededNoise(3), list[object]()
        state = mechanism.start(noise)
        for ones in (200, 220, 390, 10):
            state, outcome = mechanism.step(state, 0.5, read(mechanism, ones), noise)
            seen += [state, outcome]
        return seen

    assert run() == run()


@every
def test_a_refusal_draws_nothing_and_shows_nothing(make: Callable[[], AnyMechanism]) -> None:
    class Silent:
        for_release = False

        def laplace(self, scale: object) -> int:
            raise AssertionError("drawn")

        def uniform(self, bits: object, size: object) -> NDArray[np.uint64]:
            raise AssertionError("drawn")

    mechanism, noise = make(), SeededNoise(1)
    state = mechanism.start(noise)
    values = read(mechanism, 123)
    for train in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="train"):
            mechanism.step(state, train, values, Silent())
    for wrong, error in (([0.5] * (N - 1), InputError), ([2.0] * N, InputError), (["a"] * N, InputTypeError)):
        with pytest.raises(error, match=r"^holdout_values must be"):
            mechanism.read(wrong, N, (0.0, 1.0), "holdout_values")
    assert "123" not in repr(values) or isinstance(values, float)


@every
def test_states_of_another_form_are_refused(make: Callable[[], AnyMechanism]) -> None:
    mechanism = make()
    text = mechanism.start(SeededNoise(1)).to_text()
    assert "\n" not in text
    for wrong in (
        "",
        "x",
        text.replace("/1", "/2", 1),
        text.split(" ")[0],
        "unknown/1 2 5",
        f"y {text}",
    ):
        with pytest.raises(InputError, match=r"^state must be .*; got a text of another form"):
            mechanism.restore(wrong)


@every
def test_what_the_base_promises(make: Callable[[], AnyMechanism]) -> None:
    mechanism = make()
    assert mechanism.epsilon(N) > 0
    assert 0.0 <= mechanism.noise_slack(N) < 1e-9
    assert mechanism.name


@for_each("pad", [None, 3])
def test_a_search_ends_whatever_the_outcomes_say(pad: int | None) -> None:
    """With noise the last claim is the whole range, which needs no test; it would go on for ever otherwise."""
    outcomes: list[Literal["above", "below"]] = []

    def contradict(lo: int, hi: int, log_level: float) -> Literal["above", "below"]:
        outcomes.append("above" if len(outcomes) % 2 else "below")
        assert len(outcomes) < 100
        return outcomes[-1]

    found = search(first_window(500.0, 10.0, 1000, 0, None), 1000, math.log(0.05), contradict, pad)
    assert found.outcomes == len(outcomes)
    assert found.log_error_budget < math.log(0.05)
    if pad is not None:
        assert (found.lo, found.hi) == (0, 1000)


def test_noise_does_not_refute_an_end_of_the_range() -> None:
    """No truth is below 0: a first claim from 0 on fails when the value is above it, and never on the other side."""
    for ones, train in ((0, 0.0), (N, 1.0)):
        for seed in range(50):
            mechanism, noise = ClaimsMechanism(ClaimsParameters(), N), SeededNoise(seed)
            values = mechanism.read(np.arange(N) < ones, N, (0.0, 1.0), "values", Known(binary=True))
            _, outcome = mechanism.step(mechanism.start(noise), train, values, noise)
            assert outcome.source == "train"
            assert outcome.interval is not None
            assert outcome.interval[ones > 0] == train
