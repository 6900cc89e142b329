from .dpsgd.classifier import DPSGDClassifier as DPSGDClassifier
from .dpsgd.descent import DivergedWarning as DivergedWarning
from .dpsgd.regressor import DPSGDRegressor as DPSGDRegressor
from .federated import (
    FederatedRun as FederatedRun,
    run_federated as run_federated,
)
from .federated_classifier import FederatedClassifier as FederatedClassifier
from .langevin import (
    LangevinRun as LangevinRun,
    run_sgld as run_sgld,
)
from .privacy_report import PrivacyReport as PrivacyReport
from .propagation.clipping_theory import (
    KLBound as KLBound,
    clipped_kl as clipped_kl,
    dp_sep_kl_bound as dp_sep_kl_bound,
    kl_gaussian as kl_gaussian,
    kl_leading_order as kl_leading_order,
)
from .propagation.dpvi import DPVIRegressor as DPVIRegressor
from .propagation.ep_estimators import (
    EPClassifier as EPClassifier,
    EPLinearRegression as EPLinearRegression,
)
from .propagation.ep_privacy import (
    calibrate_sep_sigma as calibrate_sep_sigma,
    epsilon_of as epsilon_of,
    rdp_gaussian as rdp_gaussian,
    rdp_subsampled_gaussian as rdp_subsampled_gaussian,
    sensitivity as sensitivity,
    sep_event as sep_event,
)
from .propagation.ep_runs import (
    information_fraction as information_fraction,
    run_adf as run_adf,
    run_ep as run_ep,
    run_sep as run_sep,
)
from .propagation.ep_update import dp_sep_step as dp_sep_step
from .propagation.families import (
    BernoulliModel as BernoulliModel,
    PoissonModel as PoissonModel,
    UnknownPrecisionModel as UnknownPrecisionModel,
)
from .propagation.fitting import (
    LooseDeltaWarning as LooseDeltaWarning,
    LowInformationWarning as LowInformationWarning,
    LowSignalWarning as LowSignalWarning,
    UnprovedTargetWarning as UnprovedTargetWarning,
)
from .propagation.gaussian_models import (
    GaussianLocation as GaussianLocation,
    LinearModel as LinearModel,
    LinearPredictor as LinearPredictor,
    MixtureOfGaussians as MixtureOfGaussians,
)
from .propagation.mixture import EPGaussianMixture as EPGaussianMixture
from .propagation.natural import NaturalArrays as NaturalArrays
from .propagation.natural_gaussian import GaussianNatural as GaussianNatural
from .propagation.pbp import PBPRegressor as PBPRegressor
from .propagation.simulated_data import (
    aligned_f_norm as aligned_f_norm,
    conditional_mog_posterior as conditional_mog_posterior,
    make_kin8_standin as make_kin8_standin,
    make_mog_data as make_mog_data,
)
from .propagation.sites import (
    mixture_moments as mixture_moments,
    site_linear as site_linear,
    site_logistic as site_logistic,
    site_probit as site_probit,
    site_tilted_location as site_tilted_location,
)
from .random_streams import (
    Streams as Streams,
    streams as streams,
)
from .sgld.gaussians import (
    gaussian_renyi as gaussian_renyi,
    rdp_to_dp as rdp_to_dp,
)
from .sgld.independent_draws import (
    uniform_sampling_bound as uniform_sampling_bound,
    uniform_sampling_cap as uniform_sampling_cap,
)
from .sgld.iterate_law import (
    EpochLaw as EpochLaw,
    ProofEpoch as ProofEpoch,
    epoch_law as epoch_law,
    proof_epoch as proof_epoch,
    sgld_moments as sgld_moments,
)
from .sgld.lower_bounds import (
    WorstEpoch as WorstEpoch,
    check_lemma_conditions as check_lemma_conditions,
    eps_A9 as eps_A9,
    eps_chernoff as eps_chernoff,
    eps_tail as eps_tail,
    eps_threshold as eps_threshold,
    worst_epoch as worst_epoch,
)
from .sgld.posterior_bound import (
    paper_order as paper_order,
    posterior_dp as posterior_dp,
    posterior_dp_holds as posterior_dp_holds,
    posterior_rdp_bound as posterior_rdp_bound,
    posterior_size_terms as posterior_size_terms,
)
from .sgld.propose_test_sample import (
    ProposeTestSampleTrace as ProposeTestSampleTrace,
    propose_test_sample as propose_test_sample,
    propose_test_sample_privacy as propose_test_sample_privacy,
    propose_test_sample_trace as propose_test_sample_trace,
    pts_n_min as pts_n_min,
    pts_ratio_scale as pts_ratio_scale,
)
from .sgld.regression_model import (
    RegressionDomain as RegressionDomain,
    in_domain as in_domain,
    posterior as posterior,
    step_size as step_size,
    worst_case_pair as worst_case_pair,
)
from .sgld.sampler import (
    DivergingChainWarning as DivergingChainWarning,
    sgld_sample as sgld_sample,
)
from .sgld.sgld_regressor import SGLDRegressor as SGLDRegressor
from .sgld.theorem_constants import theorem_parameters as theorem_parameters
from .sgld.worst_case_pair import (
    pair_epsilon as pair_epsilon,
    posterior_pair_epsilon as posterior_pair_epsilon,
)
from .targets import (
    CostlyTargetWarning as CostlyTargetWarning,
    SpentTargetWarning as SpentTargetWarning,
)

__all__: list[str]
