"""Who may import whom: from the top down only."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Higher numbers may import lower ones, and their equals where they form one part.
LAYERS = {
    "graphs": 0,
    "thresholdout.errors": 1,
    "thresholdout.silence": 1,
    "thresholdout.limits.rounded_intervals": 1,
    "thresholdout.privacy.accounting": 2,
    "thresholdout.guard.answer": 2,
    "thresholdout.limits": 2,
    "thresholdout.privacy.learning": 3,
    "thresholdout.privacy.auditing": 3,
    "thresholdout.guard.sharing.private_socket": 2,
    "thresholdout.guard.sharing.shared_objects": 2,
    "thresholdout.data.identity": 2,
    "thresholdout.scoring.metrics": 2,
    "thresholdout.noise.rounded_gaussian": 2,
    "thresholdout.noise.sources": 2,
    "thresholdout.data.values": 2,
    "thresholdout.data.row_hashes": 2,
    "thresholdout.data.record_labels": 2,
    "thresholdout.data.overlap": 3,
    "thresholdout.guard.holdout": 3,
    "thresholdout.guard.unserved_metrics": 4,
    "thresholdout.guard.sample_weights": 4,
    "thresholdout.guard.question": 5,
    "thresholdout.guard.state_check": 5,
    "thresholdout.guard.asking": 5,
    "thresholdout.guard.comparing": 5,
    "thresholdout.guard.comparison": 5,
    "thresholdout.guard.given_features": 5,
    "thresholdout.guard.scores": 5,
    "thresholdout.guard.answering": 5,
    "thresholdout.guard.registration": 5,
    "thresholdout.scoring.statistics": 4,
    "thresholdout.mechanisms": 3,
    "thresholdout.ledger": 3,
    "thresholdout.certificates": 4,
    "thresholdout.ledger.entry_table": 4,
    "thresholdout.plotting": 2,
    "thresholdout.guard.external_releases": 5,
    "thresholdout.guard.exhaustion": 5,
    "thresholdout.guard.scorer": 6,
    "thresholdout.guard.train_split": 6,
    "thresholdout.planning": 5,
    "thresholdout.report": 5,
    "thresholdout.guard.gates": 6,
    "thresholdout.guard.guard": 6,
    "thresholdout.guard.sharing.remote_guard": 6,
    "thresholdout": 7,
    "thresholdout.model_selection": 8,
    "thresholdout.service.prediction_guard": 8,
    "thresholdout.simulation": 8,
    "thresholdout.cli": 9,
}
SAME_LAYER_STRANGERS = {
    ("thresholdout.privacy.auditing", "thresholdout.privacy.learning"),
    ("thresholdout.mechanisms", "thresholdout.ledger"),
}

# The event of an interaction with a guard asks the mechanism what it leaks. The guard counts the questions of a search.
EXCEPTIONS = {
    ("thresholdout.privacy.accounting", "thresholdout.mechanisms"),
    ("thresholdout.guard.guard", "thresholdout.model_selection"),
}

HEAVY = {"pandas", "sklearn", "scipy", "matplotlib", "sqlalchemy", "networkx", "tqdm", "joblib", "click"}
HEAVY_ALLOWED = {
    "thresholdout.model_selection.guarded_search": {"sklearn"},
    "thresholdout.model_selection.question_keys": {"joblib"},
    "thresholdout.privacy.accounting": {"scipy"},
    "thresholdout.privacy.learning": {"scipy", "sklearn"},
    "thresholdout.privacy.auditing": {"scipy"},
    "thresholdout.cli": {"click"},
    "thresholdout.ledger.schema": {"sqlalchemy"},
    "thresholdout.ledger.address": {"sqlalchemy"},
}


def modules() -> list[tuple[str, Path]]:
    found = []
    for package in ("graphs", "thresholdout"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.append((".".join(p for p in parts if p != "__init__"), path))
    return found


def part_of(module: str) -> str:
    """Name of the longest known part that a module belongs to."""
    best = [part for part in LAYERS if module == part or module.startswith(part + ".")]
    return max(best, key=len)


def imports(path: Path) -> list[tuple[str, bool]]:
    """Return the modules that a file imports, and whether it does so when it is loaded."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.dump(branch.test)
        for node in ast.walk(branch)
    }
    inside = {
        id(node) for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for node in ast.walk(function)
    }
    found = []
    for node in ast.walk(tree):
        loaded = id(node) not in inside and id(node) not in typing_only
        if isinstance(node, ast.Import):
            found += [(alias.name, loaded) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append((node.module or "", loaded))
    return found


@pytest.mark.parametrize(("module", "path"), modules(), ids=[m for m, _ in modules()])
def test_imports_go_down(module: str, path: Path) -> None:
    mine = part_of(module)
    for imported, loaded in imports(path):
        root = imported.split(".")[0]
        if root in HEAVY:
            allowed = any(module.startswith(m) and root in roots for m, roots in HEAVY_ALLOWED.items())
            assert not loaded or allowed, f"{module} loads {imported} when it is imported"
        if root not in {"graphs", "thresholdout"}:
            continue
        theirs = part_of(imported)
        if theirs == mine or (mine, theirs) in EXCEPTIONS:
            continue
        assert LAYERS[theirs] <= LAYERS[mine], f"{module} imports {imported}"
        if LAYERS[theirs] == LAYERS[mine]:
            assert (mine, theirs) not in SAME_LAYER_STRANGERS, f"{module} imports {imported}"
            assert (theirs, mine) not in SAME_LAYER_STRANGERS, f"{module} imports {imported}"


def test_a_module_is_at_most_600_lines() -> None:
    sizes = {module: len(path.read_text().splitlines()) for module, path in modules()}
    assert max(sizes.values()) <= 600, {m: s for m, s in sizes.items() if s > 600}
