"""Who may import whom, as far as the contracts in ``pyproject.toml`` cannot say it.

Those (``lint-imports``, part of ``make lint``) hold the layers. Here are cycles of imports that are carried out, also
inside functions and by strings, imports that cost time when a module is loaded, and the sizes of modules.
"""

import ast
import gc
import subprocess
import sys
from functools import cache

from benchmarks.structure.imports import (
    Import,
    Module,
    called,
    cycles,
    import_graph,
    imports_by_string,
    read_imports,
    read_modules,
    sibling_graphs,
)
from tests.cases import for_each
from tests.documents import ROOT

MODULES = read_modules(ROOT)

HEAVY = {"pandas", "sklearn", "scipy", "matplotlib", "sqlalchemy", "networkx", "tqdm", "joblib", "click"}
HEAVY |= {"httpx", "mcp", "fastapi", "starlette", "uvicorn", "pyarrow", "prometheus_client"}
HEAVY |= {"narwhals", "polars", "duckdb", "dask", "pyspark"}
HEAVY_ALLOWED = {
    "thresholdout.model_selection.guarded_search": {"sklearn"},
    "thresholdout.privacy.accounting": {"scipy"},
    "thresholdout.privacy.learning": {"scipy", "sklearn"},
    "thresholdout.privacy.auditing": {"scipy"},
    "thresholdout.cli": {"click"},
    "thresholdout.service.http": {"fastapi", "starlette", "uvicorn", "pyarrow", "prometheus_client"},
    "thresholdout.ledger.schema": {"sqlalchemy"},
    "thresholdout.ledger.address": {"sqlalchemy"},
    "thresholdout.service.serving": {"fastapi", "uvicorn"},
    "thresholdout.service.agents": {"mcp", "starlette"},
    "thresholdout.service.page": {"fastapi", "starlette"},
}


@cache
def all_imports() -> list[Import]:
    gc.disable()  # the trees of all modules stay, and a search for garbage would go through them again and again
    try:
        return read_imports(MODULES, ROOT)
    finally:
        gc.freeze()
        gc.enable()


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert cycles(import_graph(all_imports())) == []


def test_no_package_imports_itself_by_way_of_its_siblings() -> None:
    assert {
        package: found for package, graph in sibling_graphs(all_imports()).items() if (found := cycles(graph))
    } == {}


@for_each("module", MODULES.values(), ids=MODULES)
def test_heavy_libraries_are_imported_where_they_are_used(module: Module) -> None:
    for node, loaded in module.imports:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{module.name}: relative import"
            names = [node.module or ""]
        for name in names:
            root = name.split(".")[0]
            allowed = any(module.name.startswith(part) and root in roots for part, roots in HEAVY_ALLOWED.items())
            assert root not in HEAVY or not loaded or allowed, f"{module.name} loads {name} when it is imported"


def test_a_guard_is_imported_without_what_few_guards_need() -> None:
    """Modules that take long to load, and that only some queries need."""
    few = ["importlib.metadata", "multiprocessing", "scipy", "pandas", "sklearn", "thresholdout.privacy.accounting"]
    code = "import sys; from thresholdout import Thresholdout; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert not {*few} & {*loaded.split()}


def test_a_first_answer_about_arrays_loads_no_tables_and_no_estimators() -> None:
    code = (
        "import sys, numpy as np; from thresholdout import Thresholdout; X, y = np.eye(60), np.arange(60) % 2\n"
        "guard = Thresholdout((X[30:], y[30:]), train=(X[:30], y[:30])); guard.ask(y[:30] == 0, y[30:] == 0)\n"
        "print(*sys.modules)"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert not {"pandas", "sklearn", "matplotlib", "sqlalchemy"} & {*loaded.split()}
    few = ["graphs.leakage.network_messages", "graphs.models.moving_window", "thresholdout.guard.gates"]
    few += ["thresholdout.guard.lazy_records", "thresholdout.guard.scorer", "thresholdout.mechanisms.claims.evidence"]
    few += ["thresholdout.mechanisms.claims.leaderboard", "thresholdout.planning.planner", "thresholdout.planning.plan"]
    assert not {*few, "thresholdout.scoring.statistics"} & {*loaded.split()}  # their data classes take long to make


def test_only_packages_import_by_string_and_only_what_is_in_them() -> None:
    for module in MODULES.values():
        for name in imports_by_string(module, MODULES, ROOT):
            if (module.name, name) == ("thresholdout", "graphs"):
                continue  # looked for before it is imported, so that another distribution's is not run
            assert module.is_package, f"{module.name} imports {name} by a string"
            assert name.startswith(module.name + "."), f"{module.name} imports {name} by a string"


def test_importlib_is_for_packages() -> None:
    names = {"import_module", "__import__", "attach"}
    for module in (module for module in MODULES.values() if any(name in module.text for name in names)):
        lazy = {called(node) for node, _ in module.nodes} & names
        assert not lazy or module.is_package, f"{module.name} calls {lazy}"


def test_a_module_is_at_most_600_lines() -> None:
    assert {module.name: module.lines for module in MODULES.values() if module.lines > 600} == {}
