"""Private learners: minibatch gradient descent, Langevin dynamics, federated averaging, expectation propagation.

Modules are loaded when they are first used, so that importing the package stays fast.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "CostlyTargetWarning",
    "DPEMGaussianMixture",
    "DPSGDClassifier",
    "DPSGDRegressor",
    "DPVIRegressor",
    "DivergedWarning",
    "EPClassifier",
    "EPGaussianMixture",
    "EPLinearRegression",
    "FederatedClassifier",
    "LooseDeltaWarning",
    "LowInformationWarning",
    "LowSignalWarning",
    "PBPRegressor",
    "PrivacyReport",
    "SGLDRegressor",
    "SSPRegressor",
    "SpentTargetWarning",
    "UnprovedTargetWarning",
]
