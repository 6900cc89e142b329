"""Arguments of bounds."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, number


@for_each(("value", "seen"), [(10**400, "inf"), (-(10**400), "-inf"), (float("nan"), "nan")])
def test_numbers_beyond_floats(value: float, seen: str) -> None:
    with pytest.raises(InputError) as error:
        number(value, "eps")
    assert str(error.value) == f"eps must be a finite number; got {seen}."


@for_each(("value", "seen"), [(True, "a bool"), ("1", "a str"), (None, "a NoneType"), (np.array(3), "an ndarray")])
def test_no_numbers_and_no_counts(value: object, seen: str) -> None:
    for check, expected in ((number, "a finite number"), (count, "an integer, 1 or more")):
        with pytest.raises(InputTypeError) as error:
            check(value, "eps")
        assert str(error.value) == f"eps must be {expected}; got {seen}."


@for_each("value", ["other", "", None, 1, ["wor"]])
def test_words(value: object) -> None:
    assert chosen("wr", "scheme", ("wor", "wr")) == "wr"
    with pytest.raises(InputError) as error:
        chosen(value, "scheme", ("wor", "wr"))
    assert str(error.value) == f"scheme must be one of 'wor', 'wr'; got {value!r}."
