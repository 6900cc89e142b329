"""Server of the Model Context Protocol. Its tools return answers and the texts of refusals, and nothing else."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import anyio.to_thread
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import AnyHttpUrl, Field, ValidationError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Route

from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.client.development import OpenRecords, correction
from thresholdout.client.tables import CSV, PARQUET, Table
from thresholdout.errors import InputError
from thresholdout.service.agents.holdouts import ServiceHoldouts
from thresholdout.service.refusals import REFUSALS, ServiceRefused, details_of
from thresholdout.service.schemas import Principal

if TYPE_CHECKING:
    import pandas as pd
    from mcp.server.auth.provider import TokenVerifier
    from mcp.server.mcpserver.context import Context
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from thresholdout.client.received import Holdout as Received
    from thresholdout.client.received import Submission as ReceivedSubmission
    from thresholdout.service.agents.holdouts import Holdouts, Service
    from thresholdout.service.schemas import Holdout, Submission

__all__ = [
    "Folder",
    "HoldoutLine",
    "HoldoutStatus",
    "MountedServer",
    "Outcome",
    "line_of",
    "make_server",
    "mounted_server",
    "outcome_of",
    "refusal_of",
    "status_of",
]

# Name of a holdout, and the open records beside it.
Development: TypeAlias = tuple[str, OpenRecords]

_KINDS = {".csv": CSV, ".parquet": PARQUET}


class Folder:
    """A folder of tables; files of more than `most_bytes` are refused."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._root = path.resolve(strict=True)
        self._most = most_bytes

    def read(self, name: str) -> Table:
        """Read a table of the folder; links out of it and irregular files count as not found."""
        try:
            path = (self._root / name).resolve(strict=True)
            if not path.is_relative_to(self._root):
                raise ServiceRefused("not_found")
            return self._opened(path)
        except (OSError, ValueError):
            raise ServiceRefused("not_found") from None

    def _opened(self, path: Path) -> Table:
        kind = _KINDS.get(path.suffix.lower())
        if kind is None:
            raise ServiceRefused("unsupported", expected=", ".join(_KINDS))
        # A link that replaced the file is not followed, and a pipe does not block.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ServiceRefused("not_found")
            content = file.read(self._most + 1)
        if len(content) > self._most:
            raise ServiceRefused("too_large", most_bytes=self._most)
        return Table(content, kind)


@dataclass(frozen=True)
class HoldoutLine:
    """A holdout in a list."""

    name: str
    title: str
    metric: str
    better: Literal["higher", "lower"]
    feedback: str
    phase: str
    records: int | None


@dataclass(frozen=True)
class HoldoutStatus:
    """A holdout: its guarantee and its remaining budget."""

    name: str
    title: str
    metric: str
    better: Literal["higher", "lower"]
    feedback: str
    phase: str
    records: int | None
    confidence: float | None
    estimand: str
    promise: str
    asked: int | None
    remaining: int | None
    quota: int | None
    quota_days: float | None
    notes: list[str]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a submission; `says` is the same in words."""

    id: str
    number: int
    name: str
    kind: str
    state: str
    says: str
    value: float | None
    low: float | None
    high: float | None
    verdict: str | None
    repeated: bool


def line_of(holdout: Holdout | Received) -> HoldoutLine:
    """Return the list entry of a holdout."""
    return HoldoutLine(
        holdout.name,
        holdout.title,
        holdout.metric,
        "higher" if holdout.greater_is_better else "lower",
        holdout.feedback,
        holdout.phase,
        holdout.records,
    )


def status_of(holdout: Holdout | Received) -> HoldoutStatus:
    """Return the status of a holdout."""
    return HoldoutStatus(
        holdout.name,
        holdout.title,
        holdout.metric,
        "higher" if holdout.greater_is_better else "lower",
        holdout.feedback,
        holdout.phase,
        holdout.records,
        holdout.confidence,
        holdout.estimand,
        holdout.promise,
        holdout.asked,
        holdout.remaining,
        holdout.quota,
        holdout.quota_days,
        list(holdout.notes),
    )


def outcome_of(submission: Submission | ReceivedSubmission) -> Outcome:
    """Return the outcome of a submission.

    Examples
    --------
    >>> from thresholdout.service.schemas import Submission
    >>> shown = Submission("s1", "digits", "ann", "", "score", "answered", 0.0, low=0.861, high=0.912)
    >>> outcome_of(shown).says
    'The true score is certified to be between 0.861 and 0.912.'
    """
    return Outcome(
        submission.id,
        submission.number,
        submission.name,
        submission.kind,
        submission.state,
        _says(submission),
        submission.value,
        submission.low,
        submission.high,
        submission.verdict,
        submission.repeated,
    )


_VERDICTS = {
    "better": "Better than the champion, which it replaces.",
    "worse": "Worse than the champion, which stays.",
    "not settled": "Not certified to be better than the champion, which stays.",
    "first": "There was no champion: this is the first one. It was not judged.",
}
_JUDGED_BEFORE = {
    "better": "Judged before: better than the champion of that time, which it replaced then.",
    "worse": "Judged before: worse than the champion of that time.",
    "not settled": "Judged before: not certified to be better than the champion of that time.",
    "first": "Sent before: there was no champion at that time, and it became the first one.",
}
_STATES = {
    "running": "Not answered yet. The same call again finds the answer, and is charged once.",
    "interrupted": "The service stopped. The same call again finishes it, and is charged once.",
    "hidden": "Taken. What came of it is shown when the blind phase ends.",
}


def _says(submission: Submission | ReceivedSubmission) -> str:
    if submission.state == "refused":
        return REFUSALS[submission.refusal if submission.refusal in REFUSALS else "unavailable"].text
    if submission.state in _STATES:
        return _STATES[submission.state]
    if submission.verdict in _VERDICTS:
        return (_JUDGED_BEFORE if submission.repeated else _VERDICTS)[submission.verdict]
    if submission.low is not None and submission.high is not None:
        low, high = shown_below(submission.low, 6), shown_above(submission.high, 6)
        return f"The true score is certified to be between {low} and {high}."
    if submission.value is not None:
        return f"The best so far is {submission.value:.6g}."
    return "Answered."


def refusal_of(refused: ServiceRefused) -> dict[str, Any]:
    """Return a refusal as an agent reads it: the text of its code, and its short details.

    Examples
    --------
    >>> refusal_of(ServiceRefused("quota", retry_after=60, limit=20))["text"]
    'This team has used its submissions. Nothing was charged.'
    """
    details = {str(name): value for name, value in refused.details.items() if _is_short(value)}
    said: dict[str, Any] = {"code": refused.code, "text": REFUSALS[refused.code].text, "details": details}
    if refused.retry_after is not None:
        said["retry_after"] = refused.retry_after
    return said


def _is_short(value: object) -> bool:
    """Return whether a detail is a number or one short line of text."""
    if isinstance(value, str):
        return len(value) <= 200 and value.isprintable()
    return value is None or isinstance(value, bool | int | float)


_log: Final = logging.getLogger("thresholdout.service")

INSTRUCTIONS: Final = """\
Holdouts with hidden labels. Submit predictions for all records of a holdout. The answer is an interval that holds with
the stated confidence together with all others, or a verdict against your champion. The same predictions again are free
and get their first answer; a verdict is about the champion of that time. Your champion is your last submission that was
better, or your first one. A refused submission is not charged. Do not retry when a refusal says that the budget or the
allowance is used.
"""

HoldoutName = Annotated[str, Field(description="The holdout's name, from list_holdouts.")]
Text = Annotated[
    str,
    Field(description="Predictions as CSV: the id column, and 'prediction' (or 'p_<class>' columns), for all records."),
]
FileName = Annotated[
    str, Field(description="Name of a .csv or .parquet file of predictions in the folder that the server may read.")
]
Expected = Annotated[
    float | None,
    Field(description="Your anticipated score, such as a cross-validated one. A good one makes narrow intervals."),
]
Gain = Annotated[float | None, Field(description="The anticipated difference of the scores.")]
Title = Annotated[str, Field(description="Name in the history.", max_length=100)]
After = Annotated[int, Field(description="'number' of the last known submission.", ge=0)]
Count = Annotated[int, Field(description="Maximum number.", ge=1, le=1000)]

# Hints of the protocol: a query changes the budget, but the same one again does not.
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ASKS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


class _Server(MCPServer[Any]):
    """A server whose tools report errors as refusals alone."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None) -> Any:
        """Call a tool, and replace an error that it raises by a refusal."""
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
    """Return the refusal for an error; log the kind and place of an unexpected one, without its message."""
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
    development: Development | None = None,
) -> MCPServer[Any]:
    """Return a server with the tools `list_holdouts`, `status`, `submit`, `compare` and `my_history`.

    With open records beside a holdout there is `development_score` too, and predictions are about both.
    """
    server = _Server("thresholdout", instructions=INSTRUCTIONS, auth=auth, token_verifier=verifier, log_level="WARNING")

    @server.tool(annotations=_READS)
    def list_holdouts() -> list[HoldoutLine]:
        """List the holdouts that you may query."""
        return [line_of(one) for one in holdouts.all()]

    @server.tool(annotations=_READS)
    def status(holdout: HoldoutName) -> HoldoutStatus:
        """Return a holdout's estimand, guarantee and remaining budget."""
        return status_of(holdouts.one(holdout))

    @server.tool(annotations=_READS)
    def my_history(holdout: HoldoutName, after: After = 0, count: Count = 20) -> list[Outcome]:
        """List your own submissions to a holdout, with their outcomes."""
        return [outcome_of(one) for one in holdouts.history(holdout, after, count)]

    if read_file is None:
        _add_for_texts(server, holdouts, development)
    else:
        _add_for_files(server, holdouts, read_file, development)
    if development is not None:
        _add_development(server, development, read_file)
    return server


def _opened(development: Development | None, holdout: str, table: Table) -> tuple[float | None, Table]:
    """Return the score on the open records beside a holdout, and the rest of a table."""
    if development is None or holdout != development[0]:
        return None, table
    try:
        return development[1].scored(table)
    except InputError as error:
        raise ServiceRefused("bad_request", **details_of(error)) from None


def _submitted(
    holdouts: Holdouts, development: Development | None, holdout: str, table: Table, expected: float | None, title: str
) -> Outcome:
    """Submit predictions; the development score is the anticipated score that the holdout accepts or corrects."""
    score, table = _opened(development, holdout, table)
    found = holdouts.submit(holdout, table, expected=score if expected is None else expected, title=title)
    outcome = outcome_of(found)
    says = "" if score is None else correction(holdouts.one(holdout), found, score)
    return replace(outcome, says=f"{outcome.says} {says}") if says else outcome


def _add_development(
    server: MCPServer[Any], development: Development, read_file: Callable[[str], Table] | None
) -> None:
    """Add the tool that scores open records."""

    def score_of(holdout: str, table: Table) -> float:
        score, _ = _opened(development, holdout, table)
        if score is None:
            raise ServiceRefused("bad_request", expected=f"{development[0]}, which has a development part")
        return score

    about = "Return the exact score on the open records. Free: improve on it, and submit the best."
    if read_file is None:

        @server.tool(annotations=_READS, description=about)
        def development_score(holdout: HoldoutName, predictions: Text) -> float:
            return score_of(holdout, Table(predictions.encode(), CSV))
    else:

        @server.tool(annotations=_READS, description=about, name="development_score")
        def development_score_of_file(holdout: HoldoutName, predictions: Text = "", file: FileName = "") -> float:
            return score_of(holdout, _taken(predictions, file, read_file))


def _add_for_texts(server: MCPServer[Any], holdouts: Holdouts, development: Development | None) -> None:
    """Add the tools that take predictions as text."""

    @server.tool(annotations=_ASKS)
    def submit(holdout: HoldoutName, predictions: Text, expected: Expected = None, title: Title = "") -> Outcome:
        """Submit predictions for a holdout. This uses up some of it; the same call again is free."""
        return _submitted(holdouts, development, holdout, Table(predictions.encode(), CSV), expected, title)

    @server.tool(annotations=_ASKS)
    def compare(holdout: HoldoutName, predictions: Text, expected: Gain = None, title: Title = "") -> Outcome:
        """Ask whether predictions are better than your champion. Better ones replace it; the first are free."""
        _, table = _opened(development, holdout, Table(predictions.encode(), CSV))
        return outcome_of(holdouts.compare(holdout, table, expected=expected, title=title))


def _add_for_files(
    server: MCPServer[Any],
    holdouts: Holdouts,
    read_file: Callable[[str], Table],
    development: Development | None,
) -> None:
    """Add the tools that take predictions as text, or as the name of a file."""

    @server.tool(annotations=_ASKS)
    def submit(
        holdout: HoldoutName, predictions: Text = "", file: FileName = "", expected: Expected = None, title: Title = ""
    ) -> Outcome:
        """Submit predictions for a holdout. This uses up some of it; the same call again is free."""
        return _submitted(holdouts, development, holdout, _taken(predictions, file, read_file), expected, title)

    @server.tool(annotations=_ASKS)
    def compare(
        holdout: HoldoutName, predictions: Text = "", file: FileName = "", expected: Gain = None, title: Title = ""
    ) -> Outcome:
        """Ask whether predictions are better than your champion. Better ones replace it; the first are free."""
        _, table = _opened(development, holdout, _taken(predictions, file, read_file))
        return outcome_of(holdouts.compare(holdout, table, expected=expected, title=title))


def _taken(predictions: str, file: str, read_file: Callable[[str], Table]) -> Table:
    if bool(predictions) == bool(file):
        raise ServiceRefused("bad_request", expected="one of predictions and file")
    return read_file(file) if file else Table(predictions.encode(), CSV)


PATH: Final = "/mcp"

# Bytes of one call; larger tables come over HTTP.
MOST_BYTES: Final = 4 * 2**20

# Seconds within which a call has to arrive.
_PATIENCE: Final = 60.0

# One API token has at most this part of all concurrent calls.
_PART_OF_ONE: Final = 4


@dataclass(frozen=True, slots=True)
class MountedServer:
    """The route of the server, and the context that an HTTP application enters once while it runs."""

    route: Route
    running: Callable[[], AbstractAsyncContextManager[None]]


class _Tokens:
    """Adapter of the service's API tokens to the protocol's library."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the holder of an API token; the token's text is not passed on."""
        try:
            by = await anyio.to_thread.run_sync(self._service.authenticate, token)
        except ServiceRefused:
            return None
        return AccessToken(token=by.token, client_id=by.token, scopes=[], claims={"role": by.role, "team": by.team})


def _who() -> Principal:
    """Return the caller of a tool."""
    token = get_access_token()
    if token is None or token.claims is None:
        raise ServiceRefused("no_token")
    return Principal(token.client_id, token.claims["role"], token.claims["team"])


class _Bounded:
    """Limit concurrent calls to `most`, and those of one API token to a part of them; refuse others as busy."""

    def __init__(self, application: ASGIApp, most: int) -> None:
        self._application = application
        self._most = most
        self._of_one = max(1, most // _PART_OF_ONE)
        self._now: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = Headers(scope=scope).get("authorization", "")
        if self._now.total() >= self._most or self._now[key] >= self._of_one:
            busy = ServiceRefused("busy")
            body = {"code": busy.code, "text": str(busy), "details": {}}
            await JSONResponse(body, busy.status, headers={"Retry-After": "1"})(scope, receive, send)
            return
        self._now[key] += 1
        try:
            await self._application(scope, _in_time(receive), send)
        finally:
            self._now[key] -= 1
            if not self._now[key]:
                del self._now[key]


def _in_time(receive: Receive) -> Receive:
    """Return a receiver for a body that has to arrive in time; a late one counts as disconnected."""
    end = asyncio.get_running_loop().time() + _PATIENCE
    complete = False

    async def received() -> Message:
        nonlocal complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(end):
                message = await receive()
        except TimeoutError:
            message = {"type": "http.disconnect"}
        complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return received


def mounted_server(
    service: Service, read: Callable[[bytes, str], pd.DataFrame], *, most_at_once: int = 64
) -> MountedServer:
    """Return the address ``/mcp`` of a service.

    No state is kept between calls, so any of several processes may answer, and there is no stream to listen to.
    Every call needs a token, so pages of other sites that reach this address by DNS rebinding get nothing.
    """
    auth = AuthSettings(issuer_url=AnyHttpUrl("http://127.0.0.1"), resource_server_url=None)
    server: Any = make_server(ServiceHoldouts(service, _who, read), auth=auth, verifier=_Tokens(service))
    application = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MOST_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return MountedServer(
        Route(PATH, endpoint=_Bounded(application, most_at_once), methods=["POST"]), server.session_manager.run
    )
