from .dpem.mixture import DPEMGaussianMixture as DPEMGaussianMixture
from .dpsgd.classifier import DPSGDClassifier as DPSGDClassifier
from .dpsgd.descent import DivergedWarning as DivergedWarning
from .dpsgd.regressor import DPSGDRegressor as DPSGDRegressor
from .federated_classifier import FederatedClassifier as FederatedClassifier
from .privacy_report import LowSignalWarning as LowSignalWarning
from .privacy_report import PrivacyReport as PrivacyReport
from .propagation.dpvi import DPVIRegressor as DPVIRegressor
from .propagation.ep_linear_models import (
    EPClassifier as EPClassifier,
)
from .propagation.ep_linear_models import (
    EPLinearRegression as EPLinearRegression,
)
from .propagation.fitting import (
    LooseDeltaWarning as LooseDeltaWarning,
    LowInformationWarning as LowInformationWarning,
    UnprovedTargetWarning as UnprovedTargetWarning,
)
from .propagation.mixture import EPGaussianMixture as EPGaussianMixture
from .propagation.pbp import PBPRegressor as PBPRegressor
from .sgld.sgld_regressor import SGLDRegressor as SGLDRegressor
from .sufficient_statistics import SSPRegressor as SSPRegressor
from .targets import (
    CostlyTargetWarning as CostlyTargetWarning,
    SpentTargetWarning as SpentTargetWarning,
)

# Importable too, and not public: the formulas and functions that PROOFS.md and the papers name.
from .federated import run_federated as run_federated
from .langevin import run_sgld as run_sgld
from .propagation.ep_privacy import (
    calibrate_sep_sigma as calibrate_sep_sigma,
    epsilon_of as epsilon_of,
    rdp_gaussian as rdp_gaussian,
    rdp_subsampled_gaussian as rdp_subsampled_gaussian,
    sensitivity as sensitivity,
)
from .propagation.ep_runs import (
    run_ep as run_ep,
    run_sep as run_sep,
)
from .propagation.ep_update import dp_sep_step as dp_sep_step
from .propagation.natural_parameters import GaussianNatural as GaussianNatural
from .propagation.gaussian_models import (
    site_linear as site_linear,
    site_logistic as site_logistic,
    site_probit as site_probit,
    site_tilted_location as site_tilted_location,
)
from .random_streams import streams as streams
from .sgld.posterior_bound import (
    gaussian_renyi as gaussian_renyi,
    rdp_to_dp as rdp_to_dp,
)
from .sgld.iterate_law import (
    epoch_law as epoch_law,
    sgld_moments as sgld_moments,
)
from .sgld.lower_bounds import (
    check_lemma_conditions as check_lemma_conditions,
    eps_A9 as eps_A9,
    eps_chernoff as eps_chernoff,
    eps_tail as eps_tail,
    worst_epoch as worst_epoch,
)
from .sgld.posterior_bound import posterior_dp_holds as posterior_dp_holds
from .sgld.propose_test_sample import (
    propose_test_sample as propose_test_sample,
    pts_n_min as pts_n_min,
    pts_ratio_scale as pts_ratio_scale,
)
from .sgld.regression_model import (
    in_domain as in_domain,
    posterior as posterior,
    step_size as step_size,
    worst_case_pair as worst_case_pair,
)
from .sgld.sampler import sgld_sample as sgld_sample
from .sgld.worst_case_pair import theorem_parameters as theorem_parameters
from .sgld.worst_case_pair import pair_epsilon as pair_epsilon

__all__: list[str]
