"""
A year of pull requests against one evaluation set
==================================================

A team changes its prompts for a year, and checks every change against the same evaluation set.

Each change is compared with the release and with main, and has one outcome: worse, or nothing. Other changes are
merged. The probability that any of these outcomes is false is at most .05, whoever writes the next change from them.
Many small losses are merged, since no check can see them; after the planned surprises the set needs new items.

Run with ``python examples/evaluation_year.py``; ``--picture year.png`` draws main beside the drops that checks can see.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from thresholdout.errors import EvaluationSetUsed
from thresholdout.evaluations import EvaluationGuard, diff, formats, read

ITEMS = 1200


def answers(rng: np.random.Generator, difficulty: np.ndarray, effect: float) -> pd.DataFrame:
    """Draw whether a model answers each question, as a log would have it."""
    right = rng.random(ITEMS) < np.clip(difficulty + effect, 0.0, 1.0)
    return pd.DataFrame({"question": [f"question {k}" for k in range(ITEMS)], "right": right})


def main(changes: int = 60, picture: str | None = None) -> None:
    """Check the changes of a year, and print which were merged."""
    rng = np.random.default_rng(5)
    difficulty = rng.beta(0.75, 0.25, size=ITEMS)
    with tempfile.TemporaryDirectory() as folder:
        logs = {name: Path(folder, f"{name}.csv") for name in ("release", "pr")}
        answers(rng, difficulty, 0.0).to_csv(logs["release"], index=False)
        release = read(logs["release"], "right", item="question")
        guard = EvaluationGuard.create(Path(folder, "evals.db"), release, checks=300, surprises=5, dev=0.0)

        truth, main_truth = 0.0, [0.0]
        for number in range(1, changes + 1):
            effect = float(rng.choice([-0.15, 0.0, 0.01, -0.01], p=[0.1, 0.3, 0.3, 0.3]))
            answers(rng, difficulty, truth + effect).to_csv(logs["pr"], index=False)
            run = guard.read(logs["pr"])
            if number == 1:
                print("one comparison, without memory:", formats.line(diff(release, run)))
            try:
                outcome = guard.check(run, f"change {number}").outcome
            except EvaluationSetUsed as end:
                print(f"change {number}: {end}")
                break
            if outcome == "worse":
                print(f"change {number}: worse by the check; its true effect is {100 * effect:+.0f} points")
            else:
                truth += effect
                guard.promote(run)
            main_truth.append(truth)
        status = guard.status()

    used = f"{status.done} checks, {status.surprised} of {status.surprises} surprises"
    print(f"{used}; main is {100 * truth:+.0f} points")
    if status.smallest_drop is not None:
        print(f"the next check sees a drop of {100 * status.smallest_drop:.1f} points")
    if picture is not None:
        draw(main_truth, [each.smallest_drop for each in status.history if each.outcome != "promoted"], picture)


def draw(main_truth: list[float], drops: list[float | None], picture: str) -> None:
    """Draw main's true drift, and the drops that checks could see."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 3.5))
    ax.step(range(len(main_truth)), 100 * np.array(main_truth), where="post", label="main, in truth")
    seen = [np.nan if drop is None else -100 * drop for drop in drops]
    ax.step(range(1, len(seen) + 1), seen, where="post", label="smallest drop that a check sees")
    ax.fill_between(range(1, len(seen) + 1), seen, -40, step="post", alpha=0.1, color="C1")
    ax.axhline(0.0, color="0.6", linewidth=0.8)
    ax.set(xlabel="change", ylabel="points against the release", ylim=(-25, 15))
    ax.legend(frameon=False)
    figure.savefig(picture, dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", help="file to draw to")
    main(picture=parser.parse_args().picture)
