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


@cache
def places(module: str) -> dict[Place, int]:
    """Return where operators apply in a module, each with its number among the operator's places there."""
    found: dict[Place, int] = {}
    inside: Counter[tuple[str, str]] = Counter()
    overall: Counter[str] = Counter()
    for node in ast_nodes(get_ast(_text(module))):
        if node.type in _SILENT or (node.type == "operator" and node.value in _PUNCTUATION):
            continue
        definition = _definition(node)
        for name, operator in operators().items():
            for _ in operator.mutation_positions(node):
                found[Place(module, definition, name, inside[definition, name])] = overall[name]
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


def _mutate(place: Place) -> tuple[Mutant, str] | None:
    """Return a mutant and its text; None where there is none, what is run is the same, or it is no Python."""
    text, number = _text(place.module), places(place.module).get(place)
    changed = None if number is None else mutate_code(text, operators()[place.operator], number)
    if changed is None or _meaning(changed) in (None, _meaning(text)):
        return None
    old, new = [*text.splitlines(), ""], [*changed.splitlines(), ""]
    line = next(number for number, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    return Mutant(*place, old[line].strip(), new[line].strip(), line + 1), changed


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


@cache
def _meaning(text: str) -> str | None:
    """Return what is run of a text, None if it is no Python: no annotations, overloads, caches, imports for types."""
    try:
        return ast.dump(_Bare().visit(ast.parse(text)))
    except SyntaxError:
        return None


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
