"""`certify`: the choice among routes, its table and words, bad input, monotonicity."""

import math
import pickle
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import Groups, Independent, MarkovChain
from tests.cases import for_each
from thresholdout import Certificate, InputError, InputTypeError, certify
from thresholdout.certificates import certificate
from thresholdout.certificates import certify_parameters as any_mechanism
from thresholdout.certificates.after_releases import with_releases
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.route import ConstantWidth, Route
from thresholdout.mechanisms import ClaimsParameters, LadderParameters, SparseVectorParameters
from thresholdout.privacy.accounting import BlackBox

GUARD = {"threshold": 0.04, "noise_scale": 0.0025, "budget": 1, "queries": 1000, "grid": 1 / 128}


def certified(n: int = 10_000, **changes: object) -> Certificate:
    return certify(Independent(n), **(GUARD | changes))  # type: ignore[arg-type]


def test_the_smallest_sound_tolerance_is_picked() -> None:
    certificate = certified()
    table = certificate.routes
    with pd.option_context("display.width", 80, "display.max_columns", 0):
        head = str(table).splitlines()[0].split()
    assert head == ["tolerance", "applies", "...", "sound", "chosen"]
    eligible = table[table["sound"] & table["applies"]]
    assert certificate.tolerance == eligible["tolerance"].min()
    assert table["chosen"].sum() == 1
    assert table.loc[certificate.route, "tolerance"] == certificate.tolerance


def test_a_model_without_concentration_gets_the_posterior() -> None:
    certificate = certify(Groups([0] * 10 + [1] * 10), threshold=0.1, noise_scale=0.5, budget=1, queries=1)
    assert {route.name for route in certificate.compared if route.eligible} >= {"posterior"}
    copies = certify(Groups([0] * 20), threshold=0.1, noise_scale=0.5, budget=1, queries=1)
    assert copies.route == "posterior"


@for_each("limits", [(None, 1), (1000, None), (None, None)])
def test_undeclared_limits(limits: tuple[int | None, int | None]) -> None:
    certificate = certified(queries=limits[0], budget=limits[1])
    assert certificate.tolerance == math.inf
    assert (certificate.chosen, certificate.half_width(1, 0, "train")) == (None, math.inf)
    assert "no limit is declared" in str(certificate.routes.loc["posterior", "why_not"])
    assert "mechanism='claims'" in certificate.statement


def test_half_widths_stay_within_the_range() -> None:
    certificate = certified(n=5)
    assert certificate.tolerance > 1
    assert certificate.half_width(1000, 0, "holdout") == 1.0
    assert "any answer" in certificate.statement
    assert "mechanism='claims'" in certificate.statement


@for_each(("query", "hits"), [(1, 1), (5, -1), (0, 0)])
def test_rounds_that_do_not_exist(query: int, hits: int) -> None:
    with pytest.raises(InputError):
        certified().half_width(query, hits, "train")


def test_words_and_pickle() -> None:
    certificate = certified()
    assert "10000 independent records" in certificate.statement
    assert "0.95" in certificate.statement
    assert "transcript" in repr(certificate)
    again = pickle.loads(pickle.dumps(certificate))
    assert again == certificate
    assert again.half_width(3, 1, "train") == certificate.half_width(3, 1, "train")


@for_each(
    ("argument", "value"),
    [
        ("threshold", 0.0),
        ("noise_scale", -1.0),
        ("budget", 0),
        ("queries", 0),
        ("grid", 0.3),
        ("confidence", 0.0),
        ("confidence", 1.0),
        ("confidence", math.nan),
        ("confidence", True),
    ],
)
def test_bad_input(argument: str, value: object) -> None:
    with pytest.raises(InputError, match=argument):
        certified(**{argument: value})  # type: ignore[arg-type]


def test_bad_types() -> None:
    with pytest.raises(InputTypeError, match="model"):
        certify([1, 2], **GUARD)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="confidence"):
        certified(confidence="high")


def test_extreme_arguments_stay_finite() -> None:
    certificate = certify(
        Independent(10**12), threshold=1e-3, noise_scale=1e-6, budget=10**5, queries=10**9, confidence=1 - 1e-12
    )
    assert 0 < certificate.tolerance < 1


@pytest.mark.slow
def test_monotone() -> None:
    @settings(max_examples=20, deadline=None)
    @given(
        st.integers(100, 10**6),
        st.integers(1, 5000),
        st.integers(1, 50),
        st.floats(0.5, 0.9999),
        st.floats(1e-5, 1e-2),
        st.integers(1, 12),
        st.floats(1.01, 4.0),
    )
    def check(n: int, m: int, b: int, confidence: float, scale: float, bits: int, factor: float) -> None:
        def tolerances(**changes: object) -> dict[str, float]:
            arguments = {
                "n": n,
                "threshold": 0.05,
                "queries": m,
                "budget": b,
                "confidence": confidence,
                "noise_scale": scale,
                "grid": 2.0**-bits,
            }
            certificate = certified(**(arguments | changes))  # type: ignore[arg-type]
            return {route.name: route.tolerance for route in certificate.compared if route.eligible}

        here = tolerances()
        worse = [
            tolerances(queries=math.ceil(m * factor)),
            tolerances(budget=math.ceil(b * factor)),
            tolerances(confidence=1 - (1 - confidence) / factor),
            tolerances(threshold=0.05 * factor),
            tolerances(n=max(1, math.floor(n / factor))),
        ]
        for other in worse:
            for name, tolerance in here.items():
                assert tolerance <= other.get(name, math.inf) * (1 + 1e-3)  # a route that does not apply bounds nothing

    check()


MADE = Route("made", 1e-6, True, "nothing", "nowhere", widths=ConstantWidth(1e-6))
"""It would be the smallest tolerance of all."""

INELIGIBLE = [
    replace(MADE, sound=False),
    replace(MADE, widths=None),
]


@for_each("route", INELIGIBLE)
def test_what_is_not_proved_is_never_chosen(route: Route, monkeypatch: pytest.MonkeyPatch) -> None:
    """A route made to win by its tolerance; the same one is chosen as soon as nothing speaks against it."""
    model = Independent(10_000)
    guard = SparseVectorParameters(0.0256, 0.000137, budget=1, queries=1000)
    before = certify_parameters(model, guard)

    def certified(made: Route) -> Certificate:
        monkeypatch.setattr(certificate, "published", lambda setting: made)
        return certify_parameters(model, guard)

    after = certified(route)
    assert "made" in after.routes.index
    assert route.tolerance < after.tolerance == before.tolerance
    assert (after.route, after.half_width(1, 0, "train")) == (before.route, before.half_width(1, 0, "train"))
    assert not after.routes.loc["made", "chosen"]
    assert (certified(MADE).route, certified(MADE).half_width(1, 0, "train")) == ("made", 1e-6)


@for_each("route", INELIGIBLE)
def test_no_mechanism_rests_on_what_is_not_proved(route: Route, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a mechanism has one route only, nothing is certified rather than that."""
    model = Independent(10_000)
    parameters = LadderParameters(queries=10)
    monkeypatch.setattr(any_mechanism, "Route", lambda *arguments, **settings: route)
    found = certify_parameters(model, parameters)
    assert (found.chosen, found.tolerance, found.route) == (None, math.inf, "none")


def test_other_looks_never_make_an_unproved_route_the_certificate() -> None:
    model, guard = Independent(10_000), SparseVectorParameters(0.0256, 0.000137, budget=1, queries=1000)
    before = certify_parameters(model, guard)
    for route in INELIGIBLE:
        forged = replace(before, compared=(route, *before.compared), chosen=route)
        assert with_releases(forged, model, guard, BlackBox(0.01)).chosen is None


def test_a_certificate_of_claims_says_that_each_answer_states_its_interval() -> None:
    """Its tolerance is that of an answer about which nothing is known, also where first claims are limited."""
    certificate = certify_parameters(Independent(1000), ClaimsParameters(max_half_width=0.05))
    assert certificate.states_intervals
    assert (certificate.route, certificate.tolerance, certificate.half_width(3, 1, "holdout")) == ("claims", 1.0, 1.0)
    assert "each answer's own interval contains the truth, for all answers at once" in certificate.statement
    assert "which any answer in the range is" not in certificate.statement
    assert "±" not in repr(certificate)
    chain = MarkovChain([[0.9, 0.1], [0.1, 0.9]], n=1000)
    assert certify_parameters(chain, ClaimsParameters()).route == "none"  # made for independent records
