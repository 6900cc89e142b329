"""How often `EPLinearRegression` says that its predictions are noise, on good fits and on fits that are worth nothing.

Run with ``python -m benchmarks.private_learners posteriors``; some two minutes. With features as the comparison scales
them, and as they come; scikit-learn's diabetes data also as they are, with features of deviation 0.05.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from dataclasses import replace

from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from benchmarks.private_learners.learners import PRIVATE
from benchmarks.private_learners.swings import kind
from benchmarks.private_learners.tasks import TASKS, splits

__all__ = ["posteriors"]

EPSILONS, CLIPS = (0.5, 1.0, 3.0, 8.0, 30.0), (0.3, 1.0, 10.0)
WORDS = ("the posterior moved", "noise adds")


def posteriors() -> None:
    raw = replace(TASKS["diabetes"], made=lambda: load_diabetes(return_X_y=True))
    cases = [("linear", 500), ("linear", 2000), ("diabetes", 400), ("raw diabetes", 400), ("friedman", 500)]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    print("task  records  scaled  epsilon  clip  R2  possible  warned of the signal  of noise in predictions")
    for name, records in cases:
        task = raw if name == "raw diabetes" else TASKS[name]
        for split in list(splits(task, records))[:2]:
            line = LinearRegression().fit(split.X, split.y).score(split.X_test, split.y_test)
            for scaled in (True, False):
                for epsilon in EPSILONS:
                    for clip in CLIPS:
                        model = PRIVATE["number"]["EPLinearRegression"](task, records, epsilon, split.seed)
                        model.set_params(clip_norm=clip, n_epochs=3 if records == 2000 else 10)
                        if not scaled:
                            model.set_params(x_offset=None, x_scale=None)
                        with warnings.catch_warnings(record=True) as found:
                            warnings.simplefilter("always")
                            score = model.fit(split.X, split.y).score(split.X_test, split.y_test)
                        said = [any(words in str(each.message) for each in found) for words in WORDS]
                        print(
                            f"{name}  {records}  {scaled}  {epsilon:g}  {clip:g}  {score:.4g}  {line:.4g}  {said}",
                            flush=True,
                        )
                        counts[kind(score, line)].update(
                            ["fits", *(words for words, yes in zip(WORDS, said, strict=True) if yes)]
                        )
    print("R2 | fits", *WORDS, sep=" | ")
    for how, row in counts.items():
        print(how, row["fits"], *(row[words] for words in WORDS), sep=" | ")
