"""Epsilons of DP-SGD on Poisson batches, beside those of dp-accounting, Opacus and autodp, at their defaults.

Run with ``python -m benchmarks.poisson_peers``: prints the table of what was measured. With the word ``run`` everything
is measured again and kept in ``poisson_peers.json``, with the versions of the peers; one that is not installed is left
out.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import timed
from benchmarks.accounting_sweep import autodp
from thresholdout.privacy.accounting import DistributionAccountant, PoissonGaussianStep, SelfComposed
from thresholdout.privacy.accounting.events.event_types import Adjacency

DONE = Path(__file__).with_name("poisson_peers.json")
DELTA = 1e-5
SETTINGS = ((1.1, 256, 60_000, 14_062), (6.0, 120, 50_000, 104_000), (0.7, 5, 1_000, 50), (8.0, 1_000, 5_000, 300))
"""Noise, expected batch size, records and steps."""

PACKAGES = ("dp-accounting", "opacus", "autodp")
Columns = dict[str, Callable[[float, float, int], float]]


def here(sigma: float, q: float, steps: int, adjacency: Adjacency = "add_remove") -> float:
    """Return the upper bound by distributions."""
    event = SelfComposed(PoissonGaussianStep(sigma, q), steps)
    return DistributionAccountant(adjacency).compose(event).epsilon(DELTA)


def dp_accounting(sigma: float, q: float, steps: int, relation: str = "ADD_OR_REMOVE_ONE") -> float:
    """Return dp-accounting's epsilon by distributions."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(getattr(dp_accounting.NeighboringRelation, relation))
    event = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
    return float(accountant.compose(event, steps).get_epsilon(DELTA))


def opacus(sigma: float, q: float, steps: int, kind: str = "PRVAccountant") -> float:
    """Return the epsilon of one of Opacus' accountants."""
    from opacus import accountants

    accountant = getattr(accountants, kind)()
    accountant.history = [(sigma, q, steps)]
    return float(accountant.get_epsilon(DELTA))


COLUMNS: Columns = {
    "here": here,
    "dp-accounting": dp_accounting,
    "Opacus, PRV": opacus,
    "Opacus, Rényi": lambda sigma, q, steps: opacus(sigma, q, steps, "RDPAccountant"),
    "autodp": lambda sigma, q, steps: autodp(sigma, q, steps, DELTA),
    "replaced: here": lambda sigma, q, steps: here(sigma, q, steps, "replace_one"),
    "dp-accounting, replaced": lambda sigma, q, steps: dp_accounting(sigma, q, steps, "REPLACE_ONE"),
}


def measured() -> dict[str, Any]:
    """Return every epsilon and its seconds, and the versions of the peers."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            print(f"{name} is not installed", file=sys.stderr)
    found = []
    for sigma, size, records, steps in SETTINGS:
        row: dict[str, Any] = {"sigma": sigma, "size": size, "records": records, "steps": steps}
        for name, call in COLUMNS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    row[name] = timed(lambda: call(sigma, size / records, steps), repeat=1)  # noqa: B023
                except ImportError:
                    row[name] = None
        found.append(row)
    return {"versions": versions, "rows": found}


def table(found: dict[str, Any]) -> str:
    """Return the epsilons as a table."""
    lines = [f"| noise, batch, steps | {' | '.join(COLUMNS)} |", "|---|" + "---|" * len(COLUMNS)]
    for row in found["rows"]:
        cells = ["-" if row[name] is None else f"{row[name][0]:.4f}" for name in COLUMNS]
        what = f"{row['sigma']:g}, {row['size']:,} of {row['records']:,}, {row['steps']:,}"
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(words: list[str] | None = None) -> None:
    """Measure everything again where that is asked for, and print the table."""
    if words == ["run"]:
        DONE.write_text(json.dumps(measured(), indent=1) + "\n")
    print(table(json.loads(DONE.read_text())))


if __name__ == "__main__":
    main(sys.argv[1:])
