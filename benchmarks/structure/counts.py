"""Sizes, names, type tests and duplicates, read from the sources."""

from __future__ import annotations

import ast
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.structure.imports import PACKAGES, Module, called
from benchmarks.structure.paths import EXPORTED, run


def folders(modules: Mapping[str, Module]) -> list[dict[str, Any]]:
    """Return modules and lines of each folder, without its subfolders."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for module in modules.values():
        sizes[module.folder].append(module.lines)
    return [
        {
            "folder": folder,
            "modules": len(lines),
            "lines": sum(lines),
            "median": statistics.median(lines),
            "largest": max(lines),
        }
        for folder, lines in sorted(sizes.items())
    ]


def repeated_file_names(modules: Mapping[str, Module]) -> dict[str, list[str]]:
    """Return the file names that several modules have, with their places; ``__init__.py`` does not count."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules.values():
        if not module.path.name.startswith("__"):
            places[module.path.name].append(module.path.as_posix())
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def identifiers(tree: ast.AST) -> set[str]:
    """Return all names that code uses, defines or imports; words in strings do not count."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.update(node.name.split("."))
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
    return found


def code_words(page: str) -> set[str]:
    """Return the words in the code of a page of Markdown, its blocks and spans.

    Examples
    --------
    >>> sorted(code_words("See `guard.ask(x)` and ask."))
    ['ask', 'guard', 'x']
    """
    blocks = re.findall(r"^```.*?^```", page, re.M | re.S)
    rest = re.sub(r"^```.*?^```", "", page, flags=re.M | re.S)
    return set(re.findall(r"\w+", " ".join([*blocks, *re.findall(r"`[^`\n]+`", rest)])))


def reference_packages(root: Path) -> list[str]:
    """Return the packages that have a heading or a directive in the reference of public names."""
    pages = [*sorted((root / "docs").glob("reference*.md")), *sorted((root / "docs").glob("reference/**/*.md"))]
    text = "\n".join(page.read_text() for page in pages)
    names = "|".join(PACKAGES)
    headings = re.findall(rf"^#+ +`?((?:{names})[\w.]*)`?\s*$", text, re.M)
    directives = re.findall(rf"(?:currentmodule|automodule|py:module)\W+((?:{names})[\w.]*)", text)
    return list(dict.fromkeys(headings + directives))


def public_names(root: Path, modules: Mapping[str, Module]) -> dict[str, Any]:
    """Return how many public names each package has, and which of them only tests and benchmarks use.

    A use is in the code of another module than the one that defines the name, of an example, or of a page of
    documentation that is not the reference.
    """
    exported: dict[str, dict[str, str | None]] = run(EXPORTED, root, *reference_packages(root))
    used = {module.name: identifiers(module.tree) for module in modules.values() if not module.is_package}
    elsewhere: set[str] = set()
    for path in sorted((root / "examples").rglob("*.py")):
        elsewhere |= identifiers(ast.parse(path.read_text()))
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        if "reference" not in page.relative_to(root).as_posix() and page.exists():
            elsewhere |= code_words(page.read_text())
    unused = {
        package: [
            name
            for name, home in names.items()
            if name not in elsewhere and not any(name in words for module, words in used.items() if module != home)
        ]
        for package, names in exported.items()
    }
    return {
        "packages": {package: len(names) for package, names in exported.items()},
        "total": sum(len(names) for names in exported.values()),
        "tests_only": {package: names for package, names in unused.items() if names},
        "tests_only_total": sum(len(names) for names in unused.values()),
    }


def mechanism_classes(modules: Mapping[str, Module]) -> dict[str, Module]:
    """Return the classes that the mechanisms define, each with its module."""
    return {
        node.name: module
        for module in modules.values()
        if ".mechanisms" in module.name
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }


def _tested_types(node: ast.AST) -> set[str]:
    """Return the names of the types that an expression tests for."""
    if called(node) in {"isinstance", "issubclass"} and isinstance(node, ast.Call) and len(node.args) == 2:
        return identifiers(node.args[1])
    if isinstance(node, ast.MatchClass):
        return identifiers(node.cls)
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        sides = [node.left, *node.comparators]
        if any(called(side) == "type" for side in sides):
            return set().union(*(identifiers(side) for side in sides))
    return set()


def type_tests(modules: Mapping[str, Module], classes: Iterable[str]) -> dict[str, int]:
    """Return how often each module outside of the mechanisms tests for one of the classes."""
    wanted = set(classes)
    found = {
        module.path.as_posix(): sum(bool(_tested_types(node) & wanted) for node in ast.walk(module.tree))
        for module in modules.values()
        if ".mechanisms" not in module.name
    }
    return {path: count for path, count in found.items() if count}


def files_naming(name: str, modules: Mapping[str, Module], home: Module) -> list[str]:
    """Return the files whose code names a class, but for the mechanism's own module or folder."""
    own = home.path.as_posix() if home.path.parent.name == "mechanisms" else home.folder + "/"
    return [
        module.path.as_posix()
        for module in modules.values()
        if not module.path.as_posix().startswith(own) and name in identifiers(module.tree)
    ]


def _halves(node: ast.AST) -> tuple[str, set[str]] | None:
    """Return the name of a middle and the names of the ends that an assignment takes it from, or None."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return None
    text = ast.unparse(node.value)
    name = r"([A-Za-z_][\w.]*)"
    for pattern in (
        rf"\({name} \+ {name}(?: \+ 1)?\) //? 2(?:\.0)?",
        rf"0\.5 \* \({name} \+ {name}\)",
        rf"(?:math|np)\.sqrt\({name} \* {name}\)",
        rf"\w+\({name} \+ {name}, 2\)",
        rf"{name} \+ \({name} - [\w.]+\) //? 2(?:\.0)?",
    ):
        found = re.search(pattern, text)
        if found:
            return node.targets[0].id, set(found.groups())
    return None


def _bisects(function: ast.AST) -> bool:
    """Whether a loop in a function halves an interval: an end becomes the middle of both."""
    for loop in ast.walk(function):
        if not isinstance(loop, ast.While | ast.For):
            continue
        inside = list(ast.walk(loop))
        for middle, ends in filter(None, map(_halves, inside)):
            for node in inside:
                if isinstance(node, ast.Assign) and middle in identifiers(node.value):
                    targets = set().union(*(identifiers(target) for target in node.targets))
                    if targets & ends:
                        return True
    return False


def bisections(modules: Mapping[str, Module]) -> list[str]:
    """Return the functions that bisect by hand, innermost first, as ``path:name``."""
    found = []
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef) and _bisects(node):
                nested = any(below is not node and _bisects(below) for below in _functions(node))
                if not nested:
                    found.append(f"{module.path.as_posix()}:{node.name}")
    return found


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield all functions of a tree."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def units(modules: Mapping[str, Module]) -> dict[str, str]:
    """Return the modules that define a unit of rounding, with what they say it is."""
    found = {}
    for module in modules.values():
        for node in module.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            named = any(isinstance(target, ast.Name) and target.id in {"UNIT", "_UNIT"} for target in targets)
            value = getattr(node, "value", None)
            if named and isinstance(value, ast.BinOp | ast.Call | ast.Attribute):
                found[module.path.as_posix()] = ast.unparse(value)
    return found


def rounding_up(modules: Mapping[str, Module]) -> list[str]:
    """Return the files that define a function ``up``; its overloads do not count."""
    return [
        module.path.as_posix()
        for module in modules.values()
        if any(
            function.name == "up" and not any("overload" in ast.unparse(one) for one in function.decorator_list)
            for function in _functions(module.tree)
        )
    ]
