"""The documents' examples are tests; those of a page build on each other, so one worker has to run the whole file."""

import gc
import signal
from contextlib import suppress
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from importlib import import_module

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

# The same examples each time, and no limits of time: nothing fails by luck, or because a machine is slow or busy.
# `pytest --hypothesis-profile=default` looks for new ones.
settings.register_profile(
    "repeatable",
    max_examples=50,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("repeatable")

# A shell starts a command in its background with Ctrl-C ignored, and the processes of tests would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Examples that take more than about a third of a second; those of a page build on each other, so all of them are slow.
SLOW_EXAMPLES = frozenset(
    {
        "docs/private_learners.md",
        "docs/dependence.md",
        "docs/model_selection.md",
        "docs/learners.md",
        "benchmarks.papers.minibatch_variance.minibatch_variance",
        "benchmarks.papers.sgld_figures.figure1_curves",
        "graphs.estimation.candidate.of_order",
        "graphs.estimation.confidence.budget_interval",
        "graphs.estimation.fitted_fields.fit_kernel",
        "graphs.estimation.spatial_range.range_limit",
        "graphs.models.hidden_markov.HiddenMarkov.fit",
        "thresholdout.guard.kfold.KFoldGuard.releases",
        "thresholdout.guard.releases.Releases.record",
        "thresholdout.guard.remote_guard.RemoteGuard",
        "thresholdout.planning.planner.plan",
        "thresholdout.privacy.accounting.accountants.calibration.calibrate_sigma",
        "thresholdout.privacy.auditing.audit_result.AuditResult",
        "thresholdout.privacy.auditing.output_audits.audit_outputs",
        "thresholdout.privacy.auditing.output_audits.audit_sampler",
        "thresholdout.privacy.learning.dpsgd.regressor.DPSGDRegressor",
        "thresholdout.privacy.learning.federated_classifier.FederatedClassifier",
        "thresholdout.privacy.learning.propagation.ep_privacy.calibrate_sep_sigma",
        "thresholdout.privacy.learning.propagation.pbp.PBPRegressor",
        "thresholdout.privacy.learning.sgld.sgld_regressor.SGLDRegressor",
        "thresholdout.service.prediction_guard.PredictionGuard.releases",
        "thresholdout.simulation.comparison.Simulation",
        "thresholdout.simulation.comparison.simulate",
        "thresholdout.simulation.demonstration.dependent_records",
        "thresholdout.simulation.demonstration.ordinary_search",
        "thresholdout.suppressed_warnings.suppress_warnings",
    }
)

collect_ignore_glob = ["docs/_build/*", "docs/gallery/*"]

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE), SkipParser()],
    patterns=["README.md", "docs/**/*.md", "docs/*.md"],
    excludes=["docs/_build/**", "docs/generated/**", "docs/gallery/**"],
).pytest()


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> pytest.CollectReport | None:
    """Import a module with examples by its name, and look for no examples in files of tests.

    pytest imports a module by its path, after its package, and would execute it a second time where the package has
    done so: its classes were other ones then than those that the rest of the package knows.
    """
    if isinstance(collector, DoctestModule) and collector.path.name.startswith("test_"):
        return pytest.CollectReport(collector.nodeid, "passed", None, [])
    root = collector.config.rootpath
    if isinstance(collector, pytest.Module) and collector.path.is_relative_to(root):
        parts = collector.path.with_suffix("").relative_to(root).parts
        if parts[0] in ("graphs", "thresholdout"):
            with suppress(ImportError):  # of an optional library; pytest says so
                import_module(".".join(parts).removesuffix(".__init__"))
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Stop the search for garbage: what is collected stays, and looking through it again and again takes a while."""
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the long examples, before marks select."""
    for item in items:
        if not SLOW_EXAMPLES.isdisjoint((item.name, item.nodeid.partition("::")[0])):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Leave what was collected out of the search for garbage that goes on."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Search once at the end: pytest and the interpreter would search several times, through all that there is."""
    gc.collect()
    gc.freeze()
