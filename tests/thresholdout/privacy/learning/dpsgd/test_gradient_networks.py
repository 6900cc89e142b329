"""Gradients of each record, against finite differences and explicit outer products."""

import numpy as np

from tests.cases import for_each
from tests.thresholdout.privacy.learning.dpsgd.oracles import numeric_gradient, outer_products
from thresholdout.privacy.learning.dpsgd.clipping import clip_factors
from thresholdout.privacy.learning.dpsgd.gradient_networks import Network, Pass

NETWORKS = [
    Network((3, 1)),
    Network((3, 1), intercept=False),
    Network((4, 3), output="softmax"),
    Network((3, 5, 1), activation="tanh"),
    Network((3, 5, 4, 3), activation="tanh", output="softmax"),
    Network((3, 6, 3), activation="relu", output="softmax"),
    Network((3, 4, 2), activation="relu", output="softmax", intercept=False),
]


@for_each("network", NETWORKS, ids=lambda network: f"{network.sizes}-{network.output}")
def test_gradients_and_their_norms(network: Network) -> None:
    rng = np.random.default_rng(1)
    parameters = rng.normal(size=network.n_parameters)
    X = rng.normal(size=(6, network.sizes[0]))
    targets = rng.integers(0, network.sizes[-1], 6) if network.output == "softmax" else rng.normal(size=6)
    work = Pass(network, 8)
    work.inputs[0][:6] = X
    work.backward(network.layers(parameters), targets)
    inputs, deltas = ([rows[:6] for rows in arrays] for arrays in (work.inputs, work.deltas))
    gradients = outer_products(inputs, deltas, network.intercept)
    expected = np.array([numeric_gradient(network, parameters, x, t) for x, t in zip(X, targets, strict=True)])
    np.testing.assert_allclose(gradients, expected, atol=1e-7)
    norms = np.linalg.norm(expected, axis=1)
    clip = float(np.median(norms))
    for factors in clip_factors(inputs, deltas, network.intercept, clip):
        np.testing.assert_allclose(factors, np.minimum(1, clip / norms), rtol=1e-5)


@for_each("network", NETWORKS, ids=lambda network: f"{network.sizes}-{network.output}")
def test_scores_are_those_of_the_pass(network: Network) -> None:
    rng = np.random.default_rng(2)
    parameters = rng.normal(size=network.n_parameters)
    X = rng.normal(size=(5, network.sizes[0]))
    work = Pass(network, 5)
    work.inputs[0][:] = X
    work.backward(network.layers(parameters), np.zeros(5, dtype=int))
    scores = network.scores(parameters, X)
    if network.output == "softmax":
        scores = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        scores[:, 0] -= 1
    np.testing.assert_allclose(work.deltas[-1], scores, atol=1e-12)


def test_layers_are_views_that_cover_all_parameters() -> None:
    network = Network((2, 3, 1))
    parameters = np.zeros(network.n_parameters)
    for layer in network.layers(parameters):
        layer.weights[:] += 1
        assert layer.intercepts is not None
        layer.intercepts[:] += 2
    assert network.n_parameters == 2 * 3 + 3 + 3 + 1
    assert sorted(parameters) == [1] * 9 + [2] * 4
    assert network.penalised().sum() == 9


def test_starts_know_only_their_generator() -> None:
    linear, deep = Network((3, 2), output="softmax"), Network((300, 200, 2), output="softmax")
    assert not linear.start(np.random.default_rng(0)).any()
    found = deep.layers(deep.start(np.random.default_rng(0)))
    assert abs(found[0].weights.std() / np.sqrt(2 / 300) - 1) < 0.02
    assert abs(found[1].weights.std() / np.sqrt(1 / 200) - 1) < 0.15
    np.testing.assert_array_equal(deep.start(np.random.default_rng(5)), deep.start(np.random.default_rng(5)))


def test_equal_networks() -> None:
    assert Network((2, 1)) == Network([2, 1])
    assert Network((2, 1)) != Network((2, 1), intercept=False)
    assert len({Network((2, 1)), Network([2, 1])}) == 1
