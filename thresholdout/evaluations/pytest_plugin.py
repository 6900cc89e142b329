"""The fixture `eval_gate` compares the logs of two runs, and fails where the candidate is worse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from thresholdout.evaluations import Check, Difference

__all__ = ["EvalGate", "eval_gate"]


class EvalGate:
    """Comparisons of logs as assertions, the value of the fixture `eval_gate`; file names are relative to `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def not_worse(
        self,
        candidate: str | Path,
        *,
        than: str | Path,
        margin: float = 0.02,
        allow_unclear: bool = False,
        any_laws: bool = False,
        allow_missing: float = 1.0,
        **fields: Any,
    ) -> Difference:
        """Fail unless a run is not worse than another by the margin; skip if a file is missing. See `diff`, `read`."""
        from thresholdout.evaluations import diff, read
        from thresholdout.evaluations.formats import as_text

        base, other = self._there(than), self._there(candidate)
        found = diff(
            read(base, **fields),
            read(other, **fields),
            margin=margin,
            any_laws=any_laws,
            allow_missing=allow_missing,
        )
        if found.exit(allow_unclear):
            pytest.fail(as_text(found), pytrace=False)
        return found

    def check(self, candidate: str | Path, database: str | Path, *, allow_missing: float = 1.0) -> Check:
        """Fail if a guarded set says that a run is worse, or does not prove it; skip if a file is missing."""
        from thresholdout.evaluations.verdict_service import open_guard

        guard = open_guard(database if "://" in str(database) else self._there(database))
        found = guard.check(guard.read(self._there(candidate)), allow_missing=allow_missing)
        if not found.passes(guard.mode):
            pytest.fail(f"{candidate}: {'worse' if found.outcome == 'worse' else 'not proved'}", pytrace=False)
        return found

    def _there(self, path: str | Path) -> Path:
        found = self._root / path
        if not found.is_file():
            pytest.skip(f"{path} does not exist. Run the evaluation first.")
        return found

    def __repr__(self) -> str:
        return f"<EvalGate in {self._root}>"


@pytest.fixture
def eval_gate(request: pytest.FixtureRequest) -> EvalGate:
    """Compare evaluation logs, relative to the root of the tests."""
    return EvalGate(request.config.rootpath)
