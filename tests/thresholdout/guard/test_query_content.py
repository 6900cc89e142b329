"""What counts in the content of a query, what does not, and what cannot be told."""

from __future__ import annotations

import builtins
import copyreg
import datetime
import enum
import functools
import itertools
import os
import random
import sys
import time
import types
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.sizes import sizes
from thresholdout import Thresholdout
from thresholdout.guard.content_keys import Unrecognised, content_digest, content_key


def defined(source: str, name: str = "f", **names: Any) -> Any:
    """Define something as a cell of a notebook does."""
    space: dict[str, Any] = {"__name__": "__main__", "np": np, **names}
    exec(source, space)
    return space[name]


def closing_over(value: Any) -> Callable[[], Any]:
    return lambda: value


class Holder:
    """Of a module that nobody has installed."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def one(self) -> Any:
        return self.value

    def other(self) -> Any:
        return [self.value]


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def masked(*mask: bool) -> Any:
    return np.ma.MaskedArray([1.0, 2.0], mask=list(mask))


def borrowed() -> Any:
    @functools.wraps(np.mean)
    def mean(x: Any) -> Any:
        return x

    return mean


def bound(function: Callable[..., Any], thing: Any) -> Any:
    return types.MethodType(function, thing)


def generator_state(draws: int) -> np.random.RandomState:
    source = np.random.RandomState(0)
    source.rand(draws)
    return source


STRUCTURED = np.dtype([("a", "u1"), ("b", "f8")], align=True)


def structured(filling: int) -> np.ndarray[Any, Any]:
    array = np.full(3 * STRUCTURED.itemsize, filling, dtype=np.uint8).view(STRUCTURED)
    array["a"], array["b"] = [1, 2, 3], [0.5, 1.5, 2.5]
    return array


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "kinds of number": (1, 1.0),
    "a truth and a number": (1, True),
    "signs of zero": (0.0, -0.0),
    "signs of zero in arrays": (np.array([0.0]), np.array([-0.0])),
    "shapes": (np.zeros((2, 3)), np.zeros((3, 2))),
    "dimensions": (np.zeros(1), np.zeros(())),
    "types of arrays": (np.zeros(2, "f8"), np.zeros(2, "i8")),
    "order of bytes": (np.array([1], "<i4"), np.array([16777216], ">i4")),
    "units of time": (np.array([1], "M8[s]"), np.array([1], "M8[ms]")),
    "masks": (masked(True, False), masked(False, True)),
    "arrays of objects": (np.array(["a", None], object), np.array(["b", None], object)),
    "an array and a list": (np.array([1, 2]), [1, 2]),
    "large arrays": (np.zeros(10_000), np.append(np.zeros(9_999), 1.0)),
    "order in a dict": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "sets": ({1, 2}, {1, 3}),
    "a set and a frozen one": ({1}, frozenset({1})),
    "nesting": ([[1], 2], [1, [2]]),
    "texts and bytes": ("a", b"a"),
    "closures": (closing_over(1), closing_over(2)),
    "closures of arrays": (closing_over(np.zeros(2)), closing_over(np.ones(2))),
    "defaults": (defined("def f(x=1): return x"), defined("def f(x=2): return x")),
    "keyword defaults": (defined("def f(*, x=1): return x"), defined("def f(*, x=2): return x")),
    "constants": (defined("f = lambda: 1"), defined("f = lambda: 2")),
    "operators": (defined("f = lambda x: x < 1"), defined("f = lambda x: x <= 1")),
    "globals": (defined("f = lambda: t", t=1), defined("f = lambda: t", t=2)),
    "globals of what is called": (
        defined("def g(): return t\ndef f(): return g()", t=1),
        defined("def g(): return t\ndef f(): return g()", t=2),
    ),
    "globals deep inside": (defined("f = lambda: [lambda: t]", t=1), defined("f = lambda: [lambda: t]", t=2)),
    "a name that is defined by now": (defined("f = lambda: len"), defined("f = lambda: len", len=3)),
    "attributes of a function": (defined("def f(): pass\nf.a = 1"), defined("def f(): pass\nf.a = 2")),
    "slices": (defined("f = lambda x: x[..., 0]"), defined("f = lambda x: x[None, 0]")),
    "handlers of errors": (
        defined("def f(x):\n try: return x\n except ValueError: return 1"),
        defined("def f(x):\n try: return x\n except KeyError: return 1"),
    ),
    "partial functions": (functools.partial(np.dot, np.zeros(2)), functools.partial(np.dot, np.ones(2))),
    "what is called": (np.sin, np.cos),
    "a function that borrows a name": (np.mean, borrowed()),
    "methods": (Holder(1).one, Holder(1).other),
    "objects of methods": (Holder(1).one, Holder(2).one),
    "functions bound to an object": (bound(Holder.one, 1), bound(Holder.other, 1)),
    "classes": (defined("class f:\n x = 1"), defined("class f:\n x = 2")),
    "bases": (defined("class f(int): pass"), defined("class f(float): pass")),
    "properties": (
        defined("class f:\n x = property(lambda self: 1)"),
        defined("class f:\n x = property(lambda self: 2)"),
    ),
    "instances": (Holder(1), Holder(2)),
    "instances of classes that were edited": (defined("class f:\n x = 1")(), defined("class f:\n x = 2")()),
    "slots": (Slotted(1), Slotted(2)),
    "members of an enumeration": (Color.RED, Color.BLUE),
    "cached functions": (
        functools.lru_cache(defined("def f(): return 1")),
        functools.lru_cache(defined("def f(): return 2")),
    ),
    "recursion": (
        defined("def f(n): return n and f(n - 1)"),
        defined("def f(n): return n or f(n - 1)"),
    ),
    "who calls whom": (
        defined("def g(n): return n and f(n)\ndef f(n): return g(n)"),
        defined("def g(n): return n and g(n)\ndef f(n): return g(n)"),
    ),
    "states of a generator": (generator_state(0), generator_state(1)),
}

EQUAL: dict[str, tuple[Any, Any]] = {
    "layouts of an array": (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
    "steps of an array": (np.arange(10)[::2], np.arange(0, 10, 2)),
    "what is between fields": (structured(0), structured(255)),
    "orders of a set": ({1, 2**61, 3}, {2**61, 3, 1}),
    "sharing": ([[1.5]] * 2, [[1.5], [1.5]]),
    "not numbers": (np.array([np.nan]), np.array([np.nan])),
    "texts that are the same object": (["ab", "ab"], ["".join(["a", "b"]), "ab"]),
    "the line of a cell": (defined("f = lambda x: x + 1"), defined("\n\n\nf = lambda x: x + 1")),
    "globals that are not used": (defined("f = lambda: 1", t=1), defined("f = lambda: 1", t=2)),
    "definitions again": (defined("class f:\n def m(self): return f"), defined("class f:\n def m(self): return f")),
    "recursion again": (defined("def f(n): return f(n - 1)"), defined("def f(n): return f(n - 1)")),
    "functions of NumPy's kind": ([np.sin, scipy.special.expit], [np.sin, scipy.special.expit]),
    "values of Python": (closing_over(datetime.date(2020, 1, 1)), closing_over(datetime.date(2020, 1, 1))),
    "generators of one seed": (np.random.default_rng(1), np.random.default_rng(1)),
}


@for_each("what", DIFFERENT)
def test_what_counts(what: str) -> None:
    one, other = DIFFERENT[what]
    first, second = content_digest(one), content_digest(other)
    assert first != second
    assert content_digest([one, other]) != content_digest([other, one])
    assert (content_digest(one), content_digest(other)) == (first, second)


@for_each("what", EQUAL)
def test_what_does_not_count(what: str) -> None:
    one, other = EQUAL[what]
    assert content_digest(one) == content_digest(other)


def test_what_was_added_to_the_builtins_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    query, digests = defined("f = lambda x: len(x) > added_threshold"), set()
    for threshold in (1.0, 2.0):
        monkeypatch.setattr(builtins, "added_threshold", threshold, raising=False)
        digests.add(content_digest(query))
    assert len(digests) == 2


class Hooked:
    def __getstate__(self) -> dict[str, Any]:
        return {}


class Kind(np.ndarray[Any, Any]):
    pass


class Registered:
    pass


def test_a_reducer_of_a_class_may_drop_something(monkeypatch: pytest.MonkeyPatch) -> None:
    assert content_key(Registered()) is not None
    monkeypatch.setitem(copyreg.dispatch_table, Registered, lambda thing: (Registered, ()))
    assert content_key(Registered()) is None


def test_a_module_that_nobody_has_installed_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "edited_today.py").write_text("def g(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    query = defined("import edited_today\nf = lambda x: edited_today.g(x)")
    monkeypatch.delitem(sys.modules, "edited_today", raising=False)
    assert content_key(query) is None
    assert content_key(defined("from edited_today import g\nf = lambda x: g(x)")) is not None


UNKNOWN: dict[str, Callable[[], Any]] = {
    "random numbers": lambda: defined("f = lambda X: np.random.rand(len(X))"),
    "random numbers of Python": lambda: lambda X: random.choice(X),
    "a clock": lambda: lambda X: time.monotonic() < X,
    "a clock by its function": lambda: defined("f = lambda X: X > clock()", clock=time.monotonic),
    "the environment": lambda: lambda X: os.sep,
    "a file": lambda: defined("f = lambda X: open('a').read()"),
    "a table of a file": lambda: defined("import pandas as pd\nf = lambda X: pd.read_csv('a')"),
    "a module inside": lambda: defined("def f(X):\n import time\n return X"),
    "what is deep inside": lambda: defined("f = lambda X: [lambda: np.random.rand()]"),
    "what is called": lambda: defined("def g(): return open('a')\nf = lambda X: g()"),
    "evaluated text": lambda: defined("f = lambda X: eval('1')"),
    "a function of NumPy's kind": lambda: np.frompyfunc(abs, 1, 1),
    "a path": lambda: closing_over(Path("a")),
    "an open file": lambda: closing_over(sys.__stdin__),
    "a generator": lambda: (x for x in range(2)),
    "own pickling": lambda: Hooked(),
    "a kind of array": lambda: np.zeros(2).view(Kind),
    "an object that can do anything": lambda: defined("f = lambda X: c.get('a')", c=[urllib.request.Request("a:b")]),
    "an attribute by its name": lambda: defined("f = lambda X: getattr(np, 'random')"),
    "what the text of a query names": lambda: defined("f = lambda X: X.query('a > @t')", t=1.0),
    "a module of another one": lambda: defined("import logging\nf = lambda X: logging.sys.argv"),
    "a setting": lambda: defined("import sklearn\nf = lambda X: X > sklearn.get_config()['working_memory']"),
    "what a class says of itself": lambda: defined("f = lambda X: X > len(c.__doc__)", c=type("C", (), {})),
    "adaptive": lambda: closing_over(Thresholdout(np.arange(100.0))),
}


@for_each("what", UNKNOWN)
def test_what_cannot_be_told_is_refused(what: str) -> None:
    with pytest.raises(Unrecognised, match=r"."):
        content_digest(UNKNOWN[what]())


def test_whatever_a_pickle_raises_is_no_key_and_an_interrupt_is_one() -> None:
    class Failing:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def __reduce_ex__(self, protocol: Any) -> Any:
            raise self.error

    assert content_key(Failing(ZeroDivisionError())) is None
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]
    assert content_key(deep) is None
    while deep:
        deep = deep.pop()


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.frozensets(st.integers(0, 3), max_size=3)
    ),
    max_leaves=8,
)


def written(thing: Any) -> str:
    """Write a thing so that equal texts are equal things, with the order of dicts and without that of sets."""
    if isinstance(thing, (frozenset, set)):
        return f"{type(thing).__name__}({sorted(map(written, thing))})"
    if isinstance(thing, dict):
        return "{" + ", ".join(f"{written(key)}: {written(value)}" for key, value in thing.items()) + "}"
    if isinstance(thing, (list, tuple)):
        return f"{type(thing).__name__}({', '.join(map(written, thing))})"
    return repr(thing)


@sizes("examples", 15, 60)
def test_digests_are_equal_where_texts_are(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(st.lists(PLAIN, min_size=2, max_size=6))
    def check(things: list[Any]) -> None:
        digests = [content_digest(thing) for thing in things]
        texts = [written(thing) for thing in things]
        for one, other in itertools.combinations(range(len(things)), 2):
            assert (digests[one] == digests[other]) == (texts[one] == texts[other])

    check()
