"""Every recorded answer is given again.

To the bit where the platform is the one that recorded. Elsewhere numbers may be 1.5e-8 apart, relative to their
size: another numpy, scipy, C library or processor rounds elementary functions and sums differently in the last bit, and
where a minimum is searched, the place of a flat one moves by the square root of that, 2^-26. Texts and choices are the
same nevertheless. (On a processor without AVX-512 one case of all, an accountant whose lattice follows from a search,
moves by more than 1e-8, by 1.3e-8.)
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.recorded import record
from tests.recorded.cases import CASES
from tests.recorded.values import difference, fingerprint, plain
from tests.sizes import corners

RECORDED = record.read()
ANSWERS = RECORDED["answers"]
EXACT = RECORDED["platform"] == fingerprint()
LONG = {
    "accounting: mixed events",
    "accounting: calibrated noise of steps",
    "accounting: pure events",
    "certificates: generalisation of private learners",
    "graphs: ising, weak: budgets",
    "graphs: ising, wheel: budgets",
    "graphs: ising, wheel: leakages",
    "guards: releases about the holdout",
    "learning: what private propagation leaks",
    "minibatches: distributions of other pairs",
    "plans: a width of a fixed list",
    "posteriors: noise for a target",
}
"""Cases of a second and more."""
NAMES = sorted(CASES)
QUICK = [place for place, name in enumerate(NAMES) if name not in LONG]


def test_every_answer_has_a_case_and_every_case_an_answer() -> None:
    assert set(ANSWERS) == set(CASES)
    assert set(CASES) > LONG


@pytest.mark.parametrize("name", corners(NAMES, *QUICK))
def test_the_answer_is_the_recorded_one(name: str) -> None:
    assert not difference(ANSWERS[name], plain(CASES[name]()), exact=EXACT)


def test_one_changed_bit_is_noticed() -> None:
    half = plain({"table": [[1, 0.5], ["name", None]]})
    moved = plain({"table": [[1, math.nextafter(0.5, 1.0)], ["name", None]]})
    assert not difference(half, half, exact=True)
    assert difference(half, moved, exact=True).startswith("['table'][0][1]: 0x1.0000000000000p-1 (0.5) became")
    assert not difference(half, moved, exact=False)


@for_each("exact", [True, False])
@for_each(
    "changed",
    [0.5 + 1e-8, 0.0, math.inf, math.nan, 1, "0.5", None, [0.5], [], {"0.5": 0.5}],
)
def test_what_no_platform_explains_is_noticed_on_every_platform(changed: object, exact: bool) -> None:
    assert difference(plain([0.5]), plain([changed]), exact=exact)


@for_each("exact", [True, False])
def test_infinite_and_missing_numbers_are_the_same_as_themselves(exact: bool) -> None:
    values = plain([math.inf, -math.inf, math.nan, True, 1, "word"])
    assert not difference(values, values, exact=exact)
    assert difference(plain([True]), plain([1]), exact=exact)


def test_recording_again_adds_new_cases_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "answers.json"
    file.write_text(record.written(fingerprint(), {"old": plain(0.5)}))
    monkeypatch.setattr(record, "ANSWERS", file)
    monkeypatch.setattr(record, "CASES", {"old": lambda: 0.75, "new": lambda: [1, 2.0]})
    record.main()
    assert record.read()["answers"] == {"old": plain(0.5), "new": plain([1, 2.0])}
    file.write_text(record.written({"machine": "another"}, {"old": plain(0.5)}))
    before = file.read_bytes()
    with pytest.raises(SystemExit, match="another platform"):
        record.main()
    assert file.read_bytes() == before


def test_numbers_inside_of_a_text_are_compared_as_numbers() -> None:
    state, moved, other = (
        "claims/1 12 0.19680725209462047",
        "claims/1 12 0.1968072520946205",
        "claims/1 13 0.1968072520946205",
    )
    assert not difference(state, moved, exact=False)
    assert difference(state, moved, exact=True)
    assert difference(state, other, exact=False)
    assert difference(state, state + " 1", exact=False)


def test_a_text_that_looks_like_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="would be read as a number"):
        plain((0.5).hex())
