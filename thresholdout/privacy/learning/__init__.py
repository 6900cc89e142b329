"""Private learners: minibatch gradient descent, Langevin dynamics, federated averaging, expectation propagation.

Modules are loaded when they are first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresholdout.privacy.learning.dpsgd.classifier import DPSGDClassifier
    from thresholdout.privacy.learning.dpsgd.descent import DivergedWarning
    from thresholdout.privacy.learning.dpsgd.regressor import DPSGDRegressor
    from thresholdout.privacy.learning.federated import FederatedRun, run_federated
    from thresholdout.privacy.learning.federated_classifier import FederatedClassifier
    from thresholdout.privacy.learning.langevin import LangevinRun, run_sgld
    from thresholdout.privacy.learning.privacy_report import PrivacyReport
    from thresholdout.privacy.learning.propagation.clipping_theory import (
        KLBound,
        clipped_kl,
        dp_sep_kl_bound,
        kl_gaussian,
        kl_leading_order,
    )
    from thresholdout.privacy.learning.propagation.dpvi import DPVIRegressor
    from thresholdout.privacy.learning.propagation.ep_estimators import EPClassifier, EPLinearRegression
    from thresholdout.privacy.learning.propagation.ep_privacy import (
        calibrate_sep_sigma,
        epsilon_of,
        rdp_gaussian,
        rdp_subsampled_gaussian,
        sensitivity,
        sep_event,
    )
    from thresholdout.privacy.learning.propagation.ep_runs import information_fraction, run_adf, run_ep, run_sep
    from thresholdout.privacy.learning.propagation.ep_update import dp_sep_step
    from thresholdout.privacy.learning.propagation.families import BernoulliModel, PoissonModel, UnknownPrecisionModel
    from thresholdout.privacy.learning.propagation.fitting import (
        LooseDeltaWarning,
        LowInformationWarning,
        LowSignalWarning,
        UnprovedTargetWarning,
    )
    from thresholdout.privacy.learning.propagation.gaussian_models import (
        GaussianLocation,
        LinearModel,
        LinearPredictor,
        MixtureOfGaussians,
    )
    from thresholdout.privacy.learning.propagation.mixture import EPGaussianMixture
    from thresholdout.privacy.learning.propagation.natural import NaturalArrays
    from thresholdout.privacy.learning.propagation.natural_gaussian import GaussianNatural
    from thresholdout.privacy.learning.propagation.pbp import PBPRegressor
    from thresholdout.privacy.learning.propagation.simulated_data import (
        aligned_f_norm,
        conditional_mog_posterior,
        make_kin8_standin,
        make_mog_data,
    )
    from thresholdout.privacy.learning.propagation.sites import (
        mixture_moments,
        site_linear,
        site_logistic,
        site_probit,
        site_tilted_location,
    )
    from thresholdout.privacy.learning.random_streams import Streams, streams
    from thresholdout.privacy.learning.sgld.gaussians import gaussian_renyi, rdp_to_dp
    from thresholdout.privacy.learning.sgld.independent_draws import uniform_sampling_bound, uniform_sampling_cap
    from thresholdout.privacy.learning.sgld.iterate_law import (
        EpochLaw,
        ProofEpoch,
        epoch_law,
        proof_epoch,
        sgld_moments,
    )
    from thresholdout.privacy.learning.sgld.lower_bounds import (
        WorstEpoch,
        check_lemma_conditions,
        eps_A9,
        eps_chernoff,
        eps_tail,
        eps_threshold,
        worst_epoch,
    )
    from thresholdout.privacy.learning.sgld.posterior_bound import (
        paper_order,
        posterior_dp,
        posterior_dp_holds,
        posterior_rdp_bound,
        posterior_size_terms,
    )
    from thresholdout.privacy.learning.sgld.propose_test_sample import (
        ProposeTestSampleTrace,
        propose_test_sample,
        propose_test_sample_privacy,
        propose_test_sample_trace,
        pts_n_min,
        pts_ratio_scale,
    )
    from thresholdout.privacy.learning.sgld.regression_model import (
        RegressionDomain,
        in_domain,
        posterior,
        step_size,
        worst_case_pair,
    )
    from thresholdout.privacy.learning.sgld.sampler import DivergingChainWarning, sgld_sample
    from thresholdout.privacy.learning.sgld.sgld_regressor import SGLDRegressor
    from thresholdout.privacy.learning.sgld.theorem_constants import theorem_parameters
    from thresholdout.privacy.learning.sgld.worst_case_pair import pair_epsilon, posterior_pair_epsilon
    from thresholdout.privacy.learning.targets import CostlyTargetWarning, SpentTargetWarning

_HOMES = {
    "BernoulliModel": "thresholdout.privacy.learning.propagation.families",
    "CostlyTargetWarning": "thresholdout.privacy.learning.targets",
    "DPSGDClassifier": "thresholdout.privacy.learning.dpsgd.classifier",
    "DPSGDRegressor": "thresholdout.privacy.learning.dpsgd.regressor",
    "DPVIRegressor": "thresholdout.privacy.learning.propagation.dpvi",
    "DivergedWarning": "thresholdout.privacy.learning.dpsgd.descent",
    "DivergingChainWarning": "thresholdout.privacy.learning.sgld.sampler",
    "EPClassifier": "thresholdout.privacy.learning.propagation.ep_estimators",
    "EPGaussianMixture": "thresholdout.privacy.learning.propagation.mixture",
    "EPLinearRegression": "thresholdout.privacy.learning.propagation.ep_estimators",
    "EpochLaw": "thresholdout.privacy.learning.sgld.iterate_law",
    "FederatedClassifier": "thresholdout.privacy.learning.federated_classifier",
    "FederatedRun": "thresholdout.privacy.learning.federated",
    "GaussianLocation": "thresholdout.privacy.learning.propagation.gaussian_models",
    "GaussianNatural": "thresholdout.privacy.learning.propagation.natural_gaussian",
    "KLBound": "thresholdout.privacy.learning.propagation.clipping_theory",
    "LangevinRun": "thresholdout.privacy.learning.langevin",
    "LinearModel": "thresholdout.privacy.learning.propagation.gaussian_models",
    "LinearPredictor": "thresholdout.privacy.learning.propagation.gaussian_models",
    "LooseDeltaWarning": "thresholdout.privacy.learning.propagation.fitting",
    "LowInformationWarning": "thresholdout.privacy.learning.propagation.fitting",
    "LowSignalWarning": "thresholdout.privacy.learning.propagation.fitting",
    "MixtureOfGaussians": "thresholdout.privacy.learning.propagation.gaussian_models",
    "NaturalArrays": "thresholdout.privacy.learning.propagation.natural",
    "PBPRegressor": "thresholdout.privacy.learning.propagation.pbp",
    "PoissonModel": "thresholdout.privacy.learning.propagation.families",
    "PrivacyReport": "thresholdout.privacy.learning.privacy_report",
    "ProofEpoch": "thresholdout.privacy.learning.sgld.iterate_law",
    "ProposeTestSampleTrace": "thresholdout.privacy.learning.sgld.propose_test_sample",
    "RegressionDomain": "thresholdout.privacy.learning.sgld.regression_model",
    "SGLDRegressor": "thresholdout.privacy.learning.sgld.sgld_regressor",
    "SpentTargetWarning": "thresholdout.privacy.learning.targets",
    "Streams": "thresholdout.privacy.learning.random_streams",
    "UnknownPrecisionModel": "thresholdout.privacy.learning.propagation.families",
    "UnprovedTargetWarning": "thresholdout.privacy.learning.propagation.fitting",
    "WorstEpoch": "thresholdout.privacy.learning.sgld.lower_bounds",
    "aligned_f_norm": "thresholdout.privacy.learning.propagation.simulated_data",
    "calibrate_sep_sigma": "thresholdout.privacy.learning.propagation.ep_privacy",
    "check_lemma_conditions": "thresholdout.privacy.learning.sgld.lower_bounds",
    "clipped_kl": "thresholdout.privacy.learning.propagation.clipping_theory",
    "conditional_mog_posterior": "thresholdout.privacy.learning.propagation.simulated_data",
    "dp_sep_kl_bound": "thresholdout.privacy.learning.propagation.clipping_theory",
    "dp_sep_step": "thresholdout.privacy.learning.propagation.ep_update",
    "epoch_law": "thresholdout.privacy.learning.sgld.iterate_law",
    "eps_A9": "thresholdout.privacy.learning.sgld.lower_bounds",
    "eps_chernoff": "thresholdout.privacy.learning.sgld.lower_bounds",
    "eps_tail": "thresholdout.privacy.learning.sgld.lower_bounds",
    "eps_threshold": "thresholdout.privacy.learning.sgld.lower_bounds",
    "epsilon_of": "thresholdout.privacy.learning.propagation.ep_privacy",
    "gaussian_renyi": "thresholdout.privacy.learning.sgld.gaussians",
    "in_domain": "thresholdout.privacy.learning.sgld.regression_model",
    "information_fraction": "thresholdout.privacy.learning.propagation.ep_runs",
    "kl_gaussian": "thresholdout.privacy.learning.propagation.clipping_theory",
    "kl_leading_order": "thresholdout.privacy.learning.propagation.clipping_theory",
    "make_kin8_standin": "thresholdout.privacy.learning.propagation.simulated_data",
    "make_mog_data": "thresholdout.privacy.learning.propagation.simulated_data",
    "mixture_moments": "thresholdout.privacy.learning.propagation.sites",
    "pair_epsilon": "thresholdout.privacy.learning.sgld.worst_case_pair",
    "paper_order": "thresholdout.privacy.learning.sgld.posterior_bound",
    "posterior": "thresholdout.privacy.learning.sgld.regression_model",
    "posterior_dp": "thresholdout.privacy.learning.sgld.posterior_bound",
    "posterior_dp_holds": "thresholdout.privacy.learning.sgld.posterior_bound",
    "posterior_pair_epsilon": "thresholdout.privacy.learning.sgld.worst_case_pair",
    "posterior_rdp_bound": "thresholdout.privacy.learning.sgld.posterior_bound",
    "posterior_size_terms": "thresholdout.privacy.learning.sgld.posterior_bound",
    "proof_epoch": "thresholdout.privacy.learning.sgld.iterate_law",
    "propose_test_sample": "thresholdout.privacy.learning.sgld.propose_test_sample",
    "propose_test_sample_privacy": "thresholdout.privacy.learning.sgld.propose_test_sample",
    "propose_test_sample_trace": "thresholdout.privacy.learning.sgld.propose_test_sample",
    "pts_n_min": "thresholdout.privacy.learning.sgld.propose_test_sample",
    "pts_ratio_scale": "thresholdout.privacy.learning.sgld.propose_test_sample",
    "rdp_gaussian": "thresholdout.privacy.learning.propagation.ep_privacy",
    "rdp_subsampled_gaussian": "thresholdout.privacy.learning.propagation.ep_privacy",
    "rdp_to_dp": "thresholdout.privacy.learning.sgld.gaussians",
    "run_adf": "thresholdout.privacy.learning.propagation.ep_runs",
    "run_ep": "thresholdout.privacy.learning.propagation.ep_runs",
    "run_federated": "thresholdout.privacy.learning.federated",
    "run_sep": "thresholdout.privacy.learning.propagation.ep_runs",
    "run_sgld": "thresholdout.privacy.learning.langevin",
    "sensitivity": "thresholdout.privacy.learning.propagation.ep_privacy",
    "sep_event": "thresholdout.privacy.learning.propagation.ep_privacy",
    "sgld_moments": "thresholdout.privacy.learning.sgld.iterate_law",
    "sgld_sample": "thresholdout.privacy.learning.sgld.sampler",
    "site_linear": "thresholdout.privacy.learning.propagation.sites",
    "site_logistic": "thresholdout.privacy.learning.propagation.sites",
    "site_probit": "thresholdout.privacy.learning.propagation.sites",
    "site_tilted_location": "thresholdout.privacy.learning.propagation.sites",
    "step_size": "thresholdout.privacy.learning.sgld.regression_model",
    "streams": "thresholdout.privacy.learning.random_streams",
    "theorem_parameters": "thresholdout.privacy.learning.sgld.theorem_constants",
    "uniform_sampling_bound": "thresholdout.privacy.learning.sgld.independent_draws",
    "uniform_sampling_cap": "thresholdout.privacy.learning.sgld.independent_draws",
    "worst_case_pair": "thresholdout.privacy.learning.sgld.regression_model",
    "worst_epoch": "thresholdout.privacy.learning.sgld.lower_bounds",
}

__all__ = [
    "BernoulliModel",
    "CostlyTargetWarning",
    "DPSGDClassifier",
    "DPSGDRegressor",
    "DPVIRegressor",
    "DivergedWarning",
    "DivergingChainWarning",
    "EPClassifier",
    "EPGaussianMixture",
    "EPLinearRegression",
    "EpochLaw",
    "FederatedClassifier",
    "FederatedRun",
    "GaussianLocation",
    "GaussianNatural",
    "KLBound",
    "LangevinRun",
    "LinearModel",
    "LinearPredictor",
    "LooseDeltaWarning",
    "LowInformationWarning",
    "LowSignalWarning",
    "MixtureOfGaussians",
    "NaturalArrays",
    "PBPRegressor",
    "PoissonModel",
    "PrivacyReport",
    "ProofEpoch",
    "ProposeTestSampleTrace",
    "RegressionDomain",
    "SGLDRegressor",
    "SpentTargetWarning",
    "Streams",
    "UnknownPrecisionModel",
    "UnprovedTargetWarning",
    "WorstEpoch",
    "aligned_f_norm",
    "calibrate_sep_sigma",
    "check_lemma_conditions",
    "clipped_kl",
    "conditional_mog_posterior",
    "dp_sep_kl_bound",
    "dp_sep_step",
    "epoch_law",
    "eps_A9",
    "eps_chernoff",
    "eps_tail",
    "eps_threshold",
    "epsilon_of",
    "gaussian_renyi",
    "in_domain",
    "information_fraction",
    "kl_gaussian",
    "kl_leading_order",
    "make_kin8_standin",
    "make_mog_data",
    "mixture_moments",
    "pair_epsilon",
    "paper_order",
    "posterior",
    "posterior_dp",
    "posterior_dp_holds",
    "posterior_pair_epsilon",
    "posterior_rdp_bound",
    "posterior_size_terms",
    "proof_epoch",
    "propose_test_sample",
    "propose_test_sample_privacy",
    "propose_test_sample_trace",
    "pts_n_min",
    "pts_ratio_scale",
    "rdp_gaussian",
    "rdp_subsampled_gaussian",
    "rdp_to_dp",
    "run_adf",
    "run_ep",
    "run_federated",
    "run_sep",
    "run_sgld",
    "sensitivity",
    "sep_event",
    "sgld_moments",
    "sgld_sample",
    "site_linear",
    "site_logistic",
    "site_probit",
    "site_tilted_location",
    "step_size",
    "streams",
    "theorem_parameters",
    "uniform_sampling_bound",
    "uniform_sampling_cap",
    "worst_case_pair",
    "worst_epoch",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
