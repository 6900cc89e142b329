"""Recommendations in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from thresholdout.certificates import Certificate
from thresholdout.planning.candidates import transcript_tolerance
from thresholdout.planning.use import Alternative, MechanismName, Use

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["recommend", "recommend_all"]


def recommend(use: Use, mechanism: MechanismName, guard: Certificate, noisy: float, split: float) -> str:
    """Say what to do, and why.

    Parameters
    ----------
    use : Use
        What was declared.
    mechanism : str
        What is recommended.
    guard : Certificate
        Of the best Thresholdout.
    noisy, split : float
        Tolerances of a Gaussian guard and of splitting.
    """
    if mechanism == "splitting":
        return (
            f"Split the holdout: with a fresh part of {use.n // use.queries} records for each of the {use.queries} "
            f"questions every answer is within {split:.3g}, and no noise is needed; a guard's tolerance would be "
            f"{min(noisy, guard.tolerance):.3g}."
        )
    if mechanism == "gaussian":
        return (
            f"Answer every question from the holdout with Gaussian noise: all {use.queries} answers are within "
            f"{noisy:.3g} at confidence {use.confidence:g}, however many disagree with the training part. Thresholdout "
            f"with {use.target.budget} surprises would reach {guard.tolerance:.3g}{_splitting(use.queries, split)}."
        )
    words = [
        f"Guard the holdout: all {use.queries} answers, up to {use.target.budget} of them from the holdout, are within "
        f"{guard.tolerance:.3g} at confidence {use.confidence:g} ({guard.route} route)."
    ]
    if noisy < math.inf:
        words.append(
            f"Gaussian answers from the holdout to all of them would reach {noisy:.3g}{_splitting(use.queries, split)}."
        )
    elif split < math.inf:
        words.append(f"Splitting it into {use.queries} parts would reach {split:.3g}.")
    if guard.route == "transcript":
        bare = transcript_tolerance(use, 0.0)
        share = use.target.noise_share
        words.append(f"The noise takes {share:.0%} of the tolerance; with next to none it would be {bare:.3g}.")
    words.append(_margin_in_words(use))
    return " ".join(words)


def recommend_all(model: DependenceModel, queries: int, confidence: float, options: Sequence[Alternative]) -> str:
    """Say how to answer all questions from the holdout.

    Parameters
    ----------
    model, queries, confidence
        What was declared or solved for.
    options : sequence of Alternative
        The Gaussian guard and splitting.
    """
    noisy, split = (option.tolerance for option in options)
    if split <= noisy:
        other = f"; Gaussian answers would reach {noisy:.3g}" if noisy < math.inf else ""
        return (
            f"Split the holdout: with a fresh part of {model.n // queries} records for each of the {queries} questions "
            f"every answer is within {split:.3g}, and no noise is needed{other}."
        )
    return (
        f"Answer every question from the holdout with Gaussian noise: all {queries} answers are within {noisy:.3g} at "
        f"confidence {confidence:g}{_splitting(queries, split)}."
    )


def _splitting(queries: int, split: float) -> str:
    return f"; splitting it into {queries} parts would reach {split:.3g}" if split < math.inf else ""


def _margin_in_words(use: Use) -> str:
    if use.target.quiet_margin is not None or use.margin > 0.0:
        return f"Questions whose train value is within {use.margin:.3g} of the holdout mean spend no budget."
    if use.concentrates:
        why = "the records fluctuate together by more than the range"
    else:
        why = "under this dependence the holdout mean of every question can be far from the truth"
    return f"There is no quiet margin, because {why}: even honest questions may spend budget."
