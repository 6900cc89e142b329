"""Modules and their imports, read from the sources: levels and cycles.

An import counts if it is carried out at some time: when the module is loaded, inside a function, or by a string
(``import_module``, a lazy table, the stub of a lazy package). Imports for type checkers only do not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import networkx as nx

PACKAGES = ("graphs", "thresholdout")
LAZY = {"import_module", "attach", "attach_stub", "__import__"}


@cache
def _parsed(text: str) -> ast.Module:
    """Parse a source once, however many tests read it."""
    return ast.parse(text)


@dataclass(frozen=True)
class Module:
    """A source file.

    Attributes
    ----------
    name : str
        As it is imported.
    path : Path
        Relative to the root.
    text : str
        Its source.
    """

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return _parsed(self.text)

    @cached_property
    def nodes(self) -> list[tuple[ast.AST, bool]]:
        """What the module carries out, and whether that is at load."""
        return list(nodes(self.tree, ast.AST))

    @cached_property
    def imports(self) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
        """The statements that import, which stand in no expression, and whether they are carried out at load."""
        found = nodes(self.tree, ast.stmt | ast.ExceptHandler | ast.match_case)
        return [(node, loaded) for node, loaded in found if isinstance(node, ast.Import | ast.ImportFrom)]

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def folder(self) -> str:
        return self.path.parent.as_posix()

    @property
    def package(self) -> str:
        """Name of the package that relative names start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Import:
    """One module imports another.

    Attributes
    ----------
    importer, imported : str
        Names of modules.
    loaded : bool
        Whether it happens when the importer is loaded.
    """

    importer: str
    imported: str
    loaded: bool


def read_modules(root: Path, packages: Iterable[str] = PACKAGES) -> dict[str, Module]:
    """Return the modules of the packages under a root, by name."""
    found = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            inside = path.relative_to(root)
            parts = inside.with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = Module(name, inside, path.read_text())
    return found


def nodes(tree: ast.AST, kinds: Any) -> Iterator[tuple[ast.AST, bool]]:
    """Yield nodes of some kinds, below nodes of these kinds, and whether they are carried out at load.

    Branches for type checkers are left out.
    """
    waiting = [(node, True) for node in ast.iter_child_nodes(tree) if isinstance(node, kinds)]
    while waiting:
        node, loaded = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in (
            getattr(node.test, "id", ""),
            getattr(node.test, "attr", ""),
        ):
            waiting += [(other, loaded) for other in node.orelse if isinstance(other, kinds)]
            continue
        yield node, loaded
        inside = loaded and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        waiting += [(below, inside) for below in ast.iter_child_nodes(node) if isinstance(below, kinds)]


def _existing(name: str, modules: Mapping[str, Module]) -> str | None:
    """Return the longest part of a dotted name that is a module, or None."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or None


def _targets(node: ast.Import | ast.ImportFrom, module: Module, modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield the modules that a statement imports; ``from package import name`` is of a module of that name, if any."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        base = node.module or ""
        if node.level:
            start = module.package.split(".")
            base = ".".join([*start[: len(start) - node.level + 1], *([base] if base else [])])
        names = [f"{base}.{alias.name}" for alias in node.names]
    for name in names:
        found = _existing(name, modules)
        if found is not None:
            yield found


def called(node: ast.AST) -> str:
    """Return the last name of what is called, or an empty text."""
    if not isinstance(node, ast.Call):
        return ""
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def imports_by_string(module: Module, modules: Mapping[str, Module], root: Path) -> Iterator[str]:
    """Yield modules that a module with lazy imports names in its strings, in full or relative to its package."""
    if not any(name in module.text for name in LAZY):
        return
    calls = {called(node) for node, _ in module.nodes}
    if not calls & LAZY:
        return
    exported = {
        id(below)
        for node in module.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in ast.unparse(node).split("=")[0]
        for below in ast.walk(node)
    }
    for node, _ in module.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in exported:
            for name in (node.value, f"{module.package}.{node.value}"):
                if name in modules:
                    yield name
    stub = (root / module.path).with_suffix(".pyi")
    if "attach_stub" in calls and stub.exists():
        for node in ast.walk(ast.parse(stub.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from _targets(node, module, modules)


def read_imports(modules: Mapping[str, Module], root: Path) -> list[Import]:
    """Return every import of one of the modules by another, once for each statement or string."""
    found = []
    for module in modules.values():
        for node, loaded in module.imports:
            found += [Import(module.name, name, loaded) for name in _targets(node, module, modules)]
        found += [Import(module.name, name, False) for name in imports_by_string(module, modules, root)]
    return [one for one in found if one.importer != one.imported]


def import_graph(imports: Iterable[Import], *, package: str = "", loaded_only: bool = False) -> nx.DiGraph[str]:
    """Return the graph of imports, of everything or inside of one package."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for one in imports:
        ends = (one.importer, one.imported)
        if loaded_only and not one.loaded:
            continue
        if all(not package or end == package or end.startswith(package + ".") for end in ends):
            graph.add_edge(*ends)
    return graph


def levels(graph: nx.DiGraph[str]) -> list[str]:
    """Return a longest path of imports, from the top down; of each cycle it has one module.

    Examples
    --------
    >>> levels(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("a", "d")]))
    ['a', 'b', 'd']
    """
    if not graph:
        return []
    condensed = nx.condensation(graph)
    return [min(condensed.nodes[part]["members"]) for part in nx.dag_longest_path(condensed)]


def cycles(graph: nx.DiGraph[str]) -> list[dict[str, list[str]]]:
    """Return the groups in which everything imports everything, with one shortest way round in each."""
    found = []
    for group in nx.strongly_connected_components(graph):
        if len(group) < 2:
            continue
        inside = graph.subgraph(group)
        back = ([*nx.shortest_path(inside, end, start), end] for start, end in sorted(inside.edges))
        found.append({"group": sorted(group), "shortest": min(back, key=len)})
    return sorted(found, key=lambda one: one["group"])


def sibling_graphs(imports: Iterable[Import]) -> dict[str, nx.DiGraph[str]]:
    """Return for each package the graph of imports between its children, each with all that is in it.

    An import of the package itself, as a module, does not count: it is nobody's sibling.
    """
    graphs: dict[str, nx.DiGraph[str]] = {}
    for one in imports:
        importer, imported = one.importer.split("."), one.imported.split(".")
        pairs = enumerate(zip(importer, imported, strict=False))
        depth = next((k for k, (a, b) in pairs if a != b), 0)
        if depth:
            graph = graphs.setdefault(".".join(importer[:depth]), nx.DiGraph())
            graph.add_edge(".".join(importer[: depth + 1]), ".".join(imported[: depth + 1]))
    return graphs
