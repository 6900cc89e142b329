"""The mutants of a module: where Cosmic Ray's operators apply, without those that change nothing.

Of operators that replace one sign by each of many others, those are taken that are hard to notice: the
neighbour and the opposite (`OPPOSITES`). A product that becomes a remainder is noticed by whatever notices a quotient.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("graphs", "thresholdout")

#: Which operators of those that come in pairs are used: from the sign on the left to those on the right.
OPPOSITES: Final = {
    "ReplaceBinaryOperator": {
        "Add": "Sub Mul",
        "Sub": "Add Mul",
        "Mul": "Div Add",
        "Div": "Mul Sub",
        "FloorDiv": "Div Mul",
        "Mod": "FloorDiv Mul",
        "Pow": "Mul Add",
        "RShift": "LShift",
        "LShift": "RShift",
        "BitOr": "BitAnd",
        "BitAnd": "BitOr",
        "BitXor": "BitOr",
    },
    "ReplaceComparisonOperator": {
        "Eq": "NotEq LtE GtE",
        "NotEq": "Eq",
        "Lt": "LtE GtE",
        "LtE": "Lt Gt",
        "Gt": "GtE LtE",
        "GtE": "Gt Lt",
        "Is": "IsNot",
        "IsNot": "Is",
    },
    "ReplaceUnaryOperator": {"Delete": "USub Not Invert"},
}
_SILENT: Final = ("name", "string", "newline", "endmarker")  # leaves that no operator changes
_PUNCTUATION: Final = frozenset("()[]{}:;,.=@") | {"->", "...", ":="}
_INERT: Final = frozenset({"cache", "lru_cache", "final", "override"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the occurrence of an operator in a definition, and what it does to the first line that differs.

    It is the same mutant after other lines of the module have changed.
    """

    module: str
    definition: str
    operator: str
    occurrence: int
    before: str
    after: str
    line: int = field(compare=False)

    def source(self) -> str:
        """Return the mutated text of the module.

        Raises
        ------
        LookupError
            What is mutated has changed since the mutant was listed.
        """
        place = Place(self.module, self.definition, self.operator, self.occurrence)
        found = _mutate(place) if self.module in modules() else None
        if found is None or found[0] != self:
            raise LookupError(f"{self}: not there any more")
        return found[1]


class Place(NamedTuple):
    """Where an operator applies: which of its occurrences in a definition."""

    module: str
    definition: str
    operator: str
    occurrence: int


@cache
def operators() -> dict[str, Any]:
    """Return the operators that are used, by name."""
    every = {name.removeprefix("core/"): get_operator(name) for name in operator_names()}
    return {name: kind() for name, kind in every.items() if not kind.arguments() and _used(name)}


@cache
def modules() -> tuple[str, ...]:
    """Return the paths of all modules of the packages, in order."""
    return tuple(sorted(str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")))


def name_of(path: str) -> str:
    """Return the name under which a file is imported."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def path_of(name: str) -> str:
    """Return the file of a module that is no package."""
    return f"{name.replace('.', '/')}.py"


class _Target(NamedTuple):
    """The node that an operator changes there, in which of its ways, and the operator's places before it."""

    node: Any
    way: int
    number: int


@cache
def places(module: str) -> dict[Place, _Target]:
    """Return where operators apply in a module."""
    found: dict[Place, _Target] = {}
    inside: Counter[tuple[str, str]] = Counter()
    overall: Counter[str] = Counter()
    for node in ast_nodes(get_ast(_text(module))):
        if node.type in _SILENT or (node.type == "operator" and node.value in _PUNCTUATION):
            continue
        definition = _definition(node)
        for name, operator in operators().items():
            for way, _ in enumerate(operator.mutation_positions(node)):
                place = Place(module, definition, name, inside[definition, name])
                found[place] = _Target(node, way, overall[name])
                inside[definition, name] += 1
                overall[name] += 1
    return found


def mutants(module: str, definitions: Sequence[str] = ("",)) -> list[Mutant]:
    """Return the mutants of a module inside of some definitions; all of them for the empty name."""
    chosen = [
        place
        for place in places(module)
        if any(not name or f"{place.definition}.".startswith(f"{name}.") for name in definitions)
    ]
    return _sorted(found[0] for place in chosen if (found := _mutate(place)) is not None)


def sample(size: int, seed: int) -> list[Mutant]:
    """Return mutants drawn from those of all modules, each with the same probability, without replacement."""
    every = [place for module in modules() for place in places(module)]
    random.Random(seed).shuffle(every)
    drawn = (found[0] for place in every if (found := _mutate(place)) is not None)
    return _sorted(islice(drawn, size))


def _sorted(found: Iterable[Mutant]) -> list[Mutant]:
    return sorted(found, key=lambda each: (each.module, each.line, each.operator, each.occurrence))


@cache
def _mutate(place: Place) -> tuple[Mutant, str] | None:
    """Return a mutant and its text; None where there is none, what is run is the same, or it is no Python."""
    text, target = _text(place.module), places(place.module).get(place)
    changed = None if target is None else _changed(text, target, operators()[place.operator])
    if changed is None:
        return None
    old, new = [*text.splitlines(), ""], [*changed.splitlines(), ""]
    line = next(number for number, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    if not _differs(place.module, changed, line + 1):
        return None
    return Mutant(*place, old[line].strip(), new[line].strip(), line + 1), changed


def _changed(text: str, target: _Target, operator: Any) -> str | None:
    """Return the text with one change; a leaf is replaced in place, without another parse."""
    leaf = target.node
    if hasattr(leaf, "children"):
        changed: str | None = mutate_code(text, operator, target.number)
        return changed
    before = leaf.value
    code = operator.mutate(leaf, target.way).get_code()
    leaf.value = before
    lines = text.splitlines(keepends=True)
    (first, column), (last, end) = leaf.get_start_pos_of_prefix(), leaf.end_pos
    start = "".join(lines[: first - 1]) + lines[first - 1][:column]
    return f"{start}{code}{lines[last - 1][end:]}{''.join(lines[last:])}"


def _used(name: str) -> bool:
    """Whether an operator is one of those that this project uses."""
    kind, *signs = name.split("_")
    return not signs or signs[1] in OPPOSITES[kind].get(signs[0], "").split()


@cache
def _text(module: str) -> str:
    return (ROOT / module).read_text(encoding="utf-8")


def _definition(node: Any) -> str:
    """Return the names of the classes and functions around a node, joined by dots."""
    names = []
    while node is not None:
        if node.type in ("funcdef", "classdef"):
            names.append(node.name.value)
        node = node.parent
    return ".".join(reversed(names))


def _differs(module: str, changed: str, line: int) -> bool:
    """Whether a text is Python that runs otherwise than the module: in a line's statement, nothing else is changed."""
    try:
        new = ast.parse(changed).body
    except SyntaxError:
        return False
    old = _statements(module)
    inside = [number for number, (first, _) in enumerate(old) if first <= line][-1]
    return len(new) != len(old) or _meaning(new[inside]) != old[inside][1]


@cache
def _statements(module: str) -> list[tuple[int, str]]:
    """Return the first line of each statement of a module, and what it runs."""
    body = ast.parse(_text(module)).body
    return [(min([each.lineno, *_decorators(each)]), _meaning(each)) for each in body]


def _decorators(node: ast.stmt) -> list[int]:
    """Return the lines of a definition's decorators."""
    return [each.lineno for each in getattr(node, "decorator_list", ())]


def _meaning(statement: ast.stmt) -> str:
    """Return what is run of a statement: no annotations, overloads, caches, imports for types."""
    bare = _Bare().visit(statement)
    return "" if bare is None else ast.dump(bare)


class _Bare(ast.NodeTransformer):
    """Takes away what makes no difference when a module runs."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        """Drop signatures without a body, decorators that only save time, and annotations."""
        last = node.body[-1]
        if isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...:
            return None
        names = [_last_name(each) for each in node.decorator_list]
        node.decorator_list = [
            each for each, name in zip(node.decorator_list, names, strict=True) if name not in _INERT
        ]
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Drop an annotation."""
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Drop an annotation."""
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        """Drop imports for types."""
        return None if "TYPE_CHECKING" in ast.dump(node.test) else self.generic_visit(node)


def _last_name(node: ast.expr) -> str:
    """Return the name of a decorator without its module and arguments."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
