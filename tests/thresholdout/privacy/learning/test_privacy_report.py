"""What a privacy report says in words."""

from thresholdout.privacy.accounting import GaussianAnswer
from thresholdout.privacy.learning.privacy_report import account_for


def test_without_privacy_nothing_is_said_to_hold() -> None:
    report = account_for(None, delta=1e-5, released="the answers", noise_multiplier=0.0, leaks=("the labels",))
    assert str(report).splitlines() == [
        "No privacy: there is no bound on what can be learned about a record from the answers.",
        "NOT covered: the labels.",
    ]


def test_a_guarantee_comes_with_its_assumptions_and_says_whose_it_is() -> None:
    report = account_for(GaussianAnswer(4.0), delta=1e-6, released="the answer", noise_multiplier=4.0, unit="client")
    guarantee, assumption = str(report).splitlines()
    assert "for neighbours with another client in one's place" in guarantee
    assert assumption.startswith("It holds if nobody reads the low bits")
    assert report.to_series()["unit"] == "client"
