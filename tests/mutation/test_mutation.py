"""The harness itself: what counts as a mutant, what becomes of one, and that its tables are about this code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation import mutants as mutating
from tests.mutation.critical import CRITICAL
from tests.mutation.mutants import ROOT, modules, mutants, path_of, places, sample
from tests.mutation.selection import ALSO, judges_of, wider_judges_of
from tests.mutation.trial import swaps_of

_TEXT = '''"""A module."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Callable


@overload
def half(x: int | None = ...) -> float: ...
@cache
def half(x: int | None = None) -> float:
    return 0.5 * x if x else 0


class Box:
    def full(self) -> bool:
        return not self.size <= 3
'''

_TRIAL = """
from tests.mutation import trial
from tests.mutation.mutants import mutants
tests = ["tests/graphs/numerics/test_bisection.py"]
found = mutants("graphs/numerics/bisection.py", ("bisect_integers",))
chosen = [each for each in found if each.before in ("*,", "while abs(fails_at - holds_at) > 1:")]
quick = dict(trial.run(chosen, tests))
print(sorted({verdict.outcome for verdict in quick.values()}))
trial.swaps_of = lambda old, new: None
anew = dict(trial.run(chosen, tests))
print({mutant: (quick[mutant], anew[mutant]) for mutant in chosen if quick[mutant].outcome != anew[mutant].outcome})
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module outside of the packages."""
    (tmp_path / "mutated_for_a_test.py").write_text(_TEXT, encoding="utf-8")
    monkeypatch.setattr(mutating, "ROOT", tmp_path)
    monkeypatch.setattr(mutating, "modules", lambda: ("mutated_for_a_test.py", "mutated_for_another_test.py"))
    return "mutated_for_a_test.py"


class TestMutants:
    def test_what_makes_a_difference_is_changed_and_nothing_else(self, module: str) -> None:
        assert [(each.definition, each.after) for each in mutants(module)] == [
            ("half", "return 0.5 * x if not x else 0"),
            ("half", "return 1.5 * x if x else 0"),
            ("half", "return -0.5 * x if x else 0"),
            ("half", "return 0.5 * x if x else 1"),
            ("half", "return 0.5 * x if x else -1"),
            ("half", "return 0.5 + x if x else 0"),
            ("half", "return 0.5 / x if x else 0"),
            ("Box.full", "return not self.size <= 4"),
            ("Box.full", "return not self.size <= 2"),
            ("Box.full", "return not self.size > 3"),
            ("Box.full", "return not self.size < 3"),
            ("Box.full", "return  self.size <= 3"),
        ]

    def test_those_of_a_definition(self, module: str) -> None:
        assert {each.definition for each in mutants(module, ["Box"])} == {"Box.full"}
        assert mutants(module, ["Bo"]) == []

    def test_a_mutant_of_other_code_is_refused(self, module: str, tmp_path: Path) -> None:
        mutant = mutants(module, ["half"])[0]
        assert "return 0.5 * x if not x else 0" in mutant.source()
        other = tmp_path / "mutated_for_another_test.py"
        other.write_text(_TEXT.replace("0.5 * x if x", "0.5 * x if x + 1"), encoding="utf-8")
        moved = mutating.Mutant(other.name, *(getattr(mutant, name) for name in list(mutant.__slots__)[1:]))
        with pytest.raises(LookupError, match="not there any more"):
            moved.source()

    def test_a_sample_is_a_function_of_its_seed(self, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mutating, "modules", lambda: (module,))
        assert sample(6, 1) == sample(6, 1) != sample(6, 2)
        assert set(sample(99, 3)) == set(mutants(module))


class TestSwaps:
    @pytest.mark.parametrize(
        ("before", "after", "functions"),
        [
            ("0.5 * x if", "1.5 * x if", {("half",)}),
            ("<= 3", "< 3", {("Box", "full")}),
            ("def half", "# a line more\ndef half", set()),
            ("int | None = None) -> float", "int | None = 1) -> float", None),
            ("class Box:", "class Box:\n    a = 1", None),
            ("from functools import cache", "from functools import lru_cache as cache", None),
        ],
    )
    def test_only_bodies_of_functions_are_swapped(
        self, before: str, after: str, functions: set[tuple[str, ...]] | None
    ) -> None:
        assert before in _TEXT
        swaps = swaps_of(_TEXT, _TEXT.replace(before, after))
        assert functions == (None if swaps is None else set(swaps))

    @pytest.mark.slow
    def test_verdicts_are_those_of_packages_imported_anew(self) -> None:
        done = subprocess.run([sys.executable, "-c", _TRIAL], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout == "['killed', 'survived', 'too long']\n{}\n"


class TestTables:
    @pytest.mark.slow
    def test_what_is_critical_is_there(self) -> None:
        for module, definitions in ((path_of(name), definitions) for name, definitions in CRITICAL.items()):
            assert module in modules()
            inside = {place.definition for place in places(module)}
            for name in definitions:
                assert any(not name or f"{each}.".startswith(f"{name}.") for each in inside), f"{module}: {name}"

    def test_files_of_tests_that_are_named_are_there(self) -> None:
        for module, files in ALSO.items():
            assert path_of(module) in modules()
            assert all((ROOT / path_of(file)).is_file() for file in files), module

    @pytest.mark.slow
    def test_a_module_is_judged_by_its_own_tests_first(self) -> None:
        own, wider = judges_of("graphs/leakage/messages.py"), wider_judges_of("graphs/leakage/messages.py")
        assert own[:2] == ("graphs/leakage/messages.py", "tests/graphs/leakage/test_messages.py")
        assert wider[: len(own)] == own
        assert len(set(wider)) == len(wider) > len(own)
