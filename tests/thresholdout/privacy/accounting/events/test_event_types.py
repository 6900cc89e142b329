"""Events: checks, equality, primitive forms, files."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.privacy.accounting.events.toml_events import events_to_toml
from thresholdout.errors import InputError
from thresholdout.mechanisms import NoiseRatios, interaction_epsilon
from thresholdout.privacy.accounting import (
    BlackBox,
    Composed,
    Event,
    FederatedRound,
    GaussianAnswer,
    LaplaceAnswer,
    PoissonGaussianStep,
    SelfComposed,
    SGLDStep,
    ThresholdoutInteraction,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
    read_events,
)
from thresholdout.privacy.accounting.events.composed_events import check_event, leaves
from thresholdout.privacy.accounting.events.event_files import (
    event_from_dict,
    event_to_dict,
)
from thresholdout.privacy.learning.privacy_report import account_for

ALL: list[Event] = [
    LaplaceAnswer(0.5, 0.01),
    LaplaceAnswer(2, 1, "add_remove"),
    GaussianAnswer(3),
    ThresholdoutInteraction(1000, 0.01, 3),
    ThresholdoutInteraction(1000, 0.01, 3, (2.0, 4.0, 1.0)),
    BlackBox(0.5),
    BlackBox(0.5, 1e-6, "add_remove"),
    PoissonGaussianStep(6, 0.0024),
    WithoutReplacementGaussianStep(6, 120, 50_000),
    WithReplacementGaussianStep(6, 120, 50_000),
    SGLDStep(0.5, 1.0, 64, 60_000),
    SGLDStep(0.5, 1.0, 64, 64),
    FederatedRound(1.0, 50, 1000),
    SelfComposed(BlackBox(0.1), 10**9),
    SelfComposed(SelfComposed(BlackBox(0.1), 2), 3),
    Composed([]),
    Composed([BlackBox(0.1), SelfComposed(Composed([GaussianAnswer(2), BlackBox(0.1)]), 4)]),
]


@for_each("event", ALL, ids=repr)
def test_values(event: Event, tmp_path: Path) -> None:
    assert event_from_dict(event_to_dict(event)) == event
    assert eval(repr(event), {**globals()}) == event
    assert pickle.loads(pickle.dumps(event)) == event
    assert hash(pickle.loads(pickle.dumps(event))) == hash(event)
    path = tmp_path / "events.json"
    path.write_text(json.dumps(event_to_dict(event)))
    assert read_events(path)[0].events == (event,)
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.anything = 1  # type: ignore[attr-defined]
    if event != Composed([]):
        path = tmp_path / "events.toml"
        path.write_text(events_to_toml(event))
        members = event.events if isinstance(event, Composed) else (event,)
        assert read_events(path) == (Composed(members), {})


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.recursive(
    st.sampled_from(ALL[:13]),
    lambda inner: st.builds(SelfComposed, inner, st.integers(1, 5)) | st.lists(inner, max_size=3).map(Composed),
    max_leaves=6,
))  # fmt: skip
def test_round_trips(event: Event) -> None:
    assert event_from_dict(event_to_dict(event)) == event
    if not isinstance(event, Composed):
        assert read_events(events_to_toml(event))[0] == Composed([event])
    assert event.primitive() is event or not isinstance(event, (SelfComposed, Composed))


def _deep(inner: Event, levels: int = 3000) -> Event:
    for _ in range(levels):
        inner = SelfComposed(Composed([inner]), 1)
    return inner


@pytest.mark.slow
def test_deep_nesting() -> None:
    """Whoever adds one event after the other to what was there nests thousands."""
    event = _deep(BlackBox(0.1))
    assert list(leaves(event)) == [(BlackBox(0.1), 1)]
    assert event == _deep(BlackBox(0.1))
    assert event != _deep(BlackBox(0.2))
    assert event != _deep(BlackBox(0.1), 2999)
    assert hash(event) == hash(_deep(BlackBox(0.1)))
    assert pickle.loads(pickle.dumps(event)) == copy.deepcopy(event) == event
    assert repr(event) == "SelfComposed(Composed([" * 3000 + "BlackBox(epsilon=0.1)" + "]), 1)" * 3000
    report = account_for(event, delta=1e-6, released="it", noise_multiplier=1.0)
    assert report.epsilon == pytest.approx(0.1, rel=1e-4)
    assert "BlackBox" in repr(report)


def test_levels_in_files() -> None:
    """What can be written can be read, and what is too deep is told."""
    most = SelfComposed(_deep(BlackBox(0.1), 24), 2)  # 50 levels: 49 composed ones, and the black box
    assert read_events(events_to_toml(most))[0] == Composed([most])
    assert event_from_dict(event_to_dict(SelfComposed(most, 3))) == SelfComposed(most, 3)
    with pytest.raises(InputError, match="more than 50 deep"):
        event_to_dict(Composed([SelfComposed(most, 3)]))
    text: object = {"kind": "black_box", "epsilon": 0.1}
    for _ in range(51):
        text = {"kind": "composed", "events": [text]}
    with pytest.raises(InputError, match="more than 50 deep"):
        event_from_dict(text)
    lists: object = [BlackBox(0.1)]
    for _ in range(3000):
        lists = [lists]
    with pytest.raises(InputError, match="lists within lists"):
        check_event(lists)


@for_each(
    ("make", "match"),
    [
        (lambda: LaplaceAnswer(0), "scale"),
        (lambda: LaplaceAnswer(1, -1), "sensitivity"),
        (lambda: LaplaceAnswer(1, 1, "swap"), "adjacency"),  # type: ignore[arg-type]
        (lambda: GaussianAnswer(math.nan), "std"),
        (lambda: GaussianAnswer(1e-9), "sensitivity"),
        (lambda: ThresholdoutInteraction(0, 0.1, 1), "records"),
        (lambda: ThresholdoutInteraction(10, 0.1, 1, (1, 2)), "ratios"),  # type: ignore[arg-type]
        (lambda: BlackBox(-1), "epsilon"),
        (lambda: BlackBox(1, 1), "delta"),
        (lambda: PoissonGaussianStep(6, 0), "rate"),
        (lambda: PoissonGaussianStep(6, 1), "rate"),
        (lambda: PoissonGaussianStep(1e-3, 0.5), "noise_multiplier"),
        (lambda: WithoutReplacementGaussianStep(6, 50, 50), "batch_size"),
        (lambda: WithReplacementGaussianStep(6, 0, 50), "batch_size"),
        (lambda: SGLDStep(1, 1, 65, 64), "records"),
        (lambda: FederatedRound(1, 51, 50), "clients"),
        (lambda: SelfComposed(BlackBox(1), 0), "count"),
        (lambda: SelfComposed("x", 1), "event"),  # type: ignore[arg-type]
        (lambda: Composed(BlackBox(1)), "events"),  # type: ignore[arg-type]
        (lambda: Composed([1]), "event"),  # type: ignore[list-item]
        (lambda: Composed(3), "events must be a list of events, such as.*; got an int"),  # type: ignore[arg-type]
        (lambda: check_event(SimpleNamespace(event=BlackBox(1))), "the .event of this SimpleNamespace"),
        (lambda: check_event(SimpleNamespace(event=None)), "an event, such as"),
    ],
)
def test_refused_values(make: object, match: str) -> None:
    with pytest.raises(InputError, match=match):
        make()  # type: ignore[operator]


@for_each(
    ("text", "match"),
    [
        ("\n[[event]]\nkind = 'nothing'\n", "kind"),
        ("\n[[event]]\nstd = 2.0\n", "kind"),
        ("\n[[event]]\nkind = 'gaussian_answer'\nsigma = 2.0\n", "sigma"),
        ("\n[[event]]\nkind = 'gaussian_answer'\n", "std"),
        ("\n[[event]]\nkind = 'gaussian_answer'\nstd = 2.0\ncount = 0\n", "count"),
        ("\n[[event]]\nkind = 'composed'\nevents = 3\n", "events"),
        ("\nevent = [1]\n", "event"),
        ("\ndelta = 1e-5\n", "event"),
        ("\n[[event]\n", "read"),
    ],
)
def test_refused_files(text: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        read_events(text)


def test_what_learners_do_to_the_sum() -> None:
    """Noise on the mean gradient is batch_size times as much on the sum."""
    step = SGLDStep(0.5, 2.0, 64, 60_000).primitive()
    assert isinstance(step, WithoutReplacementGaussianStep)
    assert step.noise_multiplier == pytest.approx(0.5 * 64 / 2.0)
    assert step.noise_multiplier < 0.5 * 64 / 2.0
    whole = SGLDStep(0.5, 2.0, 64, 64).primitive()
    assert isinstance(whole, GaussianAnswer)
    assert whole.sensitivity / whole.std == pytest.approx(2 * 2.0 / 64 / 0.5)
    assert whole.adjacency == "replace_one"
    a_round = FederatedRound(1.0, 50, 1000).primitive()
    assert isinstance(a_round, WithoutReplacementGaussianStep)
    assert (a_round.batch_size, a_round.records) == (50, 1000)


def test_an_interaction_with_a_guard() -> None:
    event = ThresholdoutInteraction(10_000, 0.01, 10, (2, 4, 1))
    assert event.epsilon == interaction_epsilon(10_000, 0.01, 10, NoiseRatios(2.0, 4.0, 1.0))
    assert dataclasses.replace(event, budget=20).epsilon == pytest.approx(2 * event.epsilon)
