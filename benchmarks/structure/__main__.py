"""Print what is counted as tables."""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.structure.counts import (
    bisections,
    files_naming,
    folders,
    mechanism_classes,
    public_names,
    repeated_file_names,
    rounding_up,
    type_tests,
    units,
)
from benchmarks.structure.imports import (
    PACKAGES,
    cycles,
    import_graph,
    levels,
    read_imports,
    read_modules,
    sibling_graphs,
)
from benchmarks.structure.paths import TRACED, run

SAMPLE = "LadderParameters"


def measure(root: Path) -> dict[str, Any]:
    """Return everything that is counted in a checkout."""
    modules = read_modules(root)
    imports = read_imports(modules, root)
    whole = import_graph(imports)
    classes = mechanism_classes(modules)
    parameters = {name: home for name, home in classes.items() if re.fullmatch(r"\w+Parameters", name)}
    paths = run(TRACED, root)
    return {
        "folders": folders(modules),
        "modules": len(modules),
        "lines": sum(module.lines for module in modules.values()),
        "median": statistics.median(module.lines for module in modules.values()),
        "largest": max(module.lines for module in modules.values()),
        "levels": {
            package: {
                "at_load": levels(import_graph(imports, package=package, loaded_only=True)),
                "all": levels(import_graph(imports, package=package)),
            }
            for package in PACKAGES
        },
        "cycles": {
            "modules": cycles(whole),
            "packages": [one for graph in sibling_graphs(imports).values() for one in cycles(graph)],
        },
        "public_names": public_names(root, modules),
        "repeated_file_names": repeated_file_names(modules),
        "type_tests": {"parameters": type_tests(modules, parameters), "mechanisms": type_tests(modules, classes)},
        "files_naming": {name: files_naming(name, modules, home) for name, home in sorted(parameters.items())},
        "paths": paths,
        "bisections": bisections(modules),
        "units": units(modules),
        "up": rounding_up(modules),
    }


def _table(rows: Sequence[Sequence[object]]) -> str:
    """Return rows as a table of Markdown; the first is the head."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def summary(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the numbers, each with what it counts."""
    names = found["public_names"]
    rows = [
        ("modules, lines", f"{found['modules']}, {found['lines']:,}"),
        ("lines of a module, median and largest", f"{found['median']:g}, {found['largest']}"),
    ]
    for package, ways in found["levels"].items():
        rows.append(
            (f"levels of imports of {package}, at load and of all", f"{len(ways['at_load'])}, {len(ways['all'])}")
        )
    for kind, groups in found["cycles"].items():
        rows.append((f"cycles of {kind}; {kind} in them", f"{len(groups)}; {sum(len(one['group']) for one in groups)}"))
    rows += [
        ("public names", str(names["total"])),
        ("of them used by tests and benchmarks only", str(names["tests_only_total"])),
        ("file names that occur more than once", str(len(found["repeated_file_names"]))),
    ]
    for kind, tests in found["type_tests"].items():
        rows.append((f"tests for types of {kind} elsewhere", f"{sum(tests.values())} in {len(tests)} files"))
    rows.append((f"files that name {SAMPLE}", str(len(found["files_naming"].get(SAMPLE, [])))))
    for way, path in found["paths"].items():
        rows.append((f"files, classes on the path of {way}", f"{len(path['files'])}, {len(path['classes'])}"))
        rows.append((f"calls from planning into certificates, {way}", str(path["planning_to_certificates"])))
    return [
        *rows,
        ("bisections by hand", str(len(found["bisections"]))),
        ("units of rounding, their values", f"{len(found['units'])}, {len(set(found['units'].values()))}"),
        ("functions `up`", str(len(found["up"]))),
    ]


def render(found: Mapping[str, Any]) -> str:
    """Return what was counted as tables, then the lists behind the numbers."""
    columns = ("folder", "modules", "lines", "median", "largest")
    parts = [
        _table([("what", "count"), *summary(found)]),
        _table([columns, *([one[column] for column in columns] for one in found["folders"])]),
    ]
    for package, ways in found["levels"].items():
        parts += [f"levels of {package}, {way}: " + " -> ".join(path) for way, path in ways.items()]
    for kind, groups in found["cycles"].items():
        for one in groups:
            parts.append(f"cycle of {kind}: {' -> '.join(one['shortest'])}; all of it: {', '.join(one['group'])}")
    lists: dict[str, Mapping[str, object] | Sequence[object]] = {
        "public names": found["public_names"]["packages"],
        "used by tests and benchmarks only": found["public_names"]["tests_only"],
        "repeated file names": found["repeated_file_names"],
        **{f"tests for types of {kind}": tests for kind, tests in found["type_tests"].items()},
        "files that name the parameters": found["files_naming"],
        **{f"path of {way}": path["files"] for way, path in found["paths"].items()},
        "bisections by hand": found["bisections"],
        "units of rounding": found["units"],
        "functions `up`": found["up"],
    }
    for title, items in lists.items():
        lines = [f"{key}: {_said(value)}" for key, value in items.items()] if isinstance(items, Mapping) else items
        parts.append("\n".join([f"{title}:", *(f"  {line}" for line in lines)]))
    return "\n\n".join(parts)


def _said(value: object) -> str:
    """Return a value as text, and a list with its length."""
    return f"{len(value)}: {', '.join(value)}" if isinstance(value, list) else str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure", description="the shape of the code")
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).resolve().parents[2], help="the checkout to measure"
    )
    parser.add_argument("--json", type=Path, help="write what was counted to this file, too")
    chosen = parser.parse_args(arguments)
    found = measure(chosen.root.resolve())
    print(render(found))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
