"""What an iterative learner leaks, and the generalisation that follows.

Modules are loaded when they are first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresholdout.accounting.accountant import (
        Accountant,
        Stated,
        UnsupportedEvent,
    )
    from thresholdout.accounting.calibration import (
        BestEpsilon,
        Calibration,
        best_delta,
        best_epsilon,
        calibrate,
        calibrate_sigma,
    )
    from thresholdout.accounting.chernoff import (
        chernoff_delta,
        compose_chernoff,
    )
    from thresholdout.accounting.comparison import (
        compare_composition,
        compare_high_probability,
        compare_kl,
        compare_on_average,
        exponential_mechanism_gap,
    )
    from thresholdout.accounting.composition import (
        compose_basic,
        compose_dwork_roth,
        compose_kov,
        compose_theorem5,
    )
    from thresholdout.accounting.composition_paper import (
        compose_he,
    )
    from thresholdout.accounting.conversion import (
        EdgeOrderWarning,
        NoFiniteOrderWarning,
        RenyiDelta,
        RenyiEpsilon,
        default_orders,
        rdp_to_delta,
        rdp_to_epsilon,
        refine_epsilon,
    )
    from thresholdout.accounting.distributions import (
        DistributionAccountant,
    )
    from thresholdout.accounting.divergences import (
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
    from thresholdout.accounting.event_files import (
        event_from_dict,
        event_to_dict,
        event_to_json,
        events_to_toml,
        read_events,
    )
    from thresholdout.accounting.events import (
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
    from thresholdout.accounting.fixed_size.moments import (
        taylor_moment,
        taylor_moment_bound,
    )
    from thresholdout.accounting.fixed_size.poisson import (
        rdp_poisson,
    )
    from thresholdout.accounting.fixed_size.replace_one import (
        E_tilde,
        F_tilde,
    )
    from thresholdout.accounting.fixed_size.sampling import (
        minibatch_variance,
        sample_minibatch,
    )
    from thresholdout.accounting.fixed_size.wang import (
        rdp_wang,
    )
    from thresholdout.accounting.fixed_size.with_replacement import (
        rdp_fswr,
        rdp_fswr_lower,
    )
    from thresholdout.accounting.fixed_size.without_replacement import (
        H_taylor,
        rdp_fswor,
        rdp_fswor_lower,
        remainder_add_remove,
    )
    from thresholdout.accounting.fixed_size_accountant import (
        FixedSizeAccountant,
    )
    from thresholdout.accounting.generalization import (
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
    from thresholdout.accounting.iterative import (
        federated_privacy,
        federated_step,
        sgld_generalization,
        sgld_privacy,
        sgld_step,
    )
    from thresholdout.accounting.optimal import (
        compose_optimal_delta,
        compose_optimal_epsilon,
        optimal_delta_bounds,
        optimal_epsilon_bounds,
    )
    from thresholdout.accounting.optimal_accountant import (
        OptimalAccountant,
    )
    from thresholdout.accounting.pictures import (
        plot_composition,
        plot_high_probability,
        plot_kl,
        plot_on_average,
    )
    from thresholdout.accounting.pld.distribution import (
        Interval,
        PrivacyLossDistribution,
    )
    from thresholdout.accounting.pld.minibatches import (
        pld_fswor,
        pld_fswr,
        pld_poisson,
    )
    from thresholdout.accounting.pure import (
        PureAccountant,
    )
    from thresholdout.accounting.quoted_bounds import (
        dwork2015_bound,
        empirical_variance,
        nissim_stemmer_bound,
        oneto_risk_bound,
        oneto_variance_bound,
    )
    from thresholdout.accounting.renyi import (
        RenyiAccountant,
    )
    from thresholdout.accounting.results import (
        Composition,
        GeneralizationBound,
        PrivacyParams,
        SampleSizeError,
        UnsoundBoundWarning,
    )
    from thresholdout.accounting.subsampling import (
        gaussian_delta,
        gaussian_step,
        subsample,
    )

_HOMES = {
    "Accountant": "thresholdout.accounting.accountant",
    "BestEpsilon": "thresholdout.accounting.calibration",
    "BlackBox": "thresholdout.accounting.events",
    "Calibration": "thresholdout.accounting.calibration",
    "Composed": "thresholdout.accounting.events",
    "Composition": "thresholdout.accounting.results",
    "DistributionAccountant": "thresholdout.accounting.distributions",
    "E_tilde": "thresholdout.accounting.fixed_size.replace_one",
    "EdgeOrderWarning": "thresholdout.accounting.conversion",
    "Event": "thresholdout.accounting.events",
    "F_tilde": "thresholdout.accounting.fixed_size.replace_one",
    "FederatedRound": "thresholdout.accounting.events",
    "FixedSizeAccountant": "thresholdout.accounting.fixed_size_accountant",
    "GaussianAnswer": "thresholdout.accounting.events",
    "GeneralizationBound": "thresholdout.accounting.results",
    "H_taylor": "thresholdout.accounting.fixed_size.without_replacement",
    "Interval": "thresholdout.accounting.pld.distribution",
    "LaplaceAnswer": "thresholdout.accounting.events",
    "NoFiniteOrderWarning": "thresholdout.accounting.conversion",
    "OptimalAccountant": "thresholdout.accounting.optimal_accountant",
    "PacPlan": "thresholdout.accounting.generalization",
    "PoissonGaussianStep": "thresholdout.accounting.events",
    "PrivacyLossDistribution": "thresholdout.accounting.pld.distribution",
    "PrivacyParams": "thresholdout.accounting.results",
    "PureAccountant": "thresholdout.accounting.pure",
    "RenyiAccountant": "thresholdout.accounting.renyi",
    "RenyiDelta": "thresholdout.accounting.conversion",
    "RenyiEpsilon": "thresholdout.accounting.conversion",
    "SGLDStep": "thresholdout.accounting.events",
    "SampleSizeError": "thresholdout.accounting.results",
    "SelfComposed": "thresholdout.accounting.events",
    "Stated": "thresholdout.accounting.accountant",
    "ThresholdoutInteraction": "thresholdout.accounting.events",
    "UnsoundBoundWarning": "thresholdout.accounting.results",
    "UnsupportedEvent": "thresholdout.accounting.accountant",
    "WithReplacementGaussianStep": "thresholdout.accounting.events",
    "WithoutReplacementGaussianStep": "thresholdout.accounting.events",
    "approx_max_divergence": "thresholdout.accounting.divergences",
    "assumed_training_error": "thresholdout.accounting.generalization",
    "azuma_tail": "thresholdout.accounting.divergences",
    "best_delta": "thresholdout.accounting.calibration",
    "best_epsilon": "thresholdout.accounting.calibration",
    "best_error": "thresholdout.accounting.generalization",
    "calibrate": "thresholdout.accounting.calibration",
    "calibrate_sigma": "thresholdout.accounting.calibration",
    "chernoff_delta": "thresholdout.accounting.chernoff",
    "compare_composition": "thresholdout.accounting.comparison",
    "compare_high_probability": "thresholdout.accounting.comparison",
    "compare_kl": "thresholdout.accounting.comparison",
    "compare_on_average": "thresholdout.accounting.comparison",
    "compose_basic": "thresholdout.accounting.composition",
    "compose_chernoff": "thresholdout.accounting.chernoff",
    "compose_dwork_roth": "thresholdout.accounting.composition",
    "compose_he": "thresholdout.accounting.composition_paper",
    "compose_kov": "thresholdout.accounting.composition",
    "compose_optimal_delta": "thresholdout.accounting.optimal",
    "compose_optimal_epsilon": "thresholdout.accounting.optimal",
    "compose_theorem5": "thresholdout.accounting.composition",
    "default_orders": "thresholdout.accounting.conversion",
    "dwork2015_bound": "thresholdout.accounting.quoted_bounds",
    "empirical_variance": "thresholdout.accounting.quoted_bounds",
    "event_from_dict": "thresholdout.accounting.event_files",
    "event_to_dict": "thresholdout.accounting.event_files",
    "event_to_json": "thresholdout.accounting.event_files",
    "events_to_toml": "thresholdout.accounting.event_files",
    "exponential_mechanism_gap": "thresholdout.accounting.comparison",
    "federated_privacy": "thresholdout.accounting.iterative",
    "federated_step": "thresholdout.accounting.iterative",
    "gaussian_delta": "thresholdout.accounting.subsampling",
    "gaussian_step": "thresholdout.accounting.subsampling",
    "high_probability_bound": "thresholdout.accounting.generalization",
    "hockey_stick": "thresholdout.accounting.divergences",
    "is_indistinguishable": "thresholdout.accounting.divergences",
    "kl_bound": "thresholdout.accounting.divergences",
    "kl_divergence": "thresholdout.accounting.divergences",
    "max_divergence": "thresholdout.accounting.divergences",
    "minibatch_variance": "thresholdout.accounting.fixed_size.sampling",
    "multidatabase_bound": "thresholdout.accounting.generalization",
    "nissim_stemmer_bound": "thresholdout.accounting.quoted_bounds",
    "on_average_bound": "thresholdout.accounting.generalization",
    "oneto_risk_bound": "thresholdout.accounting.quoted_bounds",
    "oneto_variance_bound": "thresholdout.accounting.quoted_bounds",
    "optimal_delta_bounds": "thresholdout.accounting.optimal",
    "optimal_epsilon_bounds": "thresholdout.accounting.optimal",
    "pac_guarantee": "thresholdout.accounting.generalization",
    "pac_plan": "thresholdout.accounting.generalization",
    "pld_fswor": "thresholdout.accounting.pld.minibatches",
    "pld_fswr": "thresholdout.accounting.pld.minibatches",
    "pld_poisson": "thresholdout.accounting.pld.minibatches",
    "plot_composition": "thresholdout.accounting.pictures",
    "plot_high_probability": "thresholdout.accounting.pictures",
    "plot_kl": "thresholdout.accounting.pictures",
    "plot_on_average": "thresholdout.accounting.pictures",
    "pure_decomposition": "thresholdout.accounting.divergences",
    "rdp_fswor": "thresholdout.accounting.fixed_size.without_replacement",
    "rdp_fswor_lower": "thresholdout.accounting.fixed_size.without_replacement",
    "rdp_fswr": "thresholdout.accounting.fixed_size.with_replacement",
    "rdp_fswr_lower": "thresholdout.accounting.fixed_size.with_replacement",
    "rdp_poisson": "thresholdout.accounting.fixed_size.poisson",
    "rdp_to_delta": "thresholdout.accounting.conversion",
    "rdp_to_epsilon": "thresholdout.accounting.conversion",
    "rdp_wang": "thresholdout.accounting.fixed_size.wang",
    "read_events": "thresholdout.accounting.event_files",
    "refine_epsilon": "thresholdout.accounting.conversion",
    "remainder_add_remove": "thresholdout.accounting.fixed_size.without_replacement",
    "sample_minibatch": "thresholdout.accounting.fixed_size.sampling",
    "sample_size_required": "thresholdout.accounting.generalization",
    "sgld_generalization": "thresholdout.accounting.iterative",
    "sgld_privacy": "thresholdout.accounting.iterative",
    "sgld_step": "thresholdout.accounting.iterative",
    "smallest_delta": "thresholdout.accounting.generalization",
    "smallest_eps": "thresholdout.accounting.generalization",
    "statistical_distance": "thresholdout.accounting.divergences",
    "subsample": "thresholdout.accounting.subsampling",
    "taylor_moment": "thresholdout.accounting.fixed_size.moments",
    "taylor_moment_bound": "thresholdout.accounting.fixed_size.moments",
    "tv_bound": "thresholdout.accounting.divergences",
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
    "plot_composition",
    "plot_high_probability",
    "plot_kl",
    "plot_on_average",
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
