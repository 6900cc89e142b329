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
    from thresholdout.learning.propagation.dpvi import DPVIRegressor
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
    from thresholdout.learning.propagation.mixture_data import aligned_f_norm, conditional_mog_posterior, make_mog_data
    from thresholdout.learning.propagation.models import (
        GaussianLocation,
        LinearModel,
        LinearPredictor,
        MixtureOfGaussians,
    )
    from thresholdout.learning.propagation.natural import NaturalArrays
    from thresholdout.learning.propagation.pbp import PBPRegressor
    from thresholdout.learning.propagation.privacy import (
        calibrate_sep_sigma,
        epsilon_of,
        rdp_gaussian,
        rdp_subsampled_gaussian,
        sensitivity,
        sep_event,
    )
    from thresholdout.learning.propagation.runs import information_fraction, run_adf, run_ep, run_sep
    from thresholdout.learning.propagation.sites import (
        mixture_moments,
        site_linear,
        site_logistic,
        site_probit,
        site_tilted_location,
    )
    from thresholdout.learning.propagation.standins import (
        make_kin8_standin,
        make_linear_standin,
        make_naval_standin,
        make_wine_standin,
    )
    from thresholdout.learning.propagation.steps import dp_sep_step
    from thresholdout.learning.propagation.theory import (
        KLBound,
        clipped_kl,
        dp_sep_kl_bound,
        kl_gaussian,
        kl_leading_order,
    )
    from thresholdout.learning.random_streams import Streams, streams
    from thresholdout.learning.sgld.estimator import SGLDRegressor
    from thresholdout.learning.sgld.figures import figure1_curves, growth_table, plot_figure1, plot_growth
    from thresholdout.learning.sgld.gaussians import gaussian_renyi, rdp_to_dp
    from thresholdout.learning.sgld.law import EpochLaw, ProofEpoch, epoch_law, proof_epoch, sgld_moments
    from thresholdout.learning.sgld.lower_bounds import (
        WorstEpoch,
        check_lemma_conditions,
        eps_A9,
        eps_chernoff,
        eps_tail,
        eps_threshold,
        worst_epoch,
    )
    from thresholdout.learning.sgld.model import RegressionDomain, in_domain, posterior, step_size, worst_case_pair
    from thresholdout.learning.sgld.pair import pair_epsilon, posterior_pair_epsilon
    from thresholdout.learning.sgld.posterior_bound import (
        paper_order,
        posterior_dp,
        posterior_dp_holds,
        posterior_rdp_bound,
        posterior_size_terms,
    )
    from thresholdout.learning.sgld.propose_test_sample import (
        ProposeTestSampleTrace,
        propose_test_sample,
        propose_test_sample_privacy,
        propose_test_sample_trace,
        pts_n_min,
        pts_ratio_scale,
    )
    from thresholdout.learning.sgld.sampler import DivergingChainWarning, sgld_sample
    from thresholdout.learning.sgld.theorem import theorem_parameters
    from thresholdout.learning.sgld.uniform import uniform_sampling_bound, uniform_sampling_cap
    from thresholdout.learning.targets import CostlyTargetWarning, SpentTargetWarning

_HOMES = {
    "BernoulliModel": "thresholdout.learning.propagation.families",
    "CostlyTargetWarning": "thresholdout.learning.targets",
    "DPSGDClassifier": "thresholdout.learning.dpsgd.classifier",
    "DPSGDRegressor": "thresholdout.learning.dpsgd.regressor",
    "DPVIRegressor": "thresholdout.learning.propagation.dpvi",
    "DivergedWarning": "thresholdout.learning.dpsgd.descent",
    "DivergingChainWarning": "thresholdout.learning.sgld.sampler",
    "EPClassifier": "thresholdout.learning.propagation.estimators",
    "EPGaussianMixture": "thresholdout.learning.propagation.mixture",
    "EPLinearRegression": "thresholdout.learning.propagation.estimators",
    "EpochLaw": "thresholdout.learning.sgld.law",
    "FederatedClassifier": "thresholdout.learning.federated_classifier",
    "FederatedRun": "thresholdout.learning.federated",
    "GaussianLocation": "thresholdout.learning.propagation.models",
    "GaussianNatural": "thresholdout.learning.propagation.gaussian",
    "KLBound": "thresholdout.learning.propagation.theory",
    "LangevinRun": "thresholdout.learning.langevin",
    "LinearModel": "thresholdout.learning.propagation.models",
    "LinearPredictor": "thresholdout.learning.propagation.models",
    "LooseDeltaWarning": "thresholdout.learning.propagation.fitting",
    "LowInformationWarning": "thresholdout.learning.propagation.fitting",
    "LowSignalWarning": "thresholdout.learning.propagation.fitting",
    "MixtureOfGaussians": "thresholdout.learning.propagation.models",
    "NaturalArrays": "thresholdout.learning.propagation.natural",
    "PBPRegressor": "thresholdout.learning.propagation.pbp",
    "PoissonModel": "thresholdout.learning.propagation.families",
    "PrivacyReport": "thresholdout.learning.privacy_report",
    "ProofEpoch": "thresholdout.learning.sgld.law",
    "ProposeTestSampleTrace": "thresholdout.learning.sgld.propose_test_sample",
    "RegressionDomain": "thresholdout.learning.sgld.model",
    "SGLDRegressor": "thresholdout.learning.sgld.estimator",
    "SpentTargetWarning": "thresholdout.learning.targets",
    "Streams": "thresholdout.learning.random_streams",
    "UnknownPrecisionModel": "thresholdout.learning.propagation.families",
    "UnprovedTargetWarning": "thresholdout.learning.propagation.fitting",
    "WorstEpoch": "thresholdout.learning.sgld.lower_bounds",
    "aligned_f_norm": "thresholdout.learning.propagation.mixture_data",
    "calibrate_sep_sigma": "thresholdout.learning.propagation.privacy",
    "check_lemma_conditions": "thresholdout.learning.sgld.lower_bounds",
    "clipped_kl": "thresholdout.learning.propagation.theory",
    "conditional_mog_posterior": "thresholdout.learning.propagation.mixture_data",
    "dp_sep_kl_bound": "thresholdout.learning.propagation.theory",
    "dp_sep_step": "thresholdout.learning.propagation.steps",
    "epoch_law": "thresholdout.learning.sgld.law",
    "eps_A9": "thresholdout.learning.sgld.lower_bounds",
    "eps_chernoff": "thresholdout.learning.sgld.lower_bounds",
    "eps_tail": "thresholdout.learning.sgld.lower_bounds",
    "eps_threshold": "thresholdout.learning.sgld.lower_bounds",
    "epsilon_of": "thresholdout.learning.propagation.privacy",
    "figure1_curves": "thresholdout.learning.sgld.figures",
    "gaussian_renyi": "thresholdout.learning.sgld.gaussians",
    "growth_table": "thresholdout.learning.sgld.figures",
    "in_domain": "thresholdout.learning.sgld.model",
    "information_fraction": "thresholdout.learning.propagation.runs",
    "kl_gaussian": "thresholdout.learning.propagation.theory",
    "kl_leading_order": "thresholdout.learning.propagation.theory",
    "make_kin8_standin": "thresholdout.learning.propagation.standins",
    "make_linear_standin": "thresholdout.learning.propagation.standins",
    "make_mog_data": "thresholdout.learning.propagation.mixture_data",
    "make_naval_standin": "thresholdout.learning.propagation.standins",
    "make_wine_standin": "thresholdout.learning.propagation.standins",
    "mixture_moments": "thresholdout.learning.propagation.sites",
    "pair_epsilon": "thresholdout.learning.sgld.pair",
    "paper_order": "thresholdout.learning.sgld.posterior_bound",
    "plot_figure1": "thresholdout.learning.sgld.figures",
    "plot_growth": "thresholdout.learning.sgld.figures",
    "posterior": "thresholdout.learning.sgld.model",
    "posterior_dp": "thresholdout.learning.sgld.posterior_bound",
    "posterior_dp_holds": "thresholdout.learning.sgld.posterior_bound",
    "posterior_pair_epsilon": "thresholdout.learning.sgld.pair",
    "posterior_rdp_bound": "thresholdout.learning.sgld.posterior_bound",
    "posterior_size_terms": "thresholdout.learning.sgld.posterior_bound",
    "proof_epoch": "thresholdout.learning.sgld.law",
    "propose_test_sample": "thresholdout.learning.sgld.propose_test_sample",
    "propose_test_sample_privacy": "thresholdout.learning.sgld.propose_test_sample",
    "propose_test_sample_trace": "thresholdout.learning.sgld.propose_test_sample",
    "pts_n_min": "thresholdout.learning.sgld.propose_test_sample",
    "pts_ratio_scale": "thresholdout.learning.sgld.propose_test_sample",
    "rdp_gaussian": "thresholdout.learning.propagation.privacy",
    "rdp_subsampled_gaussian": "thresholdout.learning.propagation.privacy",
    "rdp_to_dp": "thresholdout.learning.sgld.gaussians",
    "run_adf": "thresholdout.learning.propagation.runs",
    "run_ep": "thresholdout.learning.propagation.runs",
    "run_federated": "thresholdout.learning.federated",
    "run_sep": "thresholdout.learning.propagation.runs",
    "run_sgld": "thresholdout.learning.langevin",
    "sensitivity": "thresholdout.learning.propagation.privacy",
    "sep_event": "thresholdout.learning.propagation.privacy",
    "sgld_moments": "thresholdout.learning.sgld.law",
    "sgld_sample": "thresholdout.learning.sgld.sampler",
    "site_linear": "thresholdout.learning.propagation.sites",
    "site_logistic": "thresholdout.learning.propagation.sites",
    "site_probit": "thresholdout.learning.propagation.sites",
    "site_tilted_location": "thresholdout.learning.propagation.sites",
    "step_size": "thresholdout.learning.sgld.model",
    "streams": "thresholdout.learning.random_streams",
    "theorem_parameters": "thresholdout.learning.sgld.theorem",
    "uniform_sampling_bound": "thresholdout.learning.sgld.uniform",
    "uniform_sampling_cap": "thresholdout.learning.sgld.uniform",
    "worst_case_pair": "thresholdout.learning.sgld.model",
    "worst_epoch": "thresholdout.learning.sgld.lower_bounds",
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
    "figure1_curves",
    "gaussian_renyi",
    "growth_table",
    "in_domain",
    "information_fraction",
    "kl_gaussian",
    "kl_leading_order",
    "make_kin8_standin",
    "make_linear_standin",
    "make_mog_data",
    "make_naval_standin",
    "make_wine_standin",
    "mixture_moments",
    "pair_epsilon",
    "paper_order",
    "plot_figure1",
    "plot_growth",
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
