"""Functions that somebody stops with Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np

from thresholdout.privacy.learning.propagation.natural_parameters import Natural


class Stops:
    """A function that somebody stops with Ctrl-C at some call, before or after it has done its work."""

    def __init__(self, function: Callable[..., Any], at: int, *, after: bool = False) -> None:
        self.function, self.left, self.after = function, at, after

    def __call__(self, *args: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise KeyboardInterrupt
        found = self.function(*args)
        if self.left == 0:
            raise KeyboardInterrupt
        return found


class KeepsNames(Stops):
    """The same for a function with named arguments."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        function, self.function = self.function, partial(self.function, **named)
        try:
            return super().__call__(*args)
        finally:
            self.function = function


class StopsAtLine:
    """Ctrl-C at some line of the estimators' modules, of those that a call comes to, one after the other."""

    def __init__(self, at: int, *modules: str) -> None:
        self.left, self.modules = at, modules

    def __enter__(self) -> StopsAtLine:
        self.before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def _call(self, frame: Any, event: str, arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.endswith(self.modules) else None

    def _line(self, frame: Any, event: str, arg: Any) -> Any:
        if event == "line":
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return self._line


STEPS = {
    "DPEM": "dpem/record_statistics.py",
    "DPSGD": "dpsgd/descent.py",
    "DPVI": "propagation/dpvi.py",
    "EP": "propagation/ep_runs.py",
    "Federated": "learning/federated.py",
    "PBP": "propagation/ep_runs.py",
    "SGLD": "sgld/sampler.py",
}
"""The module in which the steps of learners are taken, by the first letters of their names."""


def stopped_late(model: Any, *data: Any) -> Any:
    """Return a learner whose fit somebody has stopped when two thirds of its work was done."""
    (module,) = [module for letters, module in STEPS.items() if type(model).__name__.startswith(letters)]
    with StopsAtLine(0, module) as never:
        deepcopy(model).fit(*data)
    try:
        with StopsAtLine(-never.left * 2 // 3, module):
            model.fit(*data)
    except KeyboardInterrupt:
        return model
    raise AssertionError("it came to its end")


class Nonsense:
    """A value that can't even be asked whether it is true."""

    def __bool__(self) -> bool:
        raise AssertionError("a parameter was read")


def spoiled(model: Any) -> Any:
    """Return a learner all of whose parameters are nonsense."""
    return model.set_params(**dict.fromkeys(model.get_params(), Nonsense()))


def numbers(value: Any) -> list[Any]:
    """Return all that is in attributes of a learner, as arrays and texts."""
    if isinstance(value, dict):
        return [found for key in sorted(value) for found in numbers(value[key])]
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in numbers(each)]
    if isinstance(value, Natural):
        return [value.values]
    return [value] if isinstance(value, (np.ndarray, float, int)) else [str(value)]


def same(model: Any, whole: Any) -> None:
    """Everything that two learners have found is the same, to the bit."""
    fitted = [{name: value for name, value in vars(each).items() if name.endswith("_")} for each in (model, whole)]
    assert fitted[0].keys() == fitted[1].keys()
    for one, other in zip(numbers(fitted[0]), numbers(fitted[1]), strict=True):
        np.testing.assert_array_equal(one, other)
