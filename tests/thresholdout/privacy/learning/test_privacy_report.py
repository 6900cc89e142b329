"""What a privacy report says in words."""

from dataclasses import replace

import pytest

from thresholdout.privacy.accounting import GaussianAnswer, best_epsilon
from thresholdout.privacy.accounting.events.event_types import ADJACENCIES, check_adjacency
from thresholdout.privacy.learning.privacy_report import account_for, proved_epsilon


def test_without_privacy_nothing_is_said_to_hold() -> None:
    report = account_for(None, delta=1e-5, released="the answers", noise_multiplier=0.0, leaks=("the labels",))
    assert str(report).splitlines() == [
        "No privacy: nothing bounds the information about a record in the answers.",
        "NOT covered: the labels.",
    ]


def test_a_guarantee_comes_with_its_assumptions_and_says_whose_it_is() -> None:
    report = account_for(GaussianAnswer(4.0), delta=1e-6, released="the answer", noise_multiplier=4.0, unit="client")
    guarantee, assumption = str(report).splitlines()
    assert "for neighbours with another client in one's place" in guarantee
    assert assumption.startswith("It holds if nobody reads the low bits")
    assert report.to_series()["unit"] == "client"


def test_an_epsilon_in_words_is_rounded_up() -> None:
    """To the nearest, 1.0602 would be said to be 1.06, which is less than what is proved."""
    report = account_for(GaussianAnswer(4.0), delta=1e-6, released="the answer", noise_multiplier=4.0)
    assert str(replace(report, epsilon=1.0602)).startswith("(1.061, 1e-06)-differential privacy")
    assert str(replace(report, epsilon=2.0)).startswith("(2, 1e-06)-differential privacy")


@pytest.mark.slow
def test_equal_events_are_priced_once() -> None:
    """The kept number is that of the accountants, and that of another event, delta or neighbour is another one."""
    proved_epsilon.cache_clear()
    found = {
        (std, delta, adjacency): account_for(
            GaussianAnswer(std, 1.0, "add_remove"), delta=delta, released="x", noise_multiplier=1.0, adjacency=adjacency
        ).epsilon
        for _ in range(2)
        for std in (3.0, 4.0)
        for delta in (1e-3, 1e-4)
        for adjacency in map(check_adjacency, ADJACENCIES)
    }
    assert proved_epsilon.cache_info().misses == len(set(found.values())) == 8
    for (std, delta, adjacency), epsilon in found.items():
        assert epsilon == best_epsilon(GaussianAnswer(std, 1.0, "add_remove"), delta, adjacency=adjacency).epsilon
