"""What ``benchmarks.structure`` counts, on small trees of which everything is known."""

from pathlib import Path

import networkx as nx

from benchmarks.structure import counts, imports
from benchmarks.structure.imports import Module
from tests.cases import for_each


def tree(root: Path, sources: dict[str, str]) -> dict[str, Module]:
    """Write a package ``pack`` and return its modules."""
    for name, source in {"__init__.py": "", **sources}.items():
        path = root / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        if path.suffix == ".py":
            (path.parent / "__init__.py").touch()
    return imports.read_modules(root, ["pack"])


def edges(root: Path, sources: dict[str, str], *, loaded_only: bool = False) -> set[tuple[str, str]]:
    read = imports.read_imports(tree(root, sources), root)
    return set(imports.import_graph(read, loaded_only=loaded_only).edges)


class TestImports:
    def test_inside_a_function_counts_but_not_at_load(self, tmp_path: Path) -> None:
        sources = {"a.py": "from pack.b import x\n", "b.py": "def f():\n    import pack.a\n"}
        assert edges(tmp_path, sources) == {("pack.a", "pack.b"), ("pack.b", "pack.a")}
        assert edges(tmp_path, sources, loaded_only=True) == {("pack.a", "pack.b")}

    def test_in_a_method_and_in_the_body_of_a_class(self, tmp_path: Path) -> None:
        source = "class A:\n    import pack.b\n    async def f(self):\n        import pack.c\n"
        sources = {"a.py": source, "b.py": "", "c.py": ""}
        assert edges(tmp_path, sources) == {("pack.a", "pack.b"), ("pack.a", "pack.c")}
        assert edges(tmp_path, sources, loaded_only=True) == {("pack.a", "pack.b")}

    def test_for_type_checkers_does_not_count(self, tmp_path: Path) -> None:
        source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pack.b\nelse:\n    import pack.c\n"
        assert edges(tmp_path, {"a.py": source, "b.py": "", "c.py": ""}) == {("pack.a", "pack.c")}

    @for_each(
        "source",
        [
            'from importlib import import_module\nimport_module("pack.b")\n',
            'import importlib\nHOMES = {"x": "pack.b"}\ndef f(name):\n    importlib.import_module(HOMES[name])\n',
            'from importlib import import_module\nH = {"x": "b"}\ndef f(n):\n    import_module(f"pack.{H[n]}")\n',
            'import lazy_loader as lazy\nlazy.attach(__name__, submod_attrs={"b": ["x"]})\n',
        ],
    )
    def test_by_string(self, tmp_path: Path, source: str) -> None:
        assert edges(tmp_path, {"a.py": source, "b.py": ""}) == {("pack.a", "pack.b")}
        assert edges(tmp_path, {"a.py": source, "b.py": ""}, loaded_only=True) == set()

    def test_a_string_without_lazy_imports_is_a_string(self, tmp_path: Path) -> None:
        assert edges(tmp_path, {"a.py": 'NAMES = ["pack.b"]\n', "b.py": ""}) == set()

    def test_by_a_stub(self, tmp_path: Path) -> None:
        source = "import lazy_loader as lazy\nlazy.attach_stub(__name__, __file__)\n"
        sources = {"inner/__init__.py": source, "inner/__init__.pyi": "from .b import x as x\n", "inner/b.py": ""}
        assert edges(tmp_path, sources) == {("pack.inner", "pack.inner.b")}

    def test_a_name_of_a_package_is_a_module_where_there_is_one(self, tmp_path: Path) -> None:
        sources = {"a.py": "from pack.inner import b, other\n", "inner/b.py": "from . import c\n", "inner/c.py": ""}
        assert edges(tmp_path, sources) == {
            ("pack.a", "pack.inner.b"),
            ("pack.a", "pack.inner"),
            ("pack.inner.b", "pack.inner.c"),
        }


class TestLevelsAndCycles:
    def test_the_longest_path_counts(self) -> None:
        graph = nx.DiGraph([("a", "d"), ("a", "b"), ("b", "c"), ("c", "d")])
        assert imports.levels(graph) == ["a", "b", "c", "d"]

    def test_a_cycle_is_one_level(self) -> None:
        assert len(imports.levels(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]))) == 2

    def test_nothing_has_no_levels(self) -> None:
        assert imports.levels(nx.DiGraph()) == []

    def test_a_cycle_through_a_function_is_found(self, tmp_path: Path) -> None:
        sources = {
            "a.py": "import pack.b\n",
            "b.py": "import pack.c\n",
            "c.py": "def f():\n    import pack.a\n    import pack.d\n",
            "d.py": "",
        }
        read = imports.read_imports(tree(tmp_path, sources), tmp_path)
        (found,) = imports.cycles(imports.import_graph(read))
        assert found["group"] == ["pack.a", "pack.b", "pack.c"]
        assert len(found["shortest"]) == 4
        assert found["shortest"][0] == found["shortest"][-1]
        assert imports.cycles(imports.import_graph(read, loaded_only=True)) == []

    def test_packages_may_form_a_cycle_where_modules_do_not(self, tmp_path: Path) -> None:
        sources = {
            "one/a.py": "import pack.two.a\n",
            "one/b.py": "",
            "two/a.py": "",
            "two/b.py": "import pack.one.b\n",
        }
        read = imports.read_imports(tree(tmp_path, sources), tmp_path)
        assert imports.cycles(imports.import_graph(read)) == []
        (found,) = imports.cycles(imports.sibling_graphs(read)["pack"])
        assert found["group"] == ["pack.one", "pack.two"]

    def test_a_package_may_export_what_is_in_it(self, tmp_path: Path) -> None:
        sources = {"__init__.py": "from pack.one.a import x\n", "one/a.py": "import pack.errors\n", "errors.py": ""}
        read = imports.read_imports(tree(tmp_path, sources), tmp_path)
        graphs = imports.sibling_graphs(read)
        assert list(graphs) == ["pack"]
        assert list(graphs["pack"].edges) == [("pack.one", "pack.errors")]

    def test_siblings_inside_of_a_package(self, tmp_path: Path) -> None:
        sources = {"one/a.py": "import pack.one.b\n", "one/b.py": "def f():\n    import pack.one.a\n"}
        read = imports.read_imports(tree(tmp_path, sources), tmp_path)
        (found,) = imports.cycles(imports.sibling_graphs(read)["pack.one"])
        assert found["group"] == ["pack.one.a", "pack.one.b"]


class TestDuplicates:
    def test_sizes_of_folders(self, tmp_path: Path) -> None:
        modules = tree(tmp_path, {"a.py": "x = 1\n" * 5, "inner/a.py": "x = 1\n" * 7})
        sizes = {one["folder"]: (one["modules"], one["lines"], one["largest"]) for one in counts.folders(modules)}
        assert sizes == {"pack": (2, 5, 5), "pack/inner": (2, 7, 7)}
        assert counts.repeated_file_names(modules) == {"a.py": ["pack/a.py", "pack/inner/a.py"]}

    @for_each(
        ("step", "bisects"),
        [
            ("mid = (low + high) / 2\n        if f(mid): low = mid\n        else: high = mid", True),
            ("mid = (low + high) // 2\n        low, high = (mid, high) if f(mid) else (low, mid)", True),
            ("mid = math.sqrt(low * high)\n        high = mid", True),
            ("mid = 0.5 * (low + high)\n        total += mid", False),
            ("half = low / 2\n        low = half", False),
        ],
    )
    def test_bisections(self, tmp_path: Path, step: str, bisects: bool) -> None:
        source = f"def f(low, high, total):\n    while low < high:\n        {step}\n    return low\n"
        assert counts.bisections(tree(tmp_path, {"a.py": source})) == (["pack/a.py:f"] if bisects else [])

    def test_a_middle_without_a_loop_is_no_bisection(self, tmp_path: Path) -> None:
        source = "def f(low, high):\n    mid = (low + high) / 2\n    low = mid\n    return low\n"
        assert counts.bisections(tree(tmp_path, {"a.py": source})) == []

    def test_units_and_roundings(self, tmp_path: Path) -> None:
        sources = {
            "a.py": "UNIT = 2.0**-53\n@overload\ndef up(x: int): ...\ndef up(x): return x\n",
            "b.py": "_UNIT: float = 2.0**-52\n",
            "c.py": "_UNIT = (0.0, 1.0)\n",
            "d.py": "@overload\ndef up(x: int): ...\n",
        }
        modules = tree(tmp_path, sources)
        assert counts.units(modules) == {"pack/a.py": "2.0 ** (-53)", "pack/b.py": "2.0 ** (-52)"}
        assert counts.rounding_up(modules) == ["pack/a.py"]


def test_type_tests_and_files_that_name_a_mechanism(tmp_path: Path) -> None:
    asked = (
        "def f(p, q):\n    if isinstance(p, XParameters | int): pass\n    if type(q) is XParameters: pass\n"
        "    match p:\n        case XParameters(): pass\n    return isinstance(p, int)\n"
    )
    sources = {
        "mechanisms/x.py": "class XParameters: ...\nisinstance(1, XParameters)\n",
        "mechanisms/list.py": "from pack.mechanisms.x import XParameters\n",
        "asks.py": asked,
        "says.py": '"""XParameters."""\n',
    }
    modules = tree(tmp_path, sources)
    classes = counts.mechanism_classes(modules)
    assert {name: home.name for name, home in classes.items()} == {"XParameters": "pack.mechanisms.x"}
    assert counts.type_tests(modules, classes) == {"pack/asks.py": 3}
    named = counts.files_naming("XParameters", modules, classes["XParameters"])
    assert sorted(named) == ["pack/asks.py", "pack/mechanisms/list.py"]


def test_packages_of_the_reference(tmp_path: Path) -> None:
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    (tmp_path / "docs" / "reference.md").write_text("# Public names\n\n## `thresholdout`\n\n## `thresholdout.ledger`\n")
    (tmp_path / "docs" / "reference" / "graphs.md").write_text("```{eval-rst}\n.. currentmodule:: graphs\n```\n")
    assert counts.reference_packages(tmp_path) == ["thresholdout", "thresholdout.ledger", "graphs"]
