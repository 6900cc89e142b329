"""Small data sets with known posteriors, shared by the tests."""

import numpy as np

from thresholdout.privacy.learning.propagation.gaussian_models import (
    GaussianLocation,
    LinearModel,
    LinearPredictor,
    MixtureOfGaussians,
)
from thresholdout.privacy.learning.propagation.natural_parameters import GaussianNatural

LOCATION = GaussianLocation(GaussianNatural([0.125], [[0.25]]), 2.0)
LOCATION_RECORDS = [np.array([x]) for x in (1.0, 2.0, 4.0, -1.0, 0.5)]

REGRESSION = LinearModel(GaussianNatural([0.0, 0.0], np.eye(2)), 0.25)
REGRESSION_RECORDS = list(zip(np.array([[1, 0.5], [1, -1.0], [1, 2.0], [1, 0.0]]), (1.2, -0.7, 3.1, 0.4), strict=True))

LABELLED = list(
    zip(
        np.array([[1, 0.5], [1, -1.5], [1, 2], [1, 0.2], [1, -0.3], [1, 1.1]]),
        (1.0, -1.0, 1.0, -1.0, -1.0, 1.0),
        strict=True,
    )
)


def labelled_model(link: str) -> LinearPredictor:
    return LinearPredictor(GaussianNatural([0.0, 0.0], np.eye(2) / 4), link)


MEANS = np.array([[0.2, -0.1], [1.5, 1.0]])
MIXTURE = MixtureOfGaussians(GaussianNatural(0.5 * MEANS, np.stack([0.5 * np.eye(2)] * 2)), [0.5, 0.5], 0.25)
MIXTURE_RECORDS = [np.array(p) for p in [(0.1, 0), (2.1, 0.9), (-0.4, 0.3), (1.8, 1.4), (0.2, -0.5), (2.6, 1)]]
