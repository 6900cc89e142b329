"""Recommendations in words."""

from __future__ import annotations

import math

from thresholdout.certificates import Certificate
from thresholdout.planning.candidates import transcript_tolerance
from thresholdout.planning.use import Alternative, MechanismName, Use

__all__ = ["parts_would_do", "recommend", "recommend_all"]


def recommend(
    use: Use, mechanism: MechanismName, guard: Certificate, chosen: Certificate, noisy: float, split: float
) -> str:
    """Say what to do, and why.

    Parameters
    ----------
    use : Use
        What was declared.
    mechanism : str
        What is recommended.
    guard, chosen : Certificate
        Of the best Thresholdout, and of what is recommended.
    noisy, split : float
        Tolerances of a Gaussian guard and of splitting.
    """
    other = _splitting(use.queries, split, use.identically_distributed)
    if mechanism == "splitting":
        words = [
            f"Split the holdout: with a fresh part of {use.n // use.queries} records for each of the {use.queries} "
            f"questions every answer is within {split:.3g}, and no noise is needed; a guard's tolerance would be "
            f"{min(noisy, guard.tolerance):.3g}."
        ]
    elif mechanism == "gaussian":
        words = [
            f"Answer every question from the holdout with Gaussian noise: all {use.queries} answers are within "
            f"{noisy:.3g} at confidence {use.confidence:g}, however many disagree with the training part. Thresholdout "
            f"with {use.target.budget} surprises would reach {guard.tolerance:.3g}{other}."
        ]
    else:
        words = [
            f"Guard the holdout: all {use.queries} answers, up to {use.target.budget} of them from the holdout, are "
            f"within {guard.tolerance:.3g} at confidence {use.confidence:g} ({guard.route} route)."
        ]
        if noisy < math.inf:
            words.append(f"Gaussian answers from the holdout to all of them would reach {noisy:.3g}{other}.")
        elif other:
            words.append(f"{other[2:].capitalize()}.")
        if guard.route == "transcript":
            bare = transcript_tolerance(use, 0.0)
            share = use.target.noise_share
            words.append(f"The noise takes {share:.0%} of the tolerance; with next to none it would be {bare:.3g}.")
        words.append(_margin_in_words(use))
    return " ".join([*words, _truth_in_words(chosen)])


def recommend_all(
    best: Alternative, noisy: Alternative, split: Alternative, certificate: Certificate, queries: int
) -> str:
    """Say how to answer all questions from the holdout.

    Parameters
    ----------
    best, noisy, split : Alternative
        What is recommended; the Gaussian guard, and splitting.
    certificate : Certificate
        Of what is recommended.
    queries : int
        How many questions.
    """
    if best is split:
        other = f"; Gaussian answers would reach {noisy.tolerance:.3g}" if noisy.tolerance < math.inf else ""
        words = (
            f"Split the holdout: with a fresh part for each of the {queries} questions every answer is within "
            f"{split.tolerance:.3g}, and no noise is needed{other}."
        )
    else:
        words = (
            f"Answer every question from the holdout with Gaussian noise: all {queries} answers are within "
            f"{noisy.tolerance:.3g} at confidence {certificate.confidence:g}"
            f"{_splitting(queries, split.tolerance, split.offered)}."
        )
    return f"{words} {_truth_in_words(certificate)}"


def parts_would_do(width: float) -> str:
    """Say, at the end of a refusal, within what parts would answer if one law were declared."""
    return (
        "; if all records have one law and each question is the same function of every record, say so by "
        f"identically_distributed=True: parts of the records then reach {width:.3g}"
    )


def _splitting(queries: int, split: float, declared: bool) -> str:
    if split == math.inf:
        return ""
    law = "" if declared else ", if all records have one law (identically_distributed=True)"
    return f"; splitting it into {queries} parts would reach {split:.3g}{law}"


def _truth_in_words(certificate: Certificate) -> str:
    return f"The truth of a question is {certificate.about}."


def _margin_in_words(use: Use) -> str:
    if use.target.quiet_margin is not None or use.margin > 0.0:
        return f"Questions whose train value is within {use.margin:.3g} of the holdout mean spend no budget."
    if use.concentrates:
        why = "the records fluctuate together by more than the range"
    else:
        why = "under this dependence the holdout mean of every question can be far from the truth"
    return f"There is no quiet margin, because {why}: even honest questions may spend budget."
