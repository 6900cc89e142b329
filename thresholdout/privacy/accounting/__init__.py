"""Privacy accounting of iterative learners, and the generalisation bounds that follow.

Modules are loaded when they are first used, so that importing the package stays fast.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "Accountant",
    "BlackBox",
    "Composed",
    "DistributionAccountant",
    "Event",
    "FederatedRound",
    "GaussianAnswer",
    "LaplaceAnswer",
    "PoissonGaussianStep",
    "PureAccountant",
    "RenyiAccountant",
    "SGLDStep",
    "SelfComposed",
    "ThresholdoutInteraction",
    "UnsupportedEvent",
    "WithReplacementGaussianStep",
    "WithoutReplacementGaussianStep",
    "best_epsilon",
    "calibrate",
    "calibrate_sigma",
    "read_events",
    "training_events",
]
