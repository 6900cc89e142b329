from .accountants.accountant import (
    Accountant as Accountant,
    UnsupportedEvent as UnsupportedEvent,
)
from .accountants.calibration import (
    best_epsilon as best_epsilon,
    calibrate as calibrate,
    calibrate_sigma as calibrate_sigma,
)
from .accountants.distribution_accountant import DistributionAccountant as DistributionAccountant
from .accountants.accountant import PureAccountant as PureAccountant
from .accountants.renyi_accountant import RenyiAccountant as RenyiAccountant
from .events.event_files import read_events as read_events
from .events.event_files import training_events as training_events
from .events.composed_events import (
    Composed as Composed,
    SelfComposed as SelfComposed,
)
from .events.event_types import (
    BlackBox as BlackBox,
    Event as Event,
    GaussianAnswer as GaussianAnswer,
    LaplaceAnswer as LaplaceAnswer,
    ThresholdoutInteraction as ThresholdoutInteraction,
)
from .events.learning_steps import (
    FederatedRound as FederatedRound,
    PoissonGaussianStep as PoissonGaussianStep,
    SGLDStep as SGLDStep,
    WithReplacementGaussianStep as WithReplacementGaussianStep,
    WithoutReplacementGaussianStep as WithoutReplacementGaussianStep,
)

# These are importable and not public: the formulas and functions that PROOFS.md and the papers name.
from .accountants.calibration import Calibration as Calibration
from .adaptive_steps import (
    compose_basic as compose_basic,
    compose_dwork_roth as compose_dwork_roth,
    compose_kov as compose_kov,
    compose_theorem5 as compose_theorem5,
)
from .adaptive_steps import (
    chernoff_delta as chernoff_delta,
    compose_chernoff as compose_chernoff,
)
from .optimal_composition import (
    compose_optimal_delta as compose_optimal_delta,
    compose_optimal_epsilon as compose_optimal_epsilon,
)
from .adaptive_steps import (
    gaussian_step as gaussian_step,
    subsample as subsample,
)
from .generalization_bounds import (
    azuma_tail as azuma_tail,
    kl_bound as kl_bound,
    tv_bound as tv_bound,
    assumed_training_error as assumed_training_error,
    best_error as best_error,
    high_probability_bound as high_probability_bound,
    multidatabase_bound as multidatabase_bound,
    on_average_bound as on_average_bound,
    pac_guarantee as pac_guarantee,
    pac_plan as pac_plan,
    sample_size_required as sample_size_required,
    smallest_delta as smallest_delta,
    smallest_eps as smallest_eps,
)
from .iterative_learners import (
    federated_privacy as federated_privacy,
    sgld_generalization as sgld_generalization,
    sgld_privacy as sgld_privacy,
)
from .minibatches.moments import (
    taylor_moment as taylor_moment,
    taylor_moment_bound as taylor_moment_bound,
)
from .minibatches.poisson import rdp_poisson as rdp_poisson
from .minibatches.replace_one import (
    E_tilde as E_tilde,
    F_tilde as F_tilde,
)
from .minibatches.minibatch_arguments import sample_minibatch as sample_minibatch
from .minibatches.moments import rdp_wang as rdp_wang
from .minibatches.with_replacement import (
    rdp_fswr as rdp_fswr,
    rdp_fswr_lower as rdp_fswr_lower,
)
from .minibatches.without_replacement import (
    H_taylor as H_taylor,
    rdp_fswor as rdp_fswor,
    rdp_fswor_lower as rdp_fswor_lower,
    remainder_add_remove as remainder_add_remove,
)
from .pld.distribution import Interval as Interval
from .published_bounds import compose_he as compose_he
from .published_bounds import (
    dwork2015_bound as dwork2015_bound,
    empirical_variance as empirical_variance,
    nissim_stemmer_bound as nissim_stemmer_bound,
    oneto_risk_bound as oneto_risk_bound,
    oneto_variance_bound as oneto_variance_bound,
)
from .results import (
    Composition as Composition,
    GeneralizationBound as GeneralizationBound,
    PrivacyParams as PrivacyParams,
    SampleSizeError as SampleSizeError,
    UnsoundBoundWarning as UnsoundBoundWarning,
)

__all__: list[str]
