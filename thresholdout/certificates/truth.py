"""Which truth answers are about: said by every certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.mechanisms.kind import Parameters

__all__ = ["Truth", "truth_of"]


@dataclass(frozen=True, slots=True)
class Truth:
    """What the truth of a question is.

    Attributes
    ----------
    short : str
        In a few words.
    sentence : str
        In full, to be read after "the truth is".
    """

    short: str
    sentence: str

    def given_features(self) -> Truth:
        """Return the same truth, given the features of all records.

        Examples
        --------
        >>> from graphs import Independent
        >>> from thresholdout.mechanisms import ClaimsParameters
        >>> truth_of(Independent(9), ClaimsParameters()).given_features().short
        'the average over all records, given their features'
        """
        known = _KNOWN.replace("given", "given the features of all of them and")
        sentence = self.sentence.replace(_KNOWN, known)
        sentence = sentence.replace(_POPULATION, "nothing is said about records with other features")
        return Truth(f"{self.short}, given their features", sentence)


_KNOWN = "given what was known before the first question"
_POPULATION = "the mean of the population, if all records have one law"
_EXPECTED = f"of what a question's values are expected to be, {_KNOWN}"
_ALL = Truth(
    "the average over all records",
    f"the average over all records of the holdout {_EXPECTED}; {_POPULATION}",
)
_FOLDS = Truth(
    "the average over all records of the models that were fitted",
    "the average over all records of what each one's value is expected to be under the model that was fitted without "
    "its fold, given the other folds; it is about these models, and not about one that is fitted to all records",
)


def truth_of(model: DependenceModel, parameters: Parameters) -> Truth:
    """Say which truth the answers of a mechanism are about.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other.
    parameters
        Public parameters of a mechanism.

    Examples
    --------
    >>> from graphs import Independent
    >>> from thresholdout.mechanisms import LadderParameters
    >>> truth_of(Independent(100), LadderParameters()).short
    'the best truth so far, the average over all records'
    """
    from graphs import Given
    from graphs.models.out_of_fold import OutOfFold

    plain = _FOLDS if isinstance(model, OutOfFold) else _ALL
    if isinstance(model, Given) and model.condition_beyond:
        plain = Truth(plain.short, plain.sentence.replace(_KNOWN, f"{_KNOWN} and {model.condition_beyond}"))
    direction = parameters.best_direction
    if direction is None:
        return plain
    best = "largest" if direction == "maximize" else "smallest"
    return Truth(
        f"the best truth so far, {plain.short}",
        f"the {best} one of all questions until then, and not that of the question just asked; for one question it is "
        f"{plain.sentence}",
    )
