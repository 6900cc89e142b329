"""What a plan consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from thresholdout.certificates import Certificate
from thresholdout.mechanisms import GaussianParameters, SplittingParameters, ThresholdoutParameters
from thresholdout.planning.use import Alternative, MechanismName

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Parameters of a guard for a declared use, what it will be worth, and what else was compared.

    Attributes
    ----------
    mechanism : {"thresholdout", "gaussian", "splitting"}
        What is recommended.
    tolerance : float
        Largest half-width of any answer by the recommended mechanism, for values in [0, 1].
    parameters
        Parameters of the recommended mechanism, as `thresholdout.Thresholdout` takes them.
    thresholdout : ThresholdoutParameters or None
        Parameters of the best guard that answers with the train value while it can; ``None`` when every question is to
        be answered from the holdout.
    queries, budget, records : int
        m, B and n, as declared or solved for.
    confidence : float
        1 - beta.
    quiet_margin : float
        Except with probability beta, no question whose train value and holdout mean differ by at most this spends
        budget; for Thresholdout.
    certificate : Certificate
        What the answers of the recommended mechanism are worth.
    compared : tuple of Alternative
        Everything that was compared; `alternatives` shows it as a table.
    recommendation : str
        In words.
    """

    mechanism: MechanismName
    tolerance: float
    parameters: ThresholdoutParameters | GaussianParameters | SplittingParameters
    thresholdout: ThresholdoutParameters | None
    queries: int
    budget: int
    records: int
    confidence: float
    quiet_margin: float
    certificate: Certificate
    compared: tuple[Alternative, ...]
    recommendation: str

    @property
    def threshold(self) -> float | None:
        """Threshold of the recommended guard, in units of the range; ``None`` where there is none."""
        return self.parameters.threshold if isinstance(self.parameters, ThresholdoutParameters) else None

    @property
    def noise_scale(self) -> float | None:
        """Noise of the recommended guard, in units of the range; of a Gaussian guard, its last standard deviation."""
        match self.parameters:
            case ThresholdoutParameters():
                return self.parameters.noise_scale
            case GaussianParameters():
                return self.parameters.schedule.scale(self.queries)
            case SplittingParameters():
                return None

    @property
    def grid(self) -> float | None:
        """Step of the grid of answers of the recommended guard; ``None`` where there is none."""
        return None if isinstance(self.parameters, SplittingParameters) else self.parameters.grid

    @property
    def alternatives(self) -> pd.DataFrame:
        """Everything that was compared, one row each, the smallest tolerance first."""
        import pandas as pd

        columns = ["mechanism", "route", "tolerance", "threshold", "noise_scale", "grid", "offered", "note"]
        rows = [[getattr(option, column) for column in columns] for option in self.compared]
        return pd.DataFrame(rows, columns=columns).sort_values("tolerance", ignore_index=True)

    def __repr__(self) -> str:
        return (
            f"<Plan: {self.mechanism}, ± {self.tolerance:.4g} at confidence {self.confidence:g} for {self.queries} "
            f"questions, {self.budget} from the holdout, {self.records} records>"
        )
