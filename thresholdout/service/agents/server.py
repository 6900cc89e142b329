"""The server of the Model Context Protocol: five tools, and nothing said but answers and the texts of refusals."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from thresholdout.client.tables import CSV, Table
from thresholdout.service.agents.said import (
    HoldoutLine,
    HoldoutStatus,
    Outcome,
    line_of,
    outcome_of,
    refusal_of,
    status_of,
)
from thresholdout.service.refusals import ServiceRefused

if TYPE_CHECKING:
    from mcp.server.auth.provider import TokenVerifier
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.mcpserver.context import Context

    from thresholdout.service.agents.holdouts import Holdouts

__all__ = ["make_server"]

_log: Final = logging.getLogger("thresholdout.service")

INSTRUCTIONS: Final = """\
Holdouts whose labels nobody sees. Submit predictions for all records of a holdout; the answer is an interval that
holds with the stated confidence together with all others, or a verdict against your incumbent. The same predictions
again are free, and have the answer that they had: a verdict is about the incumbent of that time. Your incumbent is
your last submission that was the first, or better. A submission that is refused is not charged. Do not ask again when
a refusal says that nothing is left.
"""

Holdout = Annotated[str, Field(description="The holdout's name, as list_holdouts says it.")]
Text = Annotated[
    str,
    Field(description="Predictions as CSV: the id column, and 'prediction' (or 'p_<class>' columns), for all records."),
]
Path = Annotated[
    str, Field(description="Name of a .csv or .parquet file of predictions in the folder that the server may read.")
]
Expected = Annotated[
    float | None,
    Field(description="The score that you expect, such as a cross-validated one. A good guess makes narrow intervals."),
]
Gain = Annotated[float | None, Field(description="The difference of the scores that you expect.")]
Title = Annotated[str, Field(description="What to call it in the history.", max_length=100)]
After = Annotated[int, Field(description="'number' of the last one that you know already.", ge=0)]
Count = Annotated[int, Field(description="How many at most.", ge=1, le=1000)]

_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ASKS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


class _Server(MCPServer[Any]):
    """A server whose tools say nothing of an error but the refusal that stands for it."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None) -> Any:
        """Call a tool, and put what it raises into the words of a refusal."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            said = refusal_of(_refused(name, error))
        told = [said["text"]]
        if said["details"]:
            told.append(json.dumps(said["details"]))
        if "retry_after" in said:
            told.append(f"Not before {said['retry_after']} seconds from now.")
        return CallToolResult(
            content=[TextContent(type="text", text=" ".join(told))], structured_content=said, is_error=True
        )


def _refused(name: str, error: ToolError) -> ServiceRefused:
    """Return what stands for an error; one that nobody foresaw is logged by its kind and place, without its words."""
    cause = error.__cause__
    if isinstance(cause, ServiceRefused):
        return cause
    if isinstance(cause, ValidationError) and not isinstance(error, UnexpectedToolError):
        return ServiceRefused("bad_request", arguments=", ".join(sorted({_argument(one) for one in cause.errors()})))
    if not isinstance(error, UnexpectedToolError):
        return ServiceRefused("bad_request")
    frames = traceback.extract_tb(None if cause is None else cause.__traceback__)
    where = "; ".join(f"{frame.name}:{frame.lineno}" for frame in frames)
    _log.error("tool %s failed: %s in %s", name, type(cause).__name__, where)
    return ServiceRefused("unavailable")


def _argument(found: Any) -> str:
    return str(found["loc"][0]) if found["loc"] else "?"


def make_server(
    holdouts: Holdouts,
    *,
    read_file: Callable[[str], Table] | None = None,
    auth: AuthSettings | None = None,
    verifier: TokenVerifier | None = None,
) -> MCPServer[Any]:
    """Return a server with the tools `list_holdouts`, `status`, `submit`, `compare` and `my_history`.

    Parameters
    ----------
    holdouts : Holdouts
        Whom the tools ask.
    read_file : callable, optional
        Makes a table of the name of a file, where the server may read some; predictions are texts otherwise.
    auth, verifier
        Who may call, over HTTP.
    """
    server = _Server("thresholdout", instructions=INSTRUCTIONS, auth=auth, token_verifier=verifier, log_level="WARNING")

    @server.tool(annotations=_READS)
    def list_holdouts() -> list[HoldoutLine]:
        """List the holdouts that you may ask."""
        return [line_of(one) for one in holdouts.all()]

    @server.tool(annotations=_READS)
    def status(holdout: Holdout) -> HoldoutStatus:
        """Say what a holdout's answers are about and worth, and what is left of it."""
        return status_of(holdouts.one(holdout))

    @server.tool(annotations=_READS)
    def my_history(holdout: Holdout, after: After = 0, count: Count = 20) -> list[Outcome]:
        """List your own submissions to a holdout, and what came of them."""
        return [outcome_of(one) for one in holdouts.history(holdout, after, count)]

    if read_file is None:
        _add_for_texts(server, holdouts)
    else:
        _add_for_files(server, holdouts, read_file)
    return server


def _add_for_texts(server: MCPServer[Any], holdouts: Holdouts) -> None:
    """Add the tools that take predictions as text."""

    @server.tool(annotations=_ASKS)
    def submit(holdout: Holdout, predictions: Text, expected: Expected = None, title: Title = "") -> Outcome:
        """Submit predictions for a holdout. This uses up some of it; the same call again is free."""
        table = Table(predictions.encode(), CSV)
        return outcome_of(holdouts.submit(holdout, table, expected=expected, title=title))

    @server.tool(annotations=_ASKS)
    def compare(holdout: Holdout, predictions: Text, expected: Gain = None, title: Title = "") -> Outcome:
        """Ask whether predictions are better than your incumbent. Better ones replace it; the first are free."""
        table = Table(predictions.encode(), CSV)
        return outcome_of(holdouts.compare(holdout, table, expected=expected, title=title))


def _add_for_files(server: MCPServer[Any], holdouts: Holdouts, read_file: Callable[[str], Table]) -> None:
    """Add the tools that take predictions as text, or as the name of a file."""

    def taken(predictions: str, file: str) -> Table:
        if bool(predictions) == bool(file):
            raise ServiceRefused("bad_request", expected="one of predictions and file")
        return read_file(file) if file else Table(predictions.encode(), CSV)

    @server.tool(annotations=_ASKS)
    def submit(
        holdout: Holdout, predictions: Text = "", file: Path = "", expected: Expected = None, title: Title = ""
    ) -> Outcome:
        """Submit predictions for a holdout. This uses up some of it; the same call again is free."""
        return outcome_of(holdouts.submit(holdout, taken(predictions, file), expected=expected, title=title))

    @server.tool(annotations=_ASKS)
    def compare(
        holdout: Holdout, predictions: Text = "", file: Path = "", expected: Gain = None, title: Title = ""
    ) -> Outcome:
        """Ask whether predictions are better than your incumbent. Better ones replace it; the first are free."""
        return outcome_of(holdouts.compare(holdout, taken(predictions, file), expected=expected, title=title))
