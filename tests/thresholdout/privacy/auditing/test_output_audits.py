"""Audits of outputs and of samplers: known laws, choice of the event, attacks, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cases import for_each
from tests.oracles.divergences import approx_max_divergence, hockey_stick
from tests.sizes import corners
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.auditing import AuditResult, audit_outputs, audit_sampler
from thresholdout.privacy.auditing.attacks import best_cut, gaussian, histogram
from thresholdout.privacy.auditing.audit_settings import EpsilonGoal

Floats = NDArray[np.float64]

P = np.array([0.5, 0.3, 0.15, 0.05])
Q = np.array([0.2, 0.3, 0.2, 0.3])


def draw(law: Floats) -> Any:
    return lambda size, rng: rng.choice(len(law), size=size, p=law)


class TestExactLaws:
    """Laws known as arrays, whose epsilon and delta are sums."""

    @pytest.mark.slow
    def test_epsilon(self) -> None:
        exact = max(approx_max_divergence(P, Q, 0.01), approx_max_divergence(Q, P, 0.01))
        result = audit_sampler(draw(P), draw(Q), delta=0.01, draws=40_000, attack="histogram", random_state=1)
        assert exact - 0.15 < result.epsilon < exact
        assert not result.contradicts(exact, 0.01)
        assert result.contradicts(exact - 0.2, 0.01)

    @pytest.mark.slow
    @pytest.mark.parametrize("epsilon", corners([0.0, 0.5, 1.5], 1))
    def test_delta(self, epsilon: float) -> None:
        exact = max(hockey_stick(P, Q, epsilon), hockey_stick(Q, P, epsilon))
        result = audit_sampler(draw(P), draw(Q), epsilon=epsilon, draws=40_000, attack="histogram", random_state=2)
        assert exact - 0.03 < result.delta < exact
        assert result.measured == "delta"
        assert float(result) == result.delta
        assert not result.contradicts(epsilon, exact)
        assert result.contradicts(epsilon, exact - 0.03)

    def test_equal_laws_show_nothing(self) -> None:
        for attack in ("logistic", "gaussian", "histogram", "score"):
            assert audit_sampler(draw(P), draw(P), delta=0.0, attack=attack, random_state=3).epsilon == 0.0
        assert audit_sampler(draw(P), draw(P), epsilon=0.1, random_state=3).delta == 0.0

    def test_disjoint_laws_reach_the_largest_bound(self) -> None:
        result = audit_sampler(
            lambda size, rng: np.zeros(size), lambda size, rng: np.ones(size), delta=1e-5, draws=500, random_state=0
        )
        assert (result.fp[0], result.fn[0], result.n_fp, result.n_fn) == (0, 0, 250, 250)
        assert result.epsilon == result.largest > 5.3


class TestBothDirections:
    """The event may be rare on either data set."""

    @pytest.mark.slow
    @for_each("swapped", [False, True])
    def test_a_rare_event_is_found(self, swapped: bool) -> None:
        """One law has an outcome of probability 0.02 that the other one lacks."""
        laws = draw(np.array([0.98, 0.02])), draw(np.array([1.0, 0.0]))
        first, second = laws[::-1] if swapped else laws
        result = audit_sampler(first, second, delta=0.0, draws=20_000, random_state=4)
        assert result.epsilon > 3.0
        # the other direction says at most -ln(0.98)
        balanced = audit_sampler(first, second, delta=0.05, draws=20_000, random_state=4)
        assert balanced.epsilon == 0.0


class TestAttacks:
    @pytest.mark.slow
    def test_two_sided_events_need_another_attack(self) -> None:
        def narrow(size: int, rng: np.random.Generator) -> Floats:
            return rng.normal(size=size)

        def wide(size: int, rng: np.random.Generator) -> Floats:
            return 3 * rng.normal(size=size)

        found = {
            attack: audit_sampler(narrow, wide, delta=1e-3, attack=attack, random_state=5).epsilon
            for attack in ("gaussian", "histogram", "score")
        }
        assert found["gaussian"] > 3.5
        assert found["histogram"] > 2.5
        assert found["gaussian"] > found["score"] + 0.5

    def test_several_features(self) -> None:
        rng = np.random.default_rng(6)
        first, second = rng.normal(size=(2000, 3)), rng.normal([1.0, 1.0, 0.0], 1.0, (2000, 3))
        for attack in ("logistic", "gaussian"):
            assert audit_outputs(first, second, delta=1e-3, attack=attack).epsilon > 1.5
        for attack in ("score", "histogram"):
            with pytest.raises(InputError, match="3 features"):
                audit_outputs(first, second, delta=1e-3, attack=attack)

    def test_constant_features_are_no_problem(self) -> None:
        for attack in ("logistic", "gaussian", "histogram", "score"):
            assert audit_outputs(np.zeros((50, 1)), np.zeros((60, 1)), delta=0.0, attack=attack).epsilon == 0.0

    def test_the_ratio_of_normals_is_the_exact_one_in_the_limit(self) -> None:
        rng = np.random.default_rng(7)
        score = gaussian(rng.normal(0, 1, (200_000, 1)), rng.normal(1, 2, (200_000, 1)))
        x = np.array([[-1.0], [0.0], [2.0]])
        exact = -0.5 * ((x[:, 0] - 1) / 2) ** 2 - math.log(2) + 0.5 * x[:, 0] ** 2
        assert score(x) == pytest.approx(exact, abs=0.03)

    def test_bins_of_a_few_values(self) -> None:
        first, second = np.repeat([0.0, 1.0], [75, 25])[:, None], np.repeat([0.0, 1.0], [25, 75])[:, None]
        ratio = math.log(75.5 / 25.5)
        assert histogram(first, second)(np.array([[0.0], [1.0]])) == pytest.approx([-ratio, ratio])

    def test_a_callable_and_a_fixed_threshold(self) -> None:
        rng = np.random.default_rng(8)
        seen: list[tuple[int, int]] = []

        def attack(first: Floats, second: Floats) -> Any:
            seen.append((len(first), len(second)))
            return lambda features: features[:, 0] - 1.0

        first, second = rng.normal(size=(400, 1)), rng.normal(2.0, 1.0, (300, 1))
        result = audit_outputs(first, second, delta=0.0, attack=attack, cut=0.0, fit_share=0.25)
        assert seen == [(100, 75)]
        assert (result.n_fp, result.n_fn) == (300, 225)
        assert result.fp[0] == (first[100:, 0] >= 1.0).sum()
        assert result.fn[0] == (second[75:, 0] < 1.0).sum()


class TestSplit:
    """What chooses the event has not seen what it is counted on."""

    def test_the_second_part_does_not_move_the_threshold(self) -> None:
        rng = np.random.default_rng(9)
        first, second = rng.normal(size=200), rng.normal(1.0, 1.0, 200)
        one = audit_outputs(first, second, delta=0.0)
        other = audit_outputs(np.append(first[:100], first[100:] + 5), second, delta=0.0)
        assert one.cuts == other.cuts
        assert one.fp < other.fp

    def test_learning_by_heart_shows_nothing(self) -> None:
        """An attack that is perfect on what it was fitted on."""

        def by_heart(first: Floats, second: Floats) -> Any:
            known = set(second[:, 0].tolist())
            return lambda features: np.array([float(value in known) for value in features[:, 0].tolist()])

        rng = np.random.default_rng(10)
        result = audit_outputs(rng.normal(size=400), rng.normal(size=400), delta=0.0, attack=by_heart)
        assert result.epsilon == 0.0

    def test_the_best_threshold_of_known_scores(self) -> None:
        """A shift of half a range: above it everything is of the second kind."""
        assert best_cut(np.arange(100.0), np.arange(50.0, 150.0), EpsilonGoal(0.0), 0.1) == (1.0, 100.0)
        scores = np.random.default_rng(11).normal(size=30_000)
        sign, cut = best_cut(scores, scores + 1.0, EpsilonGoal(0.0), 0.1)
        assert sign == 1.0
        assert cut > 2.0 or cut < -1.0
        turned = best_cut(-scores, -scores - 1.0, EpsilonGoal(0.0), 0.1)
        assert turned[0] == -1.0
        assert turned[1] > 2.0 or turned[1] < -1.0


class TestStages:
    @pytest.mark.slow
    def test_each_stage_alone(self) -> None:
        rng = np.random.default_rng(12)
        shift = np.linspace(0.0, 3.0, 4)[:, None]
        first, second = rng.normal(size=(300, 4, 1)), rng.normal(size=(300, 4, 1)) + shift
        result = audit_outputs(first, second, delta=1e-5, stages=["a", "b", "c", "d"])
        assert result.epsilon == result.bounds[-1] == float(result)
        assert list(result.table.index) == ["a", "b", "c", "d"]
        assert list(result.table.columns) == ["fp", "fn", "fp_rate", "fn_rate", "cut", "epsilon"]
        for k in range(4):
            alone = audit_outputs(first[:, k], second[:, k], delta=1e-5)
            assert (alone.fp[0], alone.fn[0], alone.epsilon) == (result.fp[k], result.fn[k], result.bounds[k])
        assert result.bounds[0] == 0.0
        assert result.bounds[-1] > 2.0

    @pytest.mark.slow
    def test_pictures(self) -> None:
        rng = np.random.default_rng(13)
        first, second = rng.normal(size=(300, 4, 1)), rng.normal(1.5, 1.0, (300, 4, 1))
        for stages in (None, "abcd"):
            ax = audit_outputs(first, second, delta=1e-5, stages=stages).plot()
            assert ax.get_xlabel() == "stage"
            assert ax.get_ylabel() == "epsilon (nats)"
        single = audit_outputs(first[:, 0], second[:, 0], epsilon=0.5)
        assert single.plot(ax).get_ylabel() == "share of second taken for first"
        assert len(ax.get_legend().get_texts()) > 3


class TestResult:
    def test_words(self) -> None:
        """A limit is rounded down in words, too, and what could be shown at most is rounded up."""
        rng = np.random.default_rng(14)
        first, second = rng.normal(size=2000), rng.normal(2.0, 1.0, 2000)
        result = audit_outputs(first, second, delta=1e-5, confidence=0.99)
        most = math.log((1 - 1e-5) / (1 - 0.01 ** (1 / 2000)) - 1)  # without errors, by the joint set
        least = math.floor(100 * result.epsilon) / 100
        assert f"{result.epsilon:.3g}" == "3.04" > str(least)
        found = f"epsilon >= {least} at delta 1e-05, confidence 0.99"
        assert repr(result) == f"<{found}; 1000 and 1000 outputs show {math.ceil(100 * most) / 100} at most>"
        assert result.method == "joint"
        other = audit_outputs(first, second, epsilon=1.0, method="clopper-pearson")
        most = 1 - (1 + math.e) * (1 - 0.05 ** (1 / 1000))
        found = f"delta >= {math.floor(1000 * other.delta) / 1000} at epsilon 1, confidence 0.9"
        assert repr(other) == f"<{found}; 1000 and 1000 outputs show {math.ceil(1000 * most) / 1000} at most>"
        many = audit_outputs(np.tile(first, 21), np.tile(second, 21), delta=1e-5)
        assert many.method == "clopper-pearson"

    @for_each(("epsilon", "delta"), [(-1.0, 0.0), (1.0, 1.0), (math.nan, 0.0)])
    def test_claims_out_of_range_are_refused(self, epsilon: float, delta: float) -> None:
        outputs = np.arange(20.0)
        for result in (audit_outputs(outputs, outputs, delta=0.1), audit_outputs(outputs, outputs, epsilon=0.1)):
            with pytest.raises(InputError):
                result.contradicts(epsilon, delta)


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"delta": None}, InputError, "delta is missing"),
    ({"epsilon": 1.0}, InputError, "None beside epsilon="),
    ({"delta": 1.0}, InputError, "delta"),
    ({"confidence": 1.0}, InputError, "confidence"),
    ({"attack": "magic"}, InputError, "attack"),
    ({"attack": 3}, InputTypeError, "attack"),
    ({"attack": lambda a, b: lambda x: np.zeros(3)}, InputError, "scores of shape"),
    ({"attack": lambda a, b: lambda x: np.full(len(x), np.nan)}, InputError, "NaN"),
    ({"cut": "half"}, InputError, "cut"),
    ({"cut": math.inf}, InputError, "cut"),
    ({"method": "wald"}, InputError, "method"),
    ({"fit_share": 0.0}, InputError, "fit_share"),
    ({"fit_share": 0.001}, InputError, "fit on"),
    ({"stages": ["a", "b"]}, InputError, "stages"),
    ({"world_0": np.array(["a"] * 20)}, InputTypeError, "world_0"),
    ({"world_0": np.zeros((20, 1, 1, 1))}, InputError, "world_0"),
    ({"world_0": np.zeros((20, 2))}, InputError, "equally many"),
    ({"world_1": np.zeros(0)}, InputError, "world_1"),
    ({"world_1": np.append(np.zeros(19), np.nan)}, InputError, "output 19"),
    ({"world_1": np.zeros(1)}, InputError, "world_1"),
]


@for_each(("change", "error", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_refusals(change: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments: dict[str, Any] = {"world_0": np.arange(20.0), "world_1": np.arange(20.0), "delta": 0.0, **change}
    with pytest.raises(error, match=words):
        audit_outputs(arguments.pop("world_0"), arguments.pop("world_1"), **arguments)


class TestSamplers:
    @pytest.mark.slow
    def test_the_same_seed_draws_the_same(self) -> None:
        one, two, three = (
            audit_sampler(draw(P), draw(Q), delta=0.0, draws=200, random_state=seed)
            for seed in (1, 1, np.random.default_rng(1))
        )
        assert (one.fp == two.fp).all()
        assert one.epsilon == two.epsilon
        assert isinstance(three, AuditResult)
        assert isinstance(audit_sampler(draw(P), draw(Q), delta=0.0, draws=20), AuditResult)

    def test_refusals_come_before_any_draw(self) -> None:
        def never(size: int, rng: np.random.Generator) -> Floats:
            raise AssertionError("drawn")

        changes: list[dict[str, Any]] = [
            {"delta": 2.0},
            {"draws": 3},
            {"draws": 10.0},
            {"random_state": -1},
            {"random_state": "a"},
            {"random_state": True},
            {"other": 1},
        ]
        for change in changes:
            with pytest.raises(InputError):
                audit_sampler(never, never, **{"delta": 0.0, **change})
        with pytest.raises(InputTypeError, match="second"):
            audit_sampler(never, 3, delta=0.0)  # type: ignore[arg-type]

    def test_draws_of_another_number_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"second must be .*; got draws of shape"):
            audit_sampler(draw(P), lambda size, rng: np.zeros(size + 1), delta=0.0)
        with pytest.raises(InputError, match=r"first must be .*; got draws of shape"):
            audit_sampler(lambda size, rng: 0.0, draw(P), delta=0.0)
