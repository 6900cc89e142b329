"""Every certificate says which truth it is about."""

from typing import Any

from graphs import DependenceModel, Groups, Independent, MarkovChain
from graphs.models.out_of_fold import OutOfFold
from tests.cases import for_each
from thresholdout.certificates.after_releases import with_releases
from thresholdout.certificates.certificate import estimand_of
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.mechanisms import (
    LadderParameters,
    SparseVectorParameters,
)
from thresholdout.privacy.accounting import BlackBox

N = 2000
GUARD = SparseVectorParameters(0.1, 0.001, 2, 20)
INDEPENDENT, PAIRS = Independent(N), Groups([k // 2 for k in range(N)])
CHAIN, FOLDS = MarkovChain([[0.8, 0.2], [0.2, 0.8]], n=N), OutOfFold([k % 5 for k in range(N)])
ALL = "the average over all records of the holdout of the expected value of a query"
POPULATION = "the mean of the population, if all records have one law"
CASES: list[tuple[DependenceModel, Any, list[str]]] = [
    (INDEPENDENT, GUARD, [ALL, POPULATION]),
    (PAIRS, GUARD, [ALL, POPULATION]),
    (CHAIN, GUARD, [ALL, "given all that was known before the first query"]),
    (INDEPENDENT, LadderParameters(), ["the largest one of all queries until then", "not that of the query", ALL]),
    (INDEPENDENT, LadderParameters(direction="minimize"), ["the smallest one of all queries until then", ALL]),
    (
        FOLDS,
        GUARD,
        ["fitted without the record's fold", "not about one that is fitted to all records"],
    ),
    (FOLDS, LadderParameters(inflation=5.0), ["the largest one of all queries", "fitted without the record's fold"]),
]


@for_each(("model", "parameters", "said"), CASES, ids=str)
def test_each_mechanism_and_mode(model: DependenceModel, parameters: Any, said: list[str]) -> None:
    certificate = certify_parameters(model, parameters)
    for words in said:
        assert words in certificate.about
    assert f"The truth is {certificate.about}." in certificate.statement or certificate.chosen is None
    assert certificate.about in certificate.statement
    assert certificate.estimand.short in repr(certificate)
    if ALL not in said:
        assert POPULATION not in certificate.about


@for_each("parameters", [GUARD, LadderParameters()], ids=str)
def test_given_the_features_nothing_is_said_about_others(parameters: Any) -> None:
    plain = estimand_of(INDEPENDENT, parameters)
    found = plain.given_features()
    assert found.short == f"{plain.short}, given their features"
    assert found.sentence.startswith(plain.sentence.partition(" of the expected")[0])
    assert "given the features of all of them and all that was known before the first query" in found.sentence
    assert "nothing is said about records with other features" in found.sentence
    assert POPULATION not in found.sentence


def test_it_stays_when_nothing_is_certified_and_after_other_looks() -> None:
    nothing = certify_parameters(Groups([0] * N), SparseVectorParameters(0.1, 0.001, None, None))
    assert nothing.chosen is None
    assert f"Their truth would be {nothing.about}." in nothing.statement
    before = certify_parameters(INDEPENDENT, GUARD)
    assert with_releases(before, INDEPENDENT, GUARD, BlackBox(0.001)).about == before.about


def test_half_widths_that_a_mechanism_states_hold_for_its_own_inflation_and_confidence_only() -> None:
    parameters = LadderParameters(queries=10)
    assert certify_parameters(INDEPENDENT, parameters).tolerance < 1.0
    dependent = certify_parameters(CHAIN, parameters)  # it was not told of the chain
    assert (dependent.chosen, dependent.half_width(1, 0, "holdout")) == (None, float("inf"))
    assert "was given the inflation 1, and the model has" in dependent.statement
    assert certify_parameters(INDEPENDENT, LadderParameters(0.5), 0.99).confidence == 0.5
