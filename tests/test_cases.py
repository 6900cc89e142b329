"""A test of many cases runs all of them, each as if it were alone, and names those that fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cases import for_each

SEEN: list[int] = []


@for_each("number", [1, 2, 3])
def test_every_case_is_run(number: int) -> None:
    SEEN.append(number)


def test_they_were() -> None:
    assert SEEN == [1, 2, 3]


@for_each(("name", "fresh"), [("A_CASE", True), ("A_CASE", True)])
def test_a_case_has_its_own_folder_patches_and_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, fresh: bool
) -> None:
    assert (name not in os.environ) is fresh
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv(name, "set")
    (tmp_path / "file").touch()
    print("printed")
    assert capsys.readouterr().out == "printed\n"
    print("left")


class TestMethods:
    @pytest.mark.parametrize("other", [0, 1])
    @for_each("a, b", [(1, 2), (3, 4)])
    def test_of_a_class(self, a: int, b: int, other: int) -> None:
        assert b == a + 1
        assert other in (0, 1)


def test_each_failure_names_its_case() -> None:
    ran: list[int] = []

    @for_each("number", [1, pytest.param(-2, id="negative"), 3, 0])
    def positive(number: int) -> None:
        ran.append(number)
        assert number > 0

    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases failed") as found:
        positive()
    assert ran == [1, -2, 3, 0]
    assert [failure.__notes__ for failure in found.value.exceptions] == [
        ["case negative: number=-2"],
        ["case 3: number=0"],
    ]


def test_one_failure_is_itself() -> None:
    @for_each("number", [1, 0], ids=["one", "none"])
    def not_zero(number: int) -> None:
        if not number:
            pytest.fail("zero")

    with pytest.raises(pytest.fail.Exception, match="zero") as found:
        not_zero()
    assert found.value.__notes__ == ["case none: number=0"]


def test_cases_that_no_loop_can_run() -> None:
    with pytest.raises(ValueError, match="has marks"):
        for_each("number", [pytest.param(1, marks=pytest.mark.slow)])
    with pytest.raises(ValueError, match="at least one"):
        for_each("number", [])
    with pytest.raises(ValueError, match="names must be arguments of"):
        for_each("number", [1])(lambda other: None)
