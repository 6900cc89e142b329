"""How the gallery of examples is made: their order, their pictures, and the output of those that take long."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst

EXAMPLES = Path(__file__).parents[1] / "examples"
PRINTED = EXAMPLES / "printed"
"""What examples print that are not run with the pages."""

ORDER = (
    *("grid_search", "hill_climbing", "gate", "kfold", "optuna_study", "lightgbm_early_stopping"),
    *("holdout_in_files", "on_dask", "on_spark"),
    "evaluation_year",
    *("agent_over_mcp", "client_that_crashes"),
    *("grunfeld", "sunspots", "karate_club", "wells", "ratings", "correlated_holdout"),
    *("private_digits", "torch_digits", "audit_a_learner"),
)


def kept(name: str) -> bool:
    """Whether the output of an example is kept, because running it takes long."""
    return (PRINTED / f"{name}.txt").exists()


def place(file: str) -> int:
    """Return the place of an example; one that has none is an error."""
    return ORDER.index(Path(file).stem)


def arguments(settings: Any, script: dict[str, Any]) -> list[str]:
    """Let scripts that can draw do so, into the folder where they run."""
    path = Path(script["src_file"])
    return ["--picture", f"{path.stem}.png"] if "--picture" in path.read_text() and not kept(path.stem) else []


def picture(block: Any, variables: dict[str, Any], settings: Any) -> str:
    """Take what a script has drawn."""
    drawn = EXAMPLES / f"{Path(variables['src_file']).stem}.png"
    if not drawn.exists():
        return ""
    path = next(variables["image_path_iterator"])
    shutil.move(drawn, path)
    shown: str = figure_rst([path], settings["src_dir"], "what the example draws")
    return shown


def output(name: str) -> str:
    """Return the part of a page that shows what a script prints that is not run."""
    lines = (PRINTED / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join(
        [
            "",
            "This script takes ten seconds or more and was not run with this page. It prints:",
            "",
            ".. code-block:: none",
            "",
            *(f"    {line}" for line in lines),
            "",
        ]
    )
