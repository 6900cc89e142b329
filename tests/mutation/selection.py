"""Which tests judge the mutants of a module.

Its own: the examples of its docstrings, the test file at the mirrored path, and those that `ALSO` names. A module that
has no test file of its own is judged by the nearest: those that import what it defines, or, where there are none, what
the modules define that import it; of the same folder first, then those that import little else. A mutant that survives
its own tests can be tried against the nearest too.
"""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from tests.mutation.mutants import PACKAGES, ROOT, modules, name_of, path_of

#: How many of the nearest test files are tried.
MOST: Final = 4

#: Modules of tests whose names do not follow from the module's.
ALSO: Final[dict[str, tuple[str, ...]]] = {
    "graphs.model": ("tests.graphs.models.test_given",),
    "graphs.models.markov_chain": ("tests.graphs.models.test_given",),
    "thresholdout.limits.binomial": ("tests.thresholdout.limits.test_one_law", "tests.thresholdout.limits.test_noisy"),
    "thresholdout.mechanisms.claims.query_claims": ("tests.thresholdout.guard.test_private_guard",),
    "thresholdout.mechanisms.claims.kinds": ("tests.thresholdout.mechanisms.claims.test_final",),
    "thresholdout.certificates.route": ("tests.thresholdout.certificates.test_certificate",),
    "thresholdout.certificates.certify_parameters": ("tests.thresholdout.certificates.test_certificate",),
    "thresholdout.certificates.drift_bound": ("tests.thresholdout.certificates.test_drift_bound",),
    "thresholdout.guard.query_engine": ("tests.thresholdout.guard.test_answering",),
    "thresholdout.planning.algorithm_1": ("tests.thresholdout.guard.test_algorithm_1",),
}

#: Folders of tests that are not for one module.
_ELSEWHERE: Final = ("tests/mutation/", "tests/oracles/")


def judges_of(module: str) -> tuple[str, ...]:
    """Return the module's own tests, its docstrings first; the nearest others where it has none."""
    path = Path(module)
    named = (f"tests/{path.parent}/test_{path.name}", *map(path_of, ALSO.get(name_of(module), ())))
    own = [file for file in dict.fromkeys(named) if (ROOT / file).exists()]
    docstrings = [module] if ">>> " in (ROOT / module).read_text(encoding="utf-8") else []
    return (*docstrings, *(own or _nearest(module)[:MOST]))


def wider_judges_of(module: str) -> tuple[str, ...]:
    """Return the module's own tests and the nearest others."""
    own = judges_of(module)
    return (*own, *[file for file in _nearest(module) if file not in own][:MOST])


def _nearest(module: str) -> list[str]:
    """Return the test files with the fewest steps of imports to a module, the likeliest first."""
    uses = _uses()

    def distance(file: str) -> tuple[bool, int, int, str]:
        same = [a == b for a, b in zip(Path(file).parts[1:], Path(module).parts, strict=False)]
        return file.startswith("tests/statistical/"), [*same, False].index(False) * -1, len(uses[file]), file

    users: dict[str, set[str]] = {}
    for file, used in uses.items():
        for name in used:
            users.setdefault(name, set()).add(file)
    seen, layer = {module}, {module}
    while layer:
        found = {user for name in layer for user in users.get(name, ())} - seen
        tests = [file for file in found if file.startswith("tests/")]
        if tests:
            return sorted(tests, key=distance)
        seen |= found
        layer = found
    return []


@cache
def _uses() -> dict[str, frozenset[str]]:
    """Return for each module and test file the modules of the packages whose names it imports."""
    done = subprocess.run([sys.executable, "-m", __name__], cwd=ROOT, capture_output=True, text=True, check=True)
    return {file: frozenset(used) for file, used in json.loads(done.stdout).items()}


def _every_use() -> dict[str, list[str]]:
    """Find them; imports the packages, so it runs in a process of its own."""
    tests = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    files = [*modules(), *(file for file in tests if not file.startswith(_ELSEWHERE))]
    return {file: sorted(_used_by(file) - {file}) for file in files}


def _used_by(file: str) -> set[str]:
    used = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES:
            used |= {_home(node.module, each.name) for each in node.names}
        elif isinstance(node, ast.Import):
            used |= {_file(each.name) for each in node.names if each.name.split(".")[0] in PACKAGES}
    return used & set(modules())


@cache
def _home(module: str, name: str) -> str:
    """Return the file of the module that defines what another module offers under a name."""
    try:
        value = getattr(importlib.import_module(module), name)
    except AttributeError:
        value = None
    inside = _file(f"{module}.{name}")
    if inside in modules():
        return inside
    home = getattr(value, "__module__", None)
    return _file(home if isinstance(home, str) and home.split(".")[0] in PACKAGES else module)


def _file(module: str) -> str:
    """Return the path of a module's file."""
    path = module.replace(".", "/")
    return f"{path}.py" if (ROOT / f"{path}.py").exists() else f"{path}/__init__.py"


if __name__ == "__main__":
    json.dump(_every_use(), sys.stdout)
