"""Private learners: minibatch gradient descent, Langevin dynamics, federated averaging, expectation propagation.

Modules are loaded when they are first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresholdout.learning.dpsgd.classifier import DPSGDClassifier
    from thresholdout.learning.dpsgd.descent import DivergedWarning
    from thresholdout.learning.dpsgd.regressor import DPSGDRegressor
    from thresholdout.learning.federated import FederatedRun, run_federated
    from thresholdout.learning.federated_classifier import FederatedClassifier
    from thresholdout.learning.langevin import LangevinRun, run_sgld
    from thresholdout.learning.privacy_report import PrivacyReport
    from thresholdout.learning.propagation.estimators import EPClassifier, EPLinearRegression
    from thresholdout.learning.propagation.families import BernoulliModel, PoissonModel, UnknownPrecisionModel
    from thresholdout.learning.propagation.fitting import (
        LooseDeltaWarning,
        LowInformationWarning,
        LowSignalWarning,
        UnprovedTargetWarning,
    )
    from thresholdout.learning.propagation.gaussian import GaussianNatural
    from thresholdout.learning.propagation.mixture import EPGaussianMixture
    from thresholdout.learning.propagation.models import (
        GaussianLocation,
        LinearPredictor,
        LinearRegression,
        MixtureOfGaussians,
    )
    from thresholdout.learning.propagation.natural import NaturalArrays
    from thresholdout.learning.propagation.privacy import (
        calibrate_sep_sigma,
        epsilon_of,
        rdp_gaussian,
        rdp_subsampled_gaussian,
        sensitivity,
        sep_event,
    )
    from thresholdout.learning.propagation.runs import run_adf, run_ep, run_sep
    from thresholdout.learning.propagation.sites import (
        mixture_moments,
        site_linear,
        site_logistic,
        site_probit,
        site_tilted_location,
    )
    from thresholdout.learning.propagation.steps import dp_sep_step
    from thresholdout.learning.streams import Streams, streams

_HOMES = {
    "BernoulliModel": "thresholdout.learning.propagation.families",
    "DPSGDClassifier": "thresholdout.learning.dpsgd.classifier",
    "DPSGDRegressor": "thresholdout.learning.dpsgd.regressor",
    "DivergedWarning": "thresholdout.learning.dpsgd.descent",
    "EPClassifier": "thresholdout.learning.propagation.estimators",
    "EPGaussianMixture": "thresholdout.learning.propagation.mixture",
    "EPLinearRegression": "thresholdout.learning.propagation.estimators",
    "FederatedClassifier": "thresholdout.learning.federated_classifier",
    "FederatedRun": "thresholdout.learning.federated",
    "GaussianLocation": "thresholdout.learning.propagation.models",
    "GaussianNatural": "thresholdout.learning.propagation.gaussian",
    "LangevinRun": "thresholdout.learning.langevin",
    "LinearPredictor": "thresholdout.learning.propagation.models",
    "LinearRegression": "thresholdout.learning.propagation.models",
    "LooseDeltaWarning": "thresholdout.learning.propagation.fitting",
    "LowInformationWarning": "thresholdout.learning.propagation.fitting",
    "LowSignalWarning": "thresholdout.learning.propagation.fitting",
    "MixtureOfGaussians": "thresholdout.learning.propagation.models",
    "NaturalArrays": "thresholdout.learning.propagation.natural",
    "PoissonModel": "thresholdout.learning.propagation.families",
    "PrivacyReport": "thresholdout.learning.privacy_report",
    "Streams": "thresholdout.learning.streams",
    "UnknownPrecisionModel": "thresholdout.learning.propagation.families",
    "UnprovedTargetWarning": "thresholdout.learning.propagation.fitting",
    "calibrate_sep_sigma": "thresholdout.learning.propagation.privacy",
    "dp_sep_step": "thresholdout.learning.propagation.steps",
    "epsilon_of": "thresholdout.learning.propagation.privacy",
    "mixture_moments": "thresholdout.learning.propagation.sites",
    "rdp_gaussian": "thresholdout.learning.propagation.privacy",
    "rdp_subsampled_gaussian": "thresholdout.learning.propagation.privacy",
    "run_adf": "thresholdout.learning.propagation.runs",
    "run_ep": "thresholdout.learning.propagation.runs",
    "run_federated": "thresholdout.learning.federated",
    "run_sep": "thresholdout.learning.propagation.runs",
    "run_sgld": "thresholdout.learning.langevin",
    "sensitivity": "thresholdout.learning.propagation.privacy",
    "sep_event": "thresholdout.learning.propagation.privacy",
    "site_linear": "thresholdout.learning.propagation.sites",
    "site_logistic": "thresholdout.learning.propagation.sites",
    "site_probit": "thresholdout.learning.propagation.sites",
    "site_tilted_location": "thresholdout.learning.propagation.sites",
    "streams": "thresholdout.learning.streams",
}

__all__ = [
    "BernoulliModel",
    "DPSGDClassifier",
    "DPSGDRegressor",
    "DivergedWarning",
    "EPClassifier",
    "EPGaussianMixture",
    "EPLinearRegression",
    "FederatedClassifier",
    "FederatedRun",
    "GaussianLocation",
    "GaussianNatural",
    "LangevinRun",
    "LinearPredictor",
    "LinearRegression",
    "LooseDeltaWarning",
    "LowInformationWarning",
    "LowSignalWarning",
    "MixtureOfGaussians",
    "NaturalArrays",
    "PoissonModel",
    "PrivacyReport",
    "Streams",
    "UnknownPrecisionModel",
    "UnprovedTargetWarning",
    "calibrate_sep_sigma",
    "dp_sep_step",
    "epsilon_of",
    "mixture_moments",
    "rdp_gaussian",
    "rdp_subsampled_gaussian",
    "run_adf",
    "run_ep",
    "run_federated",
    "run_sep",
    "run_sgld",
    "sensitivity",
    "sep_event",
    "site_linear",
    "site_logistic",
    "site_probit",
    "site_tilted_location",
    "streams",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
