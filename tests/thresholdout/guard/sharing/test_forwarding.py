"""What stands for a guard, a K-fold guard, a gate or a scorer elsewhere has all that these have."""

import copy
import inspect
import pickle
from collections.abc import Callable
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from thresholdout import Thresholdout
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.gates import Gate
from thresholdout.guard.kfold import KFoldGuard
from thresholdout.guard.remote_guard import RemoteGuard
from thresholdout.guard.scorer import GuardScorer
from thresholdout.guard.sharing.shared_objects import Proxy, Reference, forwarding, reference_of, share

X = np.arange(400.0).reshape(200, 2)
Y = np.arange(200) % 2


def guard() -> Thresholdout:
    return Thresholdout((X[:100], Y[:100]), train=(X[100:], Y[100:]))


def model() -> DummyClassifier:
    return DummyClassifier().fit(X[100:], Y[100:])


MADE: dict[type, Callable[[], Any]] = {
    Thresholdout: guard,
    KFoldGuard: lambda: KFoldGuard((X, Y)),
    Gate: lambda: guard().gate(model()),
    GuardScorer: lambda: guard().scorer(cv="training"),
}

BUILT_ON_OTHERS: dict[type, set[str]] = {
    Thresholdout: {"releases"},
    KFoldGuard: {"releases"},
    Gate: {"propose"},
    GuardScorer: {"guard", "metrics", "get_metadata_routing"},
}
"""What is computed in the other process, from what is served. Nothing is refused there."""

KINDS = pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.__name__)


def stand_in(kind: type) -> type[Proxy]:
    there = share(MADE[kind]())
    assert isinstance(there, kind)
    found = type(there)
    assert issubclass(found, Proxy)
    assert not issubclass(found, kind)
    return found


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


@KINDS
def test_every_public_name_is_served_or_built_on_what_is_served(kind: type) -> None:
    made = MADE[kind]()
    served = stand_in(kind).serves
    assert public(made) - served == BUILT_ON_OTHERS[kind]
    for name in served:
        attrgetter(name)(made)
    there = share(made)
    assert all(hasattr(there, name) for name in public(made))


@KINDS
def test_nothing_that_is_served_comes_from_the_class_of_the_object(kind: type) -> None:
    for name in stand_in(kind).serves:
        name = name.partition(".")[0]  # what the releases of a guard serve is called on its stand-in
        assert any(name in vars(base) for base in (stand_in(kind), Proxy)), name


@KINDS
def test_signatures_and_docstrings_are_those_of_the_object(kind: type) -> None:
    seen = set()
    for name in stand_in(kind).serves & vars(stand_in(kind)).keys():
        here, there = inspect.getattr_static(kind, name, None), inspect.getattr_static(stand_in(kind), name)
        seen.add(type(there))
        if isinstance(there, cached_property):
            assert here is None, name
        elif inspect.isfunction(there):
            assert inspect.signature(there) == inspect.signature(here), name
            if hasattr(there, "__wrapped__"):
                assert (there.__doc__, there.__name__) == (here.__doc__, name)
        else:
            assert isinstance(here, property)
            assert there.fset is None
            assert there.__doc__ == here.__doc__ or name == "train"
    assert len(seen) >= 2


@KINDS
def test_properties_and_attributes_say_the_same_elsewhere(kind: type) -> None:
    made = MADE[kind]()
    there = share(made)
    compared = set()
    for name in sorted(stand_in(kind).serves - {"__repr__", "train", "history", "folds", "_declared", "metric"}):
        if "." in name or inspect.isfunction(inspect.getattr_static(kind, name, None)):
            continue
        expected, found = getattr(made, name), getattr(there, name)
        compared.add(name)
        same = found is expected if isinstance(expected, tuple(MADE)) else repr(found) == repr(expected)
        assert same, name
    assert len(compared) >= 4


class Recorded:
    """Keeps what would be sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> str:
        self.sent.append((name, args, kwargs))
        return f"answer {len(self.sent)}"


class Origin:
    def single(self, value: float, *, key: str | None = None) -> float:
        """Ask."""
        return value

    def several(self, values: list[float], *, keys: list[str] | None = None) -> float:
        return values[0]

    def plain(self, key: str, values: object = ()) -> str:
        return key

    @property
    def size(self) -> int:
        """How large."""
        return 1


class Copy:
    single: Any = forwarding(Origin, "single")
    several: Any = forwarding(Origin, "several")
    plain: Any = forwarding(Origin, "plain")
    size: Any = forwarding(Origin, "size")
    made_with: Any = forwarding(Origin, "made_with")

    def __init__(self) -> None:
        self._reference = Recorded()


def test_a_query_gets_a_key_of_its_own_and_keeps_one_that_was_given() -> None:
    there = Copy()
    assert [there.single(0.5), there.single(0.5, key=None), there.single(0.5, key="mine")] == [
        "answer 1",
        "answer 2",
        "answer 3",
    ]
    first, second, third = there._reference.sent
    assert (first[0], first[1], first[2].keys()) == ("single", (0.5,), {"key"})
    assert len({first[2]["key"], second[2]["key"]}) == 2
    assert len(first[2]["key"]) == 32
    assert third == ("single", (0.5,), {"key": "mine"})


def test_a_list_gets_a_key_for_each_query() -> None:
    there = Copy()
    there.several([1, 2, 3])
    there.several(values=[1, 2], keys=None)
    there.several({"a": 1, "b": 2}, keys=["x", "y"])
    there.several()
    sent = [kwargs["keys"] for _, _, kwargs in there._reference.sent]
    assert [len(keys) for keys in sent] == [3, 2, 2, 0]
    assert len({key for keys in sent[:2] for key in keys}) == 5
    assert sent[2] == ["x", "y"]


def test_no_key_is_added_where_none_is_chosen() -> None:
    there = Copy()
    there.plain("k")
    there.plain(key="k", values=[1, 2])
    assert there._reference.sent == [("plain", ("k",), {}), ("plain", (), {"key": "k", "values": [1, 2]})]


def test_properties_are_read_each_time_and_attributes_once() -> None:
    there = Copy()
    assert [there.size, there.size] == ["answer 1", "answer 2"]
    assert [there.made_with, there.made_with] == ["answer 3", "answer 3"]
    assert [name for name, _, _ in there._reference.sent] == ["size", "size", "made_with"]
    assert (Copy.single.__doc__, Copy.size.__doc__) == ("Ask.", "How large.")


def test_what_a_guard_refuses_it_refuses_elsewhere() -> None:
    here = guard()
    asked: Any
    for asked in (here, RemoteGuard(reference_of(here))):
        with pytest.raises(InputError, match=r"key must be .*; got an empty string"):
            asked.final_check(model(), key="", cv="training")
        with pytest.raises(InputError, match=r"keys must be a list of 1.*; got a list of 0"):
            asked.score_all([model()], keys=[], cv="training")
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = asked.nothing
    assert len(here.history) == 0


def test_what_cannot_be_sent_is_refused_with_its_reason() -> None:
    there = RemoteGuard(reference_of(guard()))
    with pytest.raises(InputTypeError, match=r"^ask_all must be called with arguments that pickle can write"):
        there.ask_all(pair for pair in [(0.5, np.ones(100))])
    with pytest.raises(InputTypeError, match=r"^queries must be a list; got an ndarray"):
        there.ask_all(np.ones((1, 2)))
    assert len(there.history) == 0


@KINDS
def test_what_lives_in_a_process_that_is_gone_can_be_shown(kind: type) -> None:
    gone = Reference("/nowhere/listener", b"key", "token", "process 1 on nowhere")
    assert repr(stand_in(kind)(gone)) == f"<{kind.__name__} in process 1 on nowhere, which does not answer>"


class Own(Thresholdout):
    """A class of a user's own."""


def test_a_subclass_is_shared_as_a_guard() -> None:
    own = Own((X[:100], Y[:100]), train=(X[100:], Y[100:]))
    assert copy.deepcopy(own) is pickle.loads(pickle.dumps(own)) is own
    there = share(own)
    assert issubclass(type(there), RemoteGuard)
    assert isinstance(there, Thresholdout)


class _Recorded:
    """A reference that keeps what it was asked."""

    def call(self, *values: object, **named: object) -> object:
        self.asked = values, named
        return "answer"


def test_a_column_is_asked_where_the_guard_is() -> None:
    remote, reference = object.__new__(RemoteGuard), _Recorded()
    remote._reference = reference  # type: ignore[assignment]
    told: object = remote.score("column", name="mine", precise=True)
    assert told == "answer"
    values, named = reference.asked
    assert values == ("score", "column", "accuracy")
    assert named.pop("key")
    assert named == {"cv": None, "train_values": None, "sample_weight": None, "name": "mine", "precise": True}
