"""Climbs of an agent behind each rule, on slices of one task."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.agents.keeping_rules import RULES, Record
from benchmarks.agents.pipeline_edits import Fitted, Proposer, fit, repertoire
from benchmarks.agents.small_tasks import GENERATED, Task, draw

__all__ = ["PROPOSALS", "SLICES", "cell"]

SLICES: Final = {75: 4, 200: 4, 650: 2, 2_000: 1, 20_000: 1}
"""Records in a slice, and how many slices there are in each cell."""
PROPOSALS: Final = 25
LEAST: Final = 200  # records that tell the truth of a file


def parts(task: Task, size: int, place: int, rng: np.random.Generator, fresh: int | None) -> tuple[Any, Any]:
    """Return the numbers of a slice's records, and of those that tell the truth."""
    if fresh is not None:
        first = task.train + place * size
        return np.arange(first, first + size), np.arange(len(task.y) - fresh, len(task.y))
    others = task.train + rng.permutation(len(task.y) - task.train)
    return others[:size], others[size:]


def climb(name: str, record: Record, truth: NDArray[np.float64], seed: int) -> dict[str, float]:
    """Offer a rule its proposals, and return what became of it."""
    rule = RULES[name](record)
    proposer = Proposer([member.choices for member in record.members], np.random.default_rng(seed))
    champion, kept, wrong, offered = 0, 0, 0, truth[0]
    for _ in range(record.proposals):
        proposal = proposer.next(champion)
        offered = max(offered, truth[proposal])
        if rule.keep(proposal):
            kept, wrong = kept + 1, wrong + int(truth[proposal] < truth[champion])
            champion = proposal
    report = rule.report()
    return {
        "gap": report.score - truth[champion],
        "kept": float(kept),
        "wrong": float(wrong),
        "missed": offered - truth[champion],
        "gain": truth[champion] - truth[0],
        "half_width": report.half_width,
        "outside": float(abs(report.score - truth[champion]) > report.half_width),
        "certified": float(len(report.certified)),
        "false": float(sum(truth[new] <= truth[old] for old, new in report.certified)),
    }


def cell(rng: np.random.Generator, task: str, members: int, fresh: int) -> list[dict[str, Any]]:
    """Fit a repertoire to one task, and run every rule on every slice."""
    drawn = draw(task, int(rng.integers(2**31)), fresh)
    found: list[Fitted] = [fit(one, drawn) for one in repertoire(rng, members, len(np.unique(drawn.y)))]
    right = np.array([one.predictions == drawn.y for one in found])
    known = fresh if task in GENERATED else None
    rows = []
    for size, times in SLICES.items():
        if known is None and len(drawn.y) - drawn.train - size < LEAST:
            continue
        for place in range(times):
            seed = int(rng.integers(2**31))
            part, rest = parts(drawn, size, place, rng, known)
            record = Record(drawn, found, part, min(PROPOSALS, members - 1), seed)
            truth = right[:, rest].mean(axis=1)
            rows += [
                {"records": size, "place": place, "rule": name} | climb(name, record, truth, seed) for name in RULES
            ]
    return rows
