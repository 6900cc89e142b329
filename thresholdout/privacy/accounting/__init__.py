"""What an iterative learner leaks, and the generalisation that follows.

Modules are loaded when they are first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresholdout.privacy.accounting.accountants.accountant import (
        Accountant,
        Stated,
        UnsupportedEvent,
    )
    from thresholdout.privacy.accounting.accountants.calibration import (
        BestEpsilon,
        Calibration,
        best_delta,
        best_epsilon,
        calibrate,
        calibrate_sigma,
    )
    from thresholdout.privacy.accounting.accountants.distribution_accountant import (
        DistributionAccountant,
    )
    from thresholdout.privacy.accounting.accountants.fixed_size_accountant import (
        FixedSizeAccountant,
    )
    from thresholdout.privacy.accounting.accountants.optimal_accountant import (
        OptimalAccountant,
    )
    from thresholdout.privacy.accounting.accountants.pure_accountant import (
        PureAccountant,
    )
    from thresholdout.privacy.accounting.accountants.renyi_accountant import (
        RenyiAccountant,
    )
    from thresholdout.privacy.accounting.accountants.renyi_conversion import (
        EdgeOrderWarning,
        NoFiniteOrderWarning,
        RenyiDelta,
        RenyiEpsilon,
        default_orders,
        rdp_to_delta,
        rdp_to_epsilon,
        refine_epsilon,
    )
    from thresholdout.privacy.accounting.bound_tables import (
        compare_composition,
        compare_high_probability,
        compare_kl,
        compare_on_average,
        exponential_mechanism_gap,
    )
    from thresholdout.privacy.accounting.composition.adaptive_steps import (
        compose_basic,
        compose_dwork_roth,
        compose_kov,
        compose_theorem5,
    )
    from thresholdout.privacy.accounting.composition.chernoff import (
        chernoff_delta,
        compose_chernoff,
    )
    from thresholdout.privacy.accounting.composition.optimal import (
        compose_optimal_delta,
        compose_optimal_epsilon,
        optimal_delta_bounds,
        optimal_epsilon_bounds,
    )
    from thresholdout.privacy.accounting.composition.subsampling import (
        gaussian_delta,
        gaussian_step,
        subsample,
    )
    from thresholdout.privacy.accounting.events.event_files import (
        event_from_dict,
        event_to_dict,
        event_to_json,
        events_to_toml,
        read_events,
    )
    from thresholdout.privacy.accounting.events.event_types import (
        BlackBox,
        Composed,
        Event,
        FederatedRound,
        GaussianAnswer,
        LaplaceAnswer,
        PoissonGaussianStep,
        SelfComposed,
        SGLDStep,
        ThresholdoutInteraction,
        WithoutReplacementGaussianStep,
        WithReplacementGaussianStep,
    )
    from thresholdout.privacy.accounting.generalization.divergences import (
        approx_max_divergence,
        azuma_tail,
        hockey_stick,
        is_indistinguishable,
        kl_bound,
        kl_divergence,
        max_divergence,
        pure_decomposition,
        statistical_distance,
        tv_bound,
    )
    from thresholdout.privacy.accounting.generalization.generalization_bounds import (
        PacPlan,
        assumed_training_error,
        best_error,
        high_probability_bound,
        multidatabase_bound,
        on_average_bound,
        pac_guarantee,
        pac_plan,
        sample_size_required,
        smallest_delta,
        smallest_eps,
    )
    from thresholdout.privacy.accounting.generalization.iterative_learners import (
        federated_privacy,
        federated_step,
        sgld_generalization,
        sgld_privacy,
        sgld_step,
    )
    from thresholdout.privacy.accounting.minibatches.moments import (
        taylor_moment,
        taylor_moment_bound,
    )
    from thresholdout.privacy.accounting.minibatches.poisson import (
        rdp_poisson,
    )
    from thresholdout.privacy.accounting.minibatches.replace_one import (
        E_tilde,
        F_tilde,
    )
    from thresholdout.privacy.accounting.minibatches.sampling import (
        minibatch_variance,
        sample_minibatch,
    )
    from thresholdout.privacy.accounting.minibatches.wang import (
        rdp_wang,
    )
    from thresholdout.privacy.accounting.minibatches.with_replacement import (
        rdp_fswr,
        rdp_fswr_lower,
    )
    from thresholdout.privacy.accounting.minibatches.without_replacement import (
        H_taylor,
        rdp_fswor,
        rdp_fswor_lower,
        remainder_add_remove,
    )
    from thresholdout.privacy.accounting.pld.distribution import (
        Interval,
        PrivacyLossDistribution,
    )
    from thresholdout.privacy.accounting.pld.minibatch_steps import (
        pld_fswor,
        pld_fswr,
        pld_poisson,
    )
    from thresholdout.privacy.accounting.published.published_composition import (
        compose_he,
    )
    from thresholdout.privacy.accounting.published.quoted_bounds import (
        dwork2015_bound,
        empirical_variance,
        nissim_stemmer_bound,
        oneto_risk_bound,
        oneto_variance_bound,
    )
    from thresholdout.privacy.accounting.results import (
        Composition,
        GeneralizationBound,
        PrivacyParams,
        SampleSizeError,
        UnsoundBoundWarning,
    )

_HOMES = {
    "Accountant": "thresholdout.privacy.accounting.accountants.accountant",
    "BestEpsilon": "thresholdout.privacy.accounting.accountants.calibration",
    "BlackBox": "thresholdout.privacy.accounting.events.event_types",
    "Calibration": "thresholdout.privacy.accounting.accountants.calibration",
    "Composed": "thresholdout.privacy.accounting.events.event_types",
    "Composition": "thresholdout.privacy.accounting.results",
    "DistributionAccountant": "thresholdout.privacy.accounting.accountants.distribution_accountant",
    "E_tilde": "thresholdout.privacy.accounting.minibatches.replace_one",
    "EdgeOrderWarning": "thresholdout.privacy.accounting.accountants.renyi_conversion",
    "Event": "thresholdout.privacy.accounting.events.event_types",
    "F_tilde": "thresholdout.privacy.accounting.minibatches.replace_one",
    "FederatedRound": "thresholdout.privacy.accounting.events.event_types",
    "FixedSizeAccountant": "thresholdout.privacy.accounting.accountants.fixed_size_accountant",
    "GaussianAnswer": "thresholdout.privacy.accounting.events.event_types",
    "GeneralizationBound": "thresholdout.privacy.accounting.results",
    "H_taylor": "thresholdout.privacy.accounting.minibatches.without_replacement",
    "Interval": "thresholdout.privacy.accounting.pld.distribution",
    "LaplaceAnswer": "thresholdout.privacy.accounting.events.event_types",
    "NoFiniteOrderWarning": "thresholdout.privacy.accounting.accountants.renyi_conversion",
    "OptimalAccountant": "thresholdout.privacy.accounting.accountants.optimal_accountant",
    "PacPlan": "thresholdout.privacy.accounting.generalization.generalization_bounds",
    "PoissonGaussianStep": "thresholdout.privacy.accounting.events.event_types",
    "PrivacyLossDistribution": "thresholdout.privacy.accounting.pld.distribution",
    "PrivacyParams": "thresholdout.privacy.accounting.results",
    "PureAccountant": "thresholdout.privacy.accounting.accountants.pure_accountant",
    "RenyiAccountant": "thresholdout.privacy.accounting.accountants.renyi_accountant",
    "RenyiDelta": "thresholdout.privacy.accounting.accountants.renyi_conversion",
    "RenyiEpsilon": "thresholdout.privacy.accounting.accountants.renyi_conversion",
    "SGLDStep": "thresholdout.privacy.accounting.events.event_types",
    "SampleSizeError": "thresholdout.privacy.accounting.results",
    "SelfComposed": "thresholdout.privacy.accounting.events.event_types",
    "Stated": "thresholdout.privacy.accounting.accountants.accountant",
    "ThresholdoutInteraction": "thresholdout.privacy.accounting.events.event_types",
    "UnsoundBoundWarning": "thresholdout.privacy.accounting.results",
    "UnsupportedEvent": "thresholdout.privacy.accounting.accountants.accountant",
    "WithReplacementGaussianStep": "thresholdout.privacy.accounting.events.event_types",
    "WithoutReplacementGaussianStep": "thresholdout.privacy.accounting.events.event_types",
    "approx_max_divergence": "thresholdout.privacy.accounting.generalization.divergences",
    "assumed_training_error": "thresholdout.privacy.accounting.generalization.generalization_bounds",
    "azuma_tail": "thresholdout.privacy.accounting.generalization.divergences",
    "best_delta": "thresholdout.privacy.accounting.accountants.calibration",
    "best_epsilon": "thresholdout.privacy.accounting.accountants.calibration",
    "best_error": "thresholdout.privacy.accounting.generalization.generalization_bounds",
    "calibrate": "thresholdout.privacy.accounting.accountants.calibration",
    "calibrate_sigma": "thresholdout.privacy.accounting.accountants.calibration",
    "chernoff_delta": "thresholdout.privacy.accounting.composition.chernoff",
    "compare_composition": "thresholdout.privacy.accounting.bound_tables",
    "compare_high_probability": "thresholdout.privacy.accounting.bound_tables",
    "compare_kl": "thresholdout.privacy.accounting.bound_tables",
    "compare_on_average": "thresholdout.privacy.accounting.bound_tables",
    "compose_basic": "thresholdout.privacy.accounting.composition.adaptive_steps",
    "compose_chernoff": "thresholdout.privacy.accounting.composition.chernoff",
    "compose_dwork_roth": "thresholdout.privacy.accounting.composition.adaptive_steps",
    "compose_he": "thresholdout.privacy.accounting.published.published_composition",
    "compose_kov": "thresholdout.privacy.accounting.composition.adaptive_steps",
    "compose_optimal_delta": "thresholdout.privacy.accounting.composition.optimal",
    "compose_optimal_epsilon": "thresholdout.privacy.accounting.composition.optimal",
    "compose_theorem5": "thresholdout.privacy.accounting.composition.adaptive_steps",
    "default_orders": "thresholdout.privacy.accounting.accountants.renyi_conversion",
    "dwork2015_bound": "thresholdout.privacy.accounting.published.quoted_bounds",
    "empirical_variance": "thresholdout.privacy.accounting.published.quoted_bounds",
    "event_from_dict": "thresholdout.privacy.accounting.events.event_files",
    "event_to_dict": "thresholdout.privacy.accounting.events.event_files",
    "event_to_json": "thresholdout.privacy.accounting.events.event_files",
    "events_to_toml": "thresholdout.privacy.accounting.events.event_files",
    "exponential_mechanism_gap": "thresholdout.privacy.accounting.bound_tables",
    "federated_privacy": "thresholdout.privacy.accounting.generalization.iterative_learners",
    "federated_step": "thresholdout.privacy.accounting.generalization.iterative_learners",
    "gaussian_delta": "thresholdout.privacy.accounting.composition.subsampling",
    "gaussian_step": "thresholdout.privacy.accounting.composition.subsampling",
    "high_probability_bound": "thresholdout.privacy.accounting.generalization.generalization_bounds",
    "hockey_stick": "thresholdout.privacy.accounting.generalization.divergences",
    "is_indistinguishable": "thresholdout.privacy.accounting.generalization.divergences",
    "kl_bound": "thresholdout.privacy.accounting.generalization.divergences",
    "kl_divergence": "thresholdout.privacy.accounting.generalization.divergences",
    "max_divergence": "thresholdout.privacy.accounting.generalization.divergences",
    "minibatch_variance": "thresholdout.privacy.accounting.minibatches.sampling",
    "multidatabase_bound": "thresholdout.privacy.accounting.generalization.generalization_bounds",
    "nissim_stemmer_bound": "thresholdout.privacy.accounting.published.quoted_bounds",
    "on_average_bound": "thresholdout.privacy.accounting.generalization.generalization_bounds",
    "oneto_risk_bound": "thresholdout.privacy.accounting.published.quoted_bounds",
    "oneto_variance_bound": "thresholdout.privacy.accounting.published.quoted_bounds",
    "optimal_delta_bounds": "thresholdout.privacy.accounting.composition.optimal",
    "optimal_epsilon_bounds": "thresholdout.privacy.accounting.composition.optimal",
    "pac_guarantee": "thresholdout.privacy.accounting.generalization.generalization_bounds",
    "pac_plan": "thresholdout.privacy.accounting.generalization.generalization_bounds",
    "pld_fswor": "thresholdout.privacy.accounting.pld.minibatch_steps",
    "pld_fswr": "thresholdout.privacy.accounting.pld.minibatch_steps",
    "pld_poisson": "thresholdout.privacy.accounting.pld.minibatch_steps",
    "pure_decomposition": "thresholdout.privacy.accounting.generalization.divergences",
    "rdp_fswor": "thresholdout.privacy.accounting.minibatches.without_replacement",
    "rdp_fswor_lower": "thresholdout.privacy.accounting.minibatches.without_replacement",
    "rdp_fswr": "thresholdout.privacy.accounting.minibatches.with_replacement",
    "rdp_fswr_lower": "thresholdout.privacy.accounting.minibatches.with_replacement",
    "rdp_poisson": "thresholdout.privacy.accounting.minibatches.poisson",
    "rdp_to_delta": "thresholdout.privacy.accounting.accountants.renyi_conversion",
    "rdp_to_epsilon": "thresholdout.privacy.accounting.accountants.renyi_conversion",
    "rdp_wang": "thresholdout.privacy.accounting.minibatches.wang",
    "read_events": "thresholdout.privacy.accounting.events.event_files",
    "refine_epsilon": "thresholdout.privacy.accounting.accountants.renyi_conversion",
    "remainder_add_remove": "thresholdout.privacy.accounting.minibatches.without_replacement",
    "sample_minibatch": "thresholdout.privacy.accounting.minibatches.sampling",
    "sample_size_required": "thresholdout.privacy.accounting.generalization.generalization_bounds",
    "sgld_generalization": "thresholdout.privacy.accounting.generalization.iterative_learners",
    "sgld_privacy": "thresholdout.privacy.accounting.generalization.iterative_learners",
    "sgld_step": "thresholdout.privacy.accounting.generalization.iterative_learners",
    "smallest_delta": "thresholdout.privacy.accounting.generalization.generalization_bounds",
    "smallest_eps": "thresholdout.privacy.accounting.generalization.generalization_bounds",
    "statistical_distance": "thresholdout.privacy.accounting.generalization.divergences",
    "subsample": "thresholdout.privacy.accounting.composition.subsampling",
    "taylor_moment": "thresholdout.privacy.accounting.minibatches.moments",
    "taylor_moment_bound": "thresholdout.privacy.accounting.minibatches.moments",
    "tv_bound": "thresholdout.privacy.accounting.generalization.divergences",
}

__all__ = [
    "Accountant",
    "BestEpsilon",
    "BlackBox",
    "Calibration",
    "Composed",
    "Composition",
    "DistributionAccountant",
    "E_tilde",
    "EdgeOrderWarning",
    "Event",
    "F_tilde",
    "FederatedRound",
    "FixedSizeAccountant",
    "GaussianAnswer",
    "GeneralizationBound",
    "H_taylor",
    "Interval",
    "LaplaceAnswer",
    "NoFiniteOrderWarning",
    "OptimalAccountant",
    "PacPlan",
    "PoissonGaussianStep",
    "PrivacyLossDistribution",
    "PrivacyParams",
    "PureAccountant",
    "RenyiAccountant",
    "RenyiDelta",
    "RenyiEpsilon",
    "SGLDStep",
    "SampleSizeError",
    "SelfComposed",
    "Stated",
    "ThresholdoutInteraction",
    "UnsoundBoundWarning",
    "UnsupportedEvent",
    "WithReplacementGaussianStep",
    "WithoutReplacementGaussianStep",
    "approx_max_divergence",
    "assumed_training_error",
    "azuma_tail",
    "best_delta",
    "best_epsilon",
    "best_error",
    "calibrate",
    "calibrate_sigma",
    "chernoff_delta",
    "compare_composition",
    "compare_high_probability",
    "compare_kl",
    "compare_on_average",
    "compose_basic",
    "compose_chernoff",
    "compose_dwork_roth",
    "compose_he",
    "compose_kov",
    "compose_optimal_delta",
    "compose_optimal_epsilon",
    "compose_theorem5",
    "default_orders",
    "dwork2015_bound",
    "empirical_variance",
    "event_from_dict",
    "event_to_dict",
    "event_to_json",
    "events_to_toml",
    "exponential_mechanism_gap",
    "federated_privacy",
    "federated_step",
    "gaussian_delta",
    "gaussian_step",
    "high_probability_bound",
    "hockey_stick",
    "is_indistinguishable",
    "kl_bound",
    "kl_divergence",
    "max_divergence",
    "minibatch_variance",
    "multidatabase_bound",
    "nissim_stemmer_bound",
    "on_average_bound",
    "oneto_risk_bound",
    "oneto_variance_bound",
    "optimal_delta_bounds",
    "optimal_epsilon_bounds",
    "pac_guarantee",
    "pac_plan",
    "pld_fswor",
    "pld_fswr",
    "pld_poisson",
    "pure_decomposition",
    "rdp_fswor",
    "rdp_fswor_lower",
    "rdp_fswr",
    "rdp_fswr_lower",
    "rdp_poisson",
    "rdp_to_delta",
    "rdp_to_epsilon",
    "rdp_wang",
    "read_events",
    "refine_epsilon",
    "remainder_add_remove",
    "sample_minibatch",
    "sample_size_required",
    "sgld_generalization",
    "sgld_privacy",
    "sgld_step",
    "smallest_delta",
    "smallest_eps",
    "statistical_distance",
    "subsample",
    "taylor_moment",
    "taylor_moment_bound",
    "tv_bound",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
