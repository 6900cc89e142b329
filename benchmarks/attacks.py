"""How close the strongest simple attack comes to the certified half-widths, for every mechanism behind a guard.

Every record is a row of fair signs, so every attribute, and every majority vote of attributes, is right about exactly
half of the records in truth. The analyst asks for the accuracy of one attribute after the other, turns each to the side
that the answers favour, and asks for the majority vote at the end: it fits the holdout far better than the truth. Where
a mechanism answers with the training value until the holdout contradicts it, she claims of her first attributes that
each is always right.

Run with ``python -m benchmarks.attacks``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from graphs import DependenceModel, Groups, Independent, MarkovChain
from thresholdout import BudgetExhausted, InputError, PlanError, Thresholdout

RECORDS, ATTRIBUTES, FORCED, GROUP, STAY = 2000, 200, 9, 20, 0.75
CONFIDENCE = 0.9
MECHANISMS = ("claims", "ladder")


@dataclass(frozen=True)
class Run:
    """One interaction: the largest error, the largest share of a half-width that an error was, and answers given."""

    error: float
    share: float
    answers: int

    @property
    def broken(self) -> bool:
        """Whether some answer was off by more than its half-width."""
        return self.share > 1.0


def models() -> dict[str, DependenceModel]:
    """Return the kinds of dependence, each with the model that tells the truth about it."""
    return {
        "independent": Independent(RECORDS),
        "groups of 20 equal records": Groups(np.arange(RECORDS) // GROUP),
        "chain, lambda 0.5": MarkovChain([[STAY, 1 - STAY], [1 - STAY, STAY]], n=RECORDS),
    }


def signs(kind: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw the attributes of all records; every one is true with probability 1/2."""
    if kind.startswith("groups"):
        return np.repeat(rng.random((RECORDS // GROUP, ATTRIBUTES)) < 0.5, GROUP, axis=0)
    if kind.startswith("chain"):
        # a row is kept or drawn afresh as a whole: for every attribute, and for all together, lambda is 2 STAY - 1
        afresh = rng.random(RECORDS) < 2 * (1 - STAY)
        rows: NDArray[np.bool_] = rng.random((RECORDS, ATTRIBUTES)) < 0.5
        return rows[np.maximum.accumulate(np.where(afresh, np.arange(RECORDS), 0))]
    return rng.random((RECORDS, ATTRIBUTES)) < 0.5


def attack(guard: Thresholdout, attributes: NDArray[np.bool_], rng: np.random.Generator) -> Run:
    """Ask for every attribute, then for the majority vote of all that were turned by what was told."""
    errors, shares, votes = [0.0], [0.0], np.zeros(len(attributes))
    try:
        for k in range(ATTRIBUTES + 1):
            values = attributes[:, k] if k < ATTRIBUTES else votes > 0
            answer = guard.ask(1.0 if k < FORCED else 0.5, values)
            errors.append(abs(answer.value - 0.5))
            shares.append(errors[-1] / answer.half_width)
            side = np.sign(answer.value - 0.5) or rng.choice([-1.0, 1.0])
            votes += side * np.where(values, 1.0, -1.0)
    except BudgetExhausted:
        pass
    return Run(max(errors), max(shares), len(errors) - 1)


def runs(
    kind: str, mechanism: Any, count: int, *, assumed: DependenceModel | None = None, first_seed: int = 0
) -> Iterator[Run]:
    """Attack a guard many times, each when it is asked for, on fresh data; ``assumed`` replaces the true model.

    Raises
    ------
    InputError, PlanError
        When the mechanism does not serve the model.
    """
    model = models()[kind] if assumed is None else assumed
    queries = ATTRIBUTES + 1
    for seed in range(first_seed, first_seed + count):
        rng = np.random.default_rng([seed, ATTRIBUTES])
        guard = Thresholdout(
            np.arange(RECORDS),
            dependence=model,
            queries=queries,
            confidence=CONFIDENCE,
            mechanism=mechanism,
            sampling="iid",
            random_state=seed,
        )
        mechanism = guard.parameters  # planned once
        yield attack(guard, signs(kind, rng), rng)


def main(count: int = 100) -> None:
    """Print the table."""
    print(f"{count} runs each, {RECORDS:,} records, {ATTRIBUTES + 1} queries, confidence {CONFIDENCE}\n")
    print("| records | mechanism | answers | largest error | share of the half-width, median | largest | runs broken |")
    print("|---|---|---|---|---|---|---|")
    jobs = [(kind, mechanism) for kind in models() for mechanism in MECHANISMS]
    for kind, mechanism in tqdm(jobs, disable=None, leave=False):
        try:
            found = list(runs(kind, mechanism, count))
        except (InputError, PlanError) as error:
            print(f"| {kind} | {mechanism} | none: {str(error).split(';')[0].split(', since')[0]} | | | | |")
            continue
        answers = sorted(run.answers for run in found)[count // 2]
        shares = np.array([run.share for run in found])
        broken = sum(run.broken for run in found)
        print(
            f"| {kind} | {mechanism} | {answers} | {max(run.error for run in found):.3f} | {np.median(shares):.2f} "
            f"| {shares.max():.2f} | {broken} |"
        )


if __name__ == "__main__":
    main()
