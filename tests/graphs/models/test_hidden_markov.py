"""Hidden chains and communities against linear programs, brute force and enumeration."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from graphs import (
    ArgumentError,
    CategoricalEmission,
    Communities,
    DependenceModel,
    GaussianEmission,
    Groups,
    HiddenMarkov,
    Independent,
    MarkovChain,
    RouteUnavailable,
    exact_leakage,
)
from graphs.leakage.messages import phi
from graphs.models.hidden_markov import weighted_diameters
from tests.cases import for_each
from tests.sizes import corners

FloatArray = npt.NDArray[np.float64]
WALK = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]


def random_hidden(rng: np.random.Generator, case: int) -> HiddenMarkov:
    states, n = int(rng.integers(2, 4)), int(rng.integers(2, 6))
    transition = rng.dirichlet(np.full(states, 0.7), size=states)
    emission = rng.dirichlet(np.full(2 if n > 4 else int(rng.integers(2, 4)), 0.8), size=states)
    if case % 3 == 0:  # zeros
        transition[rng.random(transition.shape) < 0.3] = 0
        transition[np.arange(states), np.arange(states)] += 0.1
        transition /= transition.sum(axis=1, keepdims=True)
    if case % 4 == 0:
        emission[0, 0] = 0
        emission[0] /= emission[0].sum()
    return HiddenMarkov(transition, n, initial=rng.dirichlet(np.ones(states)), emission=emission)


def random_communities(rng: np.random.Generator, case: int) -> Communities:
    n, states = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    emission = rng.dirichlet(np.full(2, 0.8), size=states)
    if case % 2:
        return Communities(rng.integers(0, 3, size=n), emission=emission, prior=rng.dirichlet(np.ones(states)))
    between = MarkovChain(rng.dirichlet(np.ones(states), size=states), 3)
    return Communities(rng.integers(0, 3, size=n).tolist(), between, emission, communities=range(3))


def largest_ratio(model: DependenceModel, epsilon: Any, weaken: float = 1.0) -> float:
    """Return the largest exact leakage over the bound, for every record and every set of known records.

    What a bound adds to the record's own budget is multiplied by `weaken`.
    """
    informed = epsilon + weaken * (model.leakage(epsilon) - epsilon)
    uninformed = epsilon + weaken * (model.leakage(epsilon, adversary="uninformed") - epsilon)
    largest = 0.0
    for record in range(model.n):
        others = [j for j in range(model.n) if j != record]
        for size in range(len(others) + 1):
            for known in itertools.combinations(others, size):
                exact = exact_leakage(model, epsilon, record, known)
                bound = uninformed[record] if not known else informed[record]
                largest = max(largest, exact / bound)
    return largest


@pytest.mark.parametrize("case", corners(range(70), 5, 30))
def test_no_mechanism_leaks_more_about_records_of_a_hidden_chain(case: int) -> None:
    rng = np.random.default_rng(case)
    model = random_hidden(rng, case)
    epsilon = rng.uniform(0.05, 1.0, size=model.n) * (rng.random(model.n) < 0.8) if case % 2 else rng.uniform(0.05, 1)
    if np.all(epsilon == 0):
        epsilon = 0.3
    bound = np.maximum(model.leakage(epsilon), 1e-6)
    assert np.isfinite(bound).all()
    if np.min(epsilon) > 0:
        assert largest_ratio(model, epsilon) <= 1 + 1e-7
    else:
        for record in range(model.n):
            assert exact_leakage(model, epsilon, record) <= bound[record] + 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("case", corners(range(40), *range(0, 40, 5)))
def test_no_mechanism_leaks_more_about_records_of_communities(case: int) -> None:
    rng = np.random.default_rng(1000 + case)
    model = random_communities(rng, case)
    epsilon = rng.uniform(0.05, 1.0, size=model.n) if case % 3 else float(rng.uniform(0.05, 1))
    assert largest_ratio(model, epsilon) <= 1 + 1e-7


def test_a_weakened_bound_is_caught() -> None:
    """On symmetric chains of two records the bound is all but attained."""
    for stay, right in ((0.9, 0.8), (0.7, 0.95), (0.99, 0.9)):
        transition, emission = [[stay, 1 - stay], [1 - stay, stay]], [[right, 1 - right], [1 - right, right]]
        model = HiddenMarkov(transition, 2, emission=emission)
        assert 0.99 < largest_ratio(model, 0.4) < 1 + 1e-7
        assert largest_ratio(model, 0.4, weaken=0.8) > 1 + 1e-3


def test_long_edges_of_the_bare_chain_do_not_hold_for_a_hidden_one() -> None:
    """A known record weighs the states between: the plain two-step kernel is not what an informed adversary meets."""
    model = HiddenMarkov(WALK, 3, emission=np.full((3, 3), 0.01) + 0.97 * np.eye(3))
    epsilon = np.array([0.0, 0.0, 8.0])
    exact = exact_leakage(model, epsilon, 0, known=(1,))
    seen = phi(model.emission.diameter, epsilon)
    bare = float(phi(model.emission.diameter, model.chain.leakage(seen, "long-edges")[0]))
    assert exact > bare * 1.01
    assert exact <= model.leakage(epsilon, "long-edges")[0]


def test_long_edges_gain_where_one_step_has_zeros() -> None:
    model = HiddenMarkov(WALK, 40, emission=[[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]])
    assert model.leakage(0.05, "long-edges").max() < 0.99 * model.leakage(0.05, "messages").max()


def test_weighted_diameters_cover_every_way_to_know_the_records_between() -> None:
    rng = np.random.default_rng(4)
    transition, emission = rng.dirichlet(np.ones(3), size=3), rng.dirichlet(np.ones(2), size=3)
    model = MarkovChain(transition, 9)
    found = weighted_diameters(transition, emission, model._supports, 4)
    for steps in range(2, 5):
        largest = 0.0
        for shown in itertools.product([0, 1, None], repeat=steps - 1):
            kernel = transition
            for symbol in shown:
                kernel = kernel @ np.diag(np.ones(3) if symbol is None else emission[:, symbol]) @ transition
            for a, b, c, d in itertools.product(range(3), repeat=4):
                ratio = kernel[a, c] * kernel[b, d] / (kernel[a, d] * kernel[b, c])
                largest = max(largest, float(np.log(ratio)))
        assert found[steps - 1] == pytest.approx(largest, rel=1e-9)
        assert found[steps - 1] >= largest


def twin(transition: FloatArray, diameter: float, epsilon: FloatArray) -> list[float]:
    """The recursion over states and records in plain numbers, by the definition of phi."""

    def contract(d: float, a: float) -> float:
        return 4 * float(np.arctanh(np.tanh(d / 4) * np.tanh(a / 4)))

    (p, q), (r, s) = transition.tolist()
    between = abs(float(np.log(p * s / (q * r))))
    n = len(epsilon)
    shown = [contract(diameter, float(e)) for e in epsilon]
    right, left = [0.0] * n, [0.0] * n
    for i in range(n - 2, -1, -1):
        right[i] = contract(between, shown[i + 1] + right[i + 1])
    for i in range(1, n):
        left[i] = contract(between, shown[i - 1] + left[i - 1])
    return [float(epsilon[i]) + contract(diameter, left[i] + right[i]) for i in range(n)]


@for_each("same", [True, False])
def test_messages_equal_the_recursion_in_plain_numbers(same: bool) -> None:
    transition = np.array([[0.9, 0.1], [0.2, 0.8]])
    epsilon = np.full(9, 0.2) if same else np.linspace(0, 0.4, 9)
    model = HiddenMarkov(transition, 9, emission=[[0.7, 0.3], [0.4, 0.6]])
    diameter = float(np.log(0.7 * 0.6 / (0.3 * 0.4)))
    expected = twin(transition, diameter, epsilon)
    found = model.leakage(epsilon, "messages")
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (found >= np.array(expected) * (1 - 1e-15)).all()


def test_records_of_any_type_leak_as_the_states_themselves() -> None:
    transition = [[0.9, 0.1], [0.2, 0.8]]
    worst, chain = HiddenMarkov(transition, 7), MarkovChain(transition, 7)
    np.testing.assert_allclose(worst.leakage(0.1), chain.leakage(0.1, "messages"), rtol=1e-13)
    np.testing.assert_allclose(worst.leakage(0.1)[:2], [0.284718042, 0.330203311], atol=6e-2)
    telling = HiddenMarkov(transition, 7, emission=np.eye(2))
    np.testing.assert_allclose(telling.leakage(0.1), worst.leakage(0.1), rtol=1e-13)
    assert HiddenMarkov(transition, 7, emission=GaussianEmission([0, 1], [1, 1])).leakage(0.1) == pytest.approx(
        worst.leakage(0.1)
    )


def test_emissions_that_tell_nothing_make_records_independent() -> None:
    model = HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 50, emission=[[0.3, 0.7], [0.3, 0.7]])
    assert model.leakage(0.1).max() < 0.1 * (1 + 1e-10)
    assert model.variance_inflation() < 1 + 1e-10
    exactly = HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 50, emission=GaussianEmission([0, 0], [1, 1]))
    assert exactly.leakage(0.1).tolist() == [0.1] * 50
    assert exactly.variance_inflation() == 1


def test_quilts_are_for_an_uninformed_adversary() -> None:
    model = HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 30)
    assert np.isfinite(model.leakage(0.01, "quilt", "uninformed")).all()
    with pytest.raises(RouteUnavailable, match="weigh the states"):
        model.leakage(0.01, "quilt")


@pytest.mark.slow
def test_a_million_records() -> None:
    model = HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 10**6, emission=[[0.6, 0.4], [0.4, 0.6]])
    budget = model.budget(0.5)
    short = HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 2000, emission=[[0.6, 0.4], [0.4, 0.6]])
    assert budget == pytest.approx(short.budget(0.5), rel=1e-9)


# Law ------------------------------------------------------------------------------------------------------------


def brute_force(model: HiddenMarkov) -> tuple[FloatArray, list[FloatArray]]:
    """Return the joint table of the records, and P(states | records) for each joint value, over all paths."""
    emission = model.emission
    assert isinstance(emission, CategoricalEmission)
    k, values = emission.matrix.shape
    table = np.zeros((values,) * model.n)
    posterior = np.zeros((values,) * model.n + (model.n, k))
    for path in itertools.product(range(k), repeat=model.n):
        chance = model.initial[path[0]] * np.prod([model.transition[a, b] for a, b in itertools.pairwise(path)])
        for records in itertools.product(range(values), repeat=model.n):
            both = chance * np.prod([emission.matrix[z, x] for z, x in zip(path, records, strict=True)])
            table[records] += both
            for t, z in enumerate(path):
                posterior[(*records, t, z)] += both
    return table, list(posterior.reshape(-1, model.n, k))


def test_joint_and_posterior_equal_sums_over_all_paths() -> None:
    rng = np.random.default_rng(8)
    model = HiddenMarkov(rng.dirichlet(np.ones(3), size=3), 4, emission=rng.dirichlet(np.ones(2), size=3))
    table, posteriors = brute_force(model)
    np.testing.assert_allclose(model.joint(), table, atol=1e-15)
    for records, expected in zip(itertools.product(range(2), repeat=4), posteriors, strict=True):
        np.testing.assert_allclose(model.posterior(records), expected / expected[0].sum(), atol=1e-13)


def test_joint_of_communities_equals_a_sum_over_states() -> None:
    rng = np.random.default_rng(9)
    emission, prior = rng.dirichlet(np.ones(2), size=3), rng.dirichlet(np.ones(3))
    model = Communities(["a", "b", "a"], emission=emission, prior=prior)
    expected = np.einsum("i,j,ia,jb,ic->abc", prior, prior, emission, emission, emission)
    np.testing.assert_allclose(model.joint(), expected, atol=1e-15)
    between = MarkovChain(rng.dirichlet(np.ones(3), size=3), 2)
    chained = Communities(["b", "a", "b"], between, emission, communities=["a", "b"])
    expected = np.einsum("ij,ja,ib,jc->abc", between.joint(), emission, emission, emission)
    np.testing.assert_allclose(chained.joint(), expected, atol=1e-15)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [False, True])
def test_samples_have_the_stated_law(wrong: bool) -> None:
    """Chi-square at 1e-9; the same test must reject samples of another chain."""
    transition, emission = [[0.9, 0.1], [0.3, 0.7]], [[0.8, 0.2], [0.1, 0.9]]
    model = HiddenMarkov(transition, 4, emission=emission)
    drawn_from = HiddenMarkov([[0.8, 0.2], [0.6, 0.4]], 4, emission=emission) if wrong else model
    rng = np.random.default_rng(10)
    draws = np.array([drawn_from.sample(rng) for _ in range(20_000)])
    counts = np.bincount(draws @ [8, 4, 2, 1], minlength=16)
    p_value = stats.chisquare(counts, model.joint().ravel() * len(draws)).pvalue
    assert (p_value < 1e-9) == wrong


@pytest.mark.statistical
def test_samples_of_communities_have_the_stated_law() -> None:
    rng = np.random.default_rng(11)
    for between in (None, MarkovChain([[0.9, 0.1], [0.3, 0.7]], 2)):
        model = Communities(list("aab"), between, [[0.8, 0.2], [0.1, 0.9]])
        draws = np.array([model.sample(rng) for _ in range(10_000)])
        counts = np.bincount(draws @ [4, 2, 1], minlength=8)
        assert stats.chisquare(counts, model.joint().ravel() * len(draws)).pvalue > 1e-9


# Variance inflation -----------------------------------------------------------------------------------------------


@for_each("case", range(20))
def test_inflation_bounds_every_tail_and_moment_of_small_models(case: int) -> None:
    rng = np.random.default_rng(2000 + case)
    model: DependenceModel = random_hidden(rng, 1) if case % 2 else random_communities(rng, case // 2)
    if case % 4 == 1:
        model = HiddenMarkov(rng.dirichlet(np.ones(2), size=2), 5, emission=rng.dirichlet(np.ones(2), size=2))
    table = model.joint()
    values = [rng.integers(0, 2, size=size).astype(float) for size in table.shape]
    means = np.sum(np.meshgrid(*values, indexing="ij"), axis=0) / model.n
    centred = means - float((table * means).sum())
    for method in model.inflation_methods:
        try:
            inflation = model.variance_inflation(method)
        except RouteUnavailable:
            continue
        for t in np.unique(np.abs(centred)):
            tail = float(table[np.abs(centred) >= t - 1e-12].sum())
            assert tail <= 2 * np.exp(-2 * model.n * t**2 / inflation) + 1e-12, method
        for s in (-8.0, -2.0, 2.0, 8.0):
            moment = float((table * np.exp(s * centred)).sum())
            assert moment <= np.exp(s**2 * inflation / (8 * model.n)) * (1 + 1e-9), method


def test_inflation_is_that_of_the_chain_of_states() -> None:
    transition = [[0.9, 0.1], [0.2, 0.8]]
    hidden, chain = HiddenMarkov(transition, 1000), MarkovChain(transition, 1000)
    for method in ("spectral", "dobrushin", "coupling"):
        assert hidden.variance_inflation(method) == chain.variance_inflation(method)
    blurred = HiddenMarkov(transition, 1000, emission=[[0.55, 0.45], [0.45, 0.55]])
    assert blurred.variance_inflation("emission-spectral") == pytest.approx(1 + 0.01 * 17 / 3)
    assert blurred.variance_inflation(bounded_differences=True) < 1.2


def test_inflation_of_communities() -> None:
    labels = np.repeat(np.arange(10), 5)
    assert Communities(labels).variance_inflation() == pytest.approx(5)
    mild = Communities(labels, emission=[[0.6, 0.4], [0.4, 0.6]])
    assert mild.variance_inflation("emission") == pytest.approx(1 + 0.04 * 5)
    assert mild.variance_inflation() == pytest.approx(1 + 0.04 * 4)  # two records of a community move each other twice
    chained = Communities(labels, MarkovChain([[0.9, 0.1], [0.2, 0.8]], 10), [[0.6, 0.4], [0.4, 0.6]])
    assert chained.independent_groups() is None
    assert 1.2 < chained.variance_inflation() < 5
    np.testing.assert_array_equal(np.asarray(mild.independent_groups()), np.full(10, 5))


# Emissions --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_spread_of_normal_laws_is_an_upper_bound() -> None:
    rng = np.random.default_rng(12)
    grid = np.linspace(-40, 40, 200_001)
    for _ in range(20):
        means, deviations = rng.normal(size=2), rng.uniform(0.5, 3, size=2)
        law = GaussianEmission(means, deviations)
        densities = [stats.norm.pdf(grid, m, s) for m, s in zip(means, deviations, strict=True)]
        distance = 0.5 * float(np.abs(densities[0] - densities[1]).sum()) * (grid[1] - grid[0])
        assert distance <= law.spread <= 1
        np.testing.assert_allclose(law.log_likelihood([0.3])[0], stats.norm.logpdf(0.3, means, deviations), rtol=1e-12)


def test_communities_compare_with_groups() -> None:
    labels = ["a"] * 4 + ["b"] * 2 + ["c"]
    np.testing.assert_allclose(Communities(labels).leakage(0.1), Groups(labels).leakage(0.1), rtol=1e-14)
    many = Communities([0] * 10_000, emission=[[0.6, 0.4], [0.4, 0.6]])
    diameter = 2 * np.log(1.5)
    assert many.leakage(0.1).max() <= 0.1 + diameter + 1e-9
    heterogeneous = Communities(labels, emission=[[0.6, 0.4], [0.4, 0.6]]).leakage(np.linspace(0.1, 0.7, 7))
    assert heterogeneous[-1] == 0.7


def test_fingerprints_tell_models_apart() -> None:
    transition = [[0.9, 0.1], [0.2, 0.8]]
    models: list[DependenceModel] = [
        HiddenMarkov(transition, 5),
        HiddenMarkov(transition, 6),
        HiddenMarkov(transition, 5, emission=transition),
        HiddenMarkov(transition, 5, emission=GaussianEmission([0, 1], [1, 1])),
        HiddenMarkov(transition, 5, emission=CategoricalEmission(transition, symbols="ab")),
        Communities(list("aab")),
        Communities(list("abb")),
        Communities(list("aab"), MarkovChain(transition, 2)),
        Communities(list("aab"), emission=transition),
        Communities(list("aab"), emission=transition, prior=[0.3, 0.7]),
    ]
    assert len({model.fingerprint() for model in models}) == len(models)
    assert HiddenMarkov(transition, 5).fingerprint() == models[0].fingerprint()


@for_each(
    ("make", "match"),
    [
        (lambda: HiddenMarkov([[0.9, 0.2], [0.2, 0.8]], 5), "row 0, whose sum is"),
        (lambda: HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 0), "n must be .*; got 0"),
        (lambda: HiddenMarkov([[1, 0], [0, 1]], 5), "initial must be .*; got None"),
        (lambda: HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 5, emission=[[1.0]]), "laws for 1 states"),
        (
            lambda: HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 5, emission=[[0.5, 0.6], [1, 0]]),
            "emission must be .*; got row 0",
        ),
        (lambda: CategoricalEmission([[0.5, 0.5]], symbols="aa"), "symbols"),
        (lambda: GaussianEmission([0, 1], [1, 0]), "deviations"),
        (lambda: GaussianEmission([0, np.nan], [1, 1]), "means"),
        (lambda: GaussianEmission([0, 1], [1]), "deviations"),
        (lambda: HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 5).joint(), "records of any type"),
        (lambda: HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 5).posterior([1]), "emission is missing"),
        (lambda: HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 5, emission=np.eye(2)).posterior([0, 3]), "value 3"),
        (lambda: HiddenMarkov([[1, 0], [0, 1]], 2, [1, 0], np.eye(2)).posterior([0, 1]), "impossible"),
        (lambda: HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 40, emission=np.eye(2)).joint(), "joint values"),
        (lambda: Communities([]), "labels is missing"),
        (lambda: Communities(["a", None]), "missing label"),
        (lambda: Communities(list("ab"), MarkovChain([[0.9, 0.1], [0.2, 0.8]], 3)), "3 states for 2 communities"),
        (lambda: Communities(list("ab"), Independent(2), prior=[0.5, 0.5]), "prior"),
        (lambda: Communities(list("ab"), emission=np.eye(2), prior=[1.0]), "prior"),
        (lambda: Communities(list("ab"), communities=list("a")), "without 'b'"),
        (lambda: Communities(list("ab"), communities=list("aab")), "different names"),
        (lambda: Communities(list("ab")).joint(), "records of any type"),
        (lambda: Communities(list("ab"), MarkovChain(WALK, 2), np.eye(2)).joint(), "a model with 2 states"),
    ],
)
def test_refusals(make: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        make()
