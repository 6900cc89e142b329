"""The public names are those that the reference lists."""

import re

import graphs
import graphs.estimation
import thresholdout
import thresholdout.client
import thresholdout.evaluations
import thresholdout.integrations
import thresholdout.ledger
import thresholdout.model_selection
import thresholdout.privacy.accounting
import thresholdout.privacy.auditing
import thresholdout.privacy.learning
import thresholdout.report
import thresholdout.scoring
import thresholdout.service
import thresholdout.simulation
from tests.cases import for_each
from tests.documents import ROOT

REFERENCE = (ROOT / "docs" / "reference.md").read_text()


def indexed(package: str) -> set[str]:
    """Return the names in the index table of a package."""
    section = REFERENCE.split(f"## `{package}`", 1)[1].split("\n#", 1)[0]
    return {name for row in re.findall(r"^\| (`.*?) \|", section, re.M) for name in re.findall(r"`(\w+)", row)}


PACKAGES = [
    graphs,
    graphs.estimation,
    thresholdout,
    thresholdout.scoring,
    thresholdout.model_selection,
    thresholdout.integrations,
    thresholdout.evaluations,
    thresholdout.ledger,
    thresholdout.service,
    thresholdout.client,
    thresholdout.privacy.accounting,
    thresholdout.privacy.learning,
    thresholdout.privacy.auditing,
    thresholdout.simulation,
    thresholdout.report,
]


@for_each("package", PACKAGES, ids=lambda package: package.__name__)
def test_all_is_what_the_reference_lists(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(package, name) is not None
    assert set(names) == indexed(package.__name__)  # type: ignore[attr-defined]


@for_each("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_name_has_an_example_that_runs(package: object) -> None:
    """The examples in docstrings are doctests; here they only have to be there."""
    names = package.__all__  # type: ignore[attr-defined]
    assert [name for name in names if ">>>" not in (getattr(package, name).__doc__ or "")] == []
