"""What answers from the holdout are worth near a likely score: posterior and Gaussian routes, Gaussian comparisons.

Run with ``python -m benchmarks.routes``. Nothing is drawn: all numbers follow from the declarations.
"""

from __future__ import annotations

import math
import time

from graphs import DependenceModel, Groups, Independent
from thresholdout.certificates import certify_gaussian
from thresholdout.certificates.gaussian.chosen_widths import one_scale
from thresholdout.certificates.gaussian.comparisons import comparison_blocks, tightest_comparisons
from thresholdout.certificates.gaussian.deviations import GaussianWidths
from thresholdout.certificates.gaussian.noise_schedule import most_answers
from thresholdout.certificates.independent_blocks import IndependentBlocks
from thresholdout.certificates.problem import Setting
from thresholdout.certificates.routes.posterior import PosteriorWidths, posterior_widths
from thresholdout.planning.algorithm_1 import algorithm_1
from thresholdout.planning.all_from_holdout import gaussian_parameters

N, BETA = 10_000, 0.05
SCORES = (0.5, 0.9, 0.97)


def planned(queries: int, budget: int, score: float | None) -> PosteriorWidths:
    """Return the widths of the guard that is planned for a likely score; no quiet margin, as routes are compared."""
    model = Independent(N)
    found = algorithm_1(model, queries=queries, budget=budget, confidence=1 - BETA, expected=score, quiet_margin=0.0)
    return posterior_widths(Setting(model, found, 1 - BETA))


def print_posterior() -> None:
    """Print the posterior route, planned for answers anywhere and for a likely score."""
    print(f"Posterior route, {N:,} independent records, confidence {1 - BETA:g}, no quiet margin; larger side of the")
    print("interval at each score, planned for answers anywhere and for that score\n")
    print(
        "| questions | budget | anywhere | " + " | ".join(f"{score}, same noise | planned" for score in SCORES) + " |"
    )
    print("|---|---|---|" + "---|---|" * len(SCORES))
    for queries, budget in ((20, 2), (20, 5), (100, 2), (1000, 2)):
        common = planned(queries, budget, None)
        near = [planned(queries, budget, score) for score in SCORES]
        cells = [f"{common.expected(s):.4f} | {widths.expected(s):.4f}" for s, widths in zip(SCORES, near, strict=True)]
        print(f"| {queries} | {budget} | {common.width:.4f} | " + " | ".join(cells) + " |")
    print()


def largest_side(widths: GaussianWidths, score: float, answers: int) -> float:
    """Return the largest side of any interval when every answer is the score, from the intervals themselves."""
    earlier: list[tuple[float, str]] = []
    widest = 0.0
    for query in range(1, answers + 1):
        low, high = widths.interval(query, query - 1, "holdout", score, earlier)
        widest = max(widest, score - max(0.0, low), min(1.0, high) - score)
        earlier.append((score, "holdout"))
    return widest


def gaussian_widths(model: DependenceModel, answers: int, score: float, *, schedule: bool) -> GaussianWidths:
    """Return the widths of the guard that is planned for a likely score."""
    parameters = gaussian_parameters(model, answers, 1 - BETA, score, schedule=schedule)
    certificate = certify_gaussian(model, parameters, 1 - BETA)
    widths = certificate.chosen.widths if certificate.chosen else None
    assert isinstance(widths, GaussianWidths)
    return widths


def print_gaussian() -> None:
    """Print the Gaussian route, with and without a schedule."""
    print(f"Gaussian route, {N:,} records, confidence {1 - BETA:g}; largest side of any interval at a likely score\n")
    print(
        "| records | answers | score | anywhere | one scale, planned | schedule, planned | tolerance of one | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|")
    models = (Independent(N), Groups([record // 5 for record in range(N)]))
    for model in models:
        for answers in (50, 300):
            for score in SCORES:
                start = time.perf_counter()
                widths = gaussian_widths(model, answers, score, schedule=False)
                spent = time.perf_counter() - start
                anywhere = certify_gaussian(model, gaussian_parameters(model, answers, 1 - BETA), 1 - BETA).tolerance
                same = largest_side(widths, score, answers)
                side = largest_side(gaussian_widths(model, answers, score, schedule=True), score, answers)
                print(
                    f"| {model.describe()} | {answers} | {score} | {anywhere:.4f} | {same:.4f} | {side:.4f} "
                    f"| {widths.tolerance():.4f} | {spent:.2f} |"
                )
    print()


def print_comparisons() -> None:
    """Print how many fully adaptive comparisons are possible within some points."""
    print(f"Gaussian comparisons given the features, {N:,} records: how many differences of accuracies are within\n")
    print("| disagreement | one scale, 2 points | 3 points | schedule, 2 points | 3 points | half-width of one fixed |")
    print("|---|---|---|---|---|---|")
    for share in (0.02, 0.05):
        blocks = comparison_blocks(N, share)
        cells = [str(most_of_one_scale(blocks, points / 2)) for points in (0.02, 0.03)]
        for points in (0.02, 0.03):
            most = most_answers(blocks, points / 2, BETA)
            cells.append(str(most.schedule.answers if most else 0))
        fixed = share * math.sqrt(2 * math.log(2 / BETA) / (share * N))
        print(f"| {share:.0%} | " + " | ".join(cells) + f" | {fixed:.4f} |")
    ten = tightest_comparisons(N, 0.05, 10, BETA).tolerance()
    print(f"\nTen comparisons at 5 % disagreement: differences within {2 * ten:.4f}.\n")


def most_of_one_scale(blocks: IndependentBlocks, tolerance: float) -> int:
    """Return how many answers with the same noise are within a tolerance."""
    low, high = 0, 100_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one_scale(blocks, middle, BETA).tolerance() <= tolerance else (low, middle)
    return low


def main() -> None:
    """Print the tables."""
    print_posterior()
    print_gaussian()
    print_comparisons()


if __name__ == "__main__":
    main()
