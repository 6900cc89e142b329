"""HTTP client of a service of holdouts; every call may be repeated, and none is charged twice."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote

from thresholdout.client.errors import ServiceError, ServiceUnavailable, refusal
from thresholdout.client.received import (
    Holdout,
    Leaderboard,
    Submission,
    holdout_of,
    leaderboard_of,
    submission_of,
)
from thresholdout.client.tables import Table, as_table, content_key, options_of
from thresholdout.errors import InputError, ThresholdoutError

if TYPE_CHECKING:
    import httpx
    import pandas as pd

__all__ = ["AGAIN", "Attempts", "Client", "RetryPolicy", "seconds_of"]

# Codes after which the same request may succeed soon; other refusals last long, or are permanent.
AGAIN: Final = frozenset({"", "busy", "stopping", "unavailable", "rate", "too_slow"})


def seconds_of(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After; this service sends no dates."""
    said = headers.get("retry-after", "").strip()
    return float(said) if said.isascii() and said.isdigit() and len(said) < 10 else None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of the repeated attempts of a call.

    Notes
    -----
    No pause begins that would end more than `seconds` after the first attempt. The first pause lasts at most `first`
    seconds, and each further one twice as long as the one before, up to `longest`. Half of each is random, so that
    clients that failed together do not return together. `pause` and `clock` replace the system's time.
    """

    seconds: float = 60.0
    first: float = 0.2
    longest: float = 10.0
    pause: Callable[[float], object] = field(default=time.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)


class Attempts:
    """The attempts of one call."""

    def __init__(self, patience: RetryPolicy) -> None:
        self._patience = patience
        self._end = patience.clock() + patience.seconds
        self._next = patience.first

    def waited(self, asked: float | None) -> bool:
        """Pause before the next attempt, at least for the requested time; return False at once when there is none."""
        # Random pauses spread clients that failed together.
        length = self._next * random.uniform(0.5, 1.0)
        self._next = min(2.0 * self._next, self._patience.longest)
        if asked is not None:
            length = max(length, asked)
        if self._patience.clock() + length > self._end:
            return False
        self._patience.pause(length)
        return True


# Seconds for which a service is asked to hold a request until it has the answer.
_HELD = 10.0


class Client:
    """Query the holdouts of an evaluation service over HTTP, with retries that are never charged twice.

    An evaluation service keeps the labels of a holdout and scores the predictions that teams submit. This client
    lists the holdouts, submits predictions, and reads submissions and leaderboards on behalf of the owner of an API
    token. It can be used as a context manager, which closes the connections at the end.

    A call that fails in transit, or finds the service busy or stopping, is repeated after growing pauses, and no
    sooner than the service requests. Repetition is safe: by default, the Idempotency-Key of a submission is made
    from its content. A second request, or the same program after a crash, receives the answer to the first and is
    charged nothing.

    Parameters
    ----------
    url : str
        Address of the service, such as ``http://127.0.0.1:8000``.
    token : str, optional
        API token that identifies the team. If None, only public holdouts and their leaderboards are visible.
    patience : float or RetryPolicy, default 60
        Number of seconds for which a failed call is repeated. A `RetryPolicy` also sets the length of the pauses.
    timeout : float, default 30
        Number of seconds without a response after which an attempt counts as failed. The 10 seconds for which the
        service may hold a request are added.
    transport : httpx.BaseTransport, optional
        Transport of the requests, such as a mock in tests. If None, the default transport of httpx is used.

    Raises
    ------
    InputError
        If `url` does not begin with ``http://`` or ``https://``, or `token` is not an API token.
    ThresholdoutError
        If the library httpx is not installed.

    Examples
    --------
    >>> import httpx
    >>> def service(request):
    ...     return httpx.Response(200, json={"id": "s1", "state": "answered", "low": 0.86, "high": 0.91})
    >>> import pandas as pd
    >>> predictions = pd.DataFrame({"id": [1, 2], "prediction": [0, 1]})
    >>> with Client("http://127.0.0.1:8000", "tho_...", transport=httpx.MockTransport(service)) as client:
    ...     answer = client.submit("digits", predictions, expected=0.9)
    >>> answer.state, answer.low, answer.high
    ('answered', 0.86, 0.91)
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience: float | RetryPolicy = 60.0,
        timeout: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError("url", repr(url), "an address that begins with http:// or https://")
        self._patience = patience if isinstance(patience, RetryPolicy) else RetryPolicy(patience)
        self._timeout = timeout
        headers = {"Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {_token(token)}"
        self._http = _httpx().Client(base_url=url.rstrip("/"), headers=headers, timeout=timeout, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the service. The client cannot be used afterwards."""
        self._http.close()

    def holdouts(self) -> list[Holdout]:
        """Return the holdouts that this API token may see.

        Returns
        -------
        list of Holdout
            One object for each holdout, with its `name`, `metric`, `phase` and remaining budget.

        Raises
        ------
        TokenRefused
            If the API token is unknown or was revoked.
        ServiceUnavailable
            If the service could not be reached before the retry policy ended.
        """
        return [holdout_of(one) for one in _listed(self._get("/v1/holdouts"), "holdouts")]

    def status(self, holdout: str) -> Holdout:
        """Return the description of one holdout, with its guarantee and its remaining budget.

        Parameters
        ----------
        holdout : str
            Name of the holdout, as listed by `holdouts`.

        Returns
        -------
        Holdout
            Description of the holdout. `promise` states the guarantee of the intervals in words, and `remaining` is
            the number of queries left.

        Raises
        ------
        NothingThere
            If there is no such holdout, or this API token may not see it.
        """
        return holdout_of(self._get(_address(holdout)))

    def submit(
        self,
        holdout: str,
        predictions: pd.DataFrame | str | Path | Table,
        *,
        expected: float | None = None,
        title: str = "",
        wait: float = 60.0,
        key: str | None = None,
    ) -> Submission:
        """Submit predictions for a holdout, and wait for their score.

        The service scores the predictions on its secret labels and charges the team for one submission. To compare
        predictions with the team's champion instead, use `compare`.

        Parameters
        ----------
        holdout : str
            Name of the holdout, as listed by `holdouts`.
        predictions : DataFrame, path or Table
            Table with the column of ids and either a column ``prediction`` or one column ``p_<class>`` for each
            class. It must cover every record of the holdout.
        expected : float, optional
            Score that the team anticipates, such as a cross-validated score.
        title : str, default ""
            Name that the team gives to the submission.
        wait : float, default 60
            Number of seconds to wait for the answer. A submission that is still running afterwards is returned as it
            is, and `submission` reads it later.
        key : str, optional
            Idempotency-Key of the request. If None, it is made from the content, so the same predictions with the
            same options are charged once.

        Returns
        -------
        Submission
            The submission. If its `state` is ``"answered"``, `value` holds the score and `low` and `high` its
            interval, as far as the holdout's feedback shows them.

        Raises
        ------
        ServiceError
            If the service refuses the submission. The subclass tells the kind of refusal. Refused submissions are not
            charged.
        """
        return self._ask("submissions", holdout, predictions, expected, title, wait, key)

    def compare(
        self,
        holdout: str,
        predictions: pd.DataFrame | str | Path | Table,
        *,
        expected: float | None = None,
        title: str = "",
        wait: float = 60.0,
        key: str | None = None,
    ) -> Submission:
        """Compare predictions with the team's champion, and wait for the verdict.

        The champion is the submission of the team that later ones are compared with. Predictions with the verdict
        ``"better"`` replace it. The first predictions of a team become its champion free of charge. The same
        predictions make the same request even after the champion has changed, and receive their first verdict again.
        Pass a new `key` to repeat the comparison as a new query.

        Parameters
        ----------
        holdout : str
            Name of the holdout, as listed by `holdouts`.
        predictions : DataFrame, path or Table
            Table with the column of ids and either a column ``prediction`` or one column ``p_<class>`` for each
            class. It must cover every record of the holdout.
        expected : float, optional
            Difference from the champion's score that the team anticipates.
        title : str, default ""
            Name that the team gives to the submission.
        wait : float, default 60
            Number of seconds to wait for the verdict. A comparison that is still running afterwards is returned as
            it is.
        key : str, optional
            Idempotency-Key of the request. If None, it is made from the content.

        Returns
        -------
        Submission
            The comparison, whose `verdict` is ``"better"``, ``"worse"``, ``"not settled"`` or, without a champion,
            ``"first"``.

        Raises
        ------
        ServiceError
            If the service refuses the comparison. The subclass tells the kind of refusal. Refused comparisons are not
            charged.
        """
        return self._ask("comparisons", holdout, predictions, expected, title, wait, key)

    def submission(self, holdout: str, id: str) -> Submission:
        """Return one submission in its present state.

        Use it to read the answer of a submission that was still running when `submit` or `compare` returned.

        Parameters
        ----------
        holdout : str
            Name of the holdout.
        id : str
            Identifier of the submission, its attribute `id`.

        Returns
        -------
        Submission
            The submission. Its property `done` is True once the service has decided.

        Raises
        ------
        NothingThere
            If there is no such submission, or this API token may not see it.
        """
        return submission_of(self._get(f"{_address(holdout)}/submissions/{quote(id, safe='')}"))

    def history(self, holdout: str, *, after: int = 0, count: int = 100) -> list[Submission]:
        """Return the team's own submissions, the oldest first.

        Long histories are read in pages: pass the `number` of the last submission of one page as `after` of the next.

        Parameters
        ----------
        holdout : str
            Name of the holdout.
        after : int, default 0
            Number of the last submission that is already known. Only later submissions are returned.
        count : int, default 100
            Maximum number of submissions to return.

        Returns
        -------
        list of Submission
            The submissions, an empty list if there are no further ones.
        """
        page = self._get(f"{_address(holdout)}/submissions", {"after": str(after), "count": str(count)})
        return [submission_of(one) for one in _listed(page, "submissions")]

    def leaderboard(self, holdout: str) -> Leaderboard:
        """Return the leaderboard of a holdout, as far as its ranks are certified.

        Parameters
        ----------
        holdout : str
            Name of the holdout.

        Returns
        -------
        Leaderboard
            The leaderboard. Each of its `rows` has a `team`, its possible ranks `first` to `last`, and the interval
            `low` to `high` of its best submission. Teams whose intervals overlap are tied.

        Raises
        ------
        NothingThere
            If there is no such holdout, or this API token may not see it.
        """
        return leaderboard_of(self._get(f"{_address(holdout)}/leaderboard"))

    def _ask(
        self,
        kind: str,
        holdout: str,
        predictions: pd.DataFrame | str | Path | Table,
        expected: float | None,
        title: str,
        wait: float,
        key: str | None,
    ) -> Submission:
        table = as_table(predictions)
        options = options_of(expected, title)
        headers = {
            "Content-Type": table.content_type,
            "Idempotency-Key": content_key(kind, holdout, table, options) if key is None else key,
            "Prefer": f"wait={int(min(wait, _HELD))}",
        }
        tries = Attempts(self._patience)
        deadline = Attempts(RetryPolicy(wait, pause=self._patience.pause, clock=self._patience.clock))
        while True:
            answer = self._carried("POST", f"{_address(holdout)}/{kind}", tries, options, headers, table.body)
            found = self._finished(holdout, submission_of(_read(answer)), deadline, seconds_of(answer.headers))
            if found.state != "interrupted" or not deadline.waited(None):
                return found

    def _finished(self, holdout: str, found: Submission, deadline: Attempts, asked: float | None) -> Submission:
        """Poll a submission until the service has decided, stops, or the deadline is over."""
        while found.state == "running" and deadline.waited(asked):
            path = f"{_address(holdout)}/submissions/{quote(found.id, safe='')}"
            answer = self._carried("GET", path, Attempts(self._patience))
            found, asked = submission_of(_read(answer)), seconds_of(answer.headers)
        return found

    def _get(self, path: str, options: Mapping[str, str] | None = None) -> Any:
        return _read(self._carried("GET", path, Attempts(self._patience), options))

    def _carried(
        self,
        method: str,
        path: str,
        tries: Attempts,
        options: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> httpx.Response:
        """Return the service's response, after as many attempts as the retry policy allows."""
        while True:
            try:
                answer: httpx.Response = self._http.request(
                    method,
                    path,
                    params=dict(options or {}),
                    headers=dict(headers or {}),
                    content=body,
                    timeout=self._timeout + _HELD,
                )
            except _httpx().TransportError as error:
                failed: ServiceError = ServiceUnavailable("", f"The service was not reached ({type(error).__name__}).")
            else:
                if answer.is_success:
                    return answer
                failed = _refused(answer)
            # Proxies answer with these statuses for a service that is down.
            again = failed.code in AGAIN and failed.status in (0, 408, 429, 502, 503, 504)
            if not again or not tries.waited(failed.retry_after):
                raise failed


def _refused(answer: httpx.Response) -> ServiceError:
    """Return the error of a response; only the status counts in one that is no service's, such as a proxy's."""
    after = seconds_of(answer.headers)
    try:
        sent = answer.json()
    except ValueError:
        sent = None
    if not isinstance(sent, Mapping) or not isinstance(sent.get("code"), str) or not isinstance(sent.get("text"), str):
        return refusal(answer.status_code, "", f"The service answered with status {answer.status_code}.", None, after)
    details = sent.get("details")
    return refusal(
        answer.status_code, sent["code"], sent["text"], details if isinstance(details, Mapping) else None, after
    )


def _read(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ServiceUnavailable("", "The service's answer must be JSON.") from None


def _listed(sent: Any, name: str) -> list[Any]:
    """Return the member of that name, a list."""
    found = sent.get(name) if isinstance(sent, Mapping) else None
    if not isinstance(found, list):
        raise ServiceUnavailable("", f"The service's answer must have a list of {name}.")
    return found


def _address(holdout: str) -> str:
    if not holdout:
        raise InputError("holdout", repr(holdout), "the name of a holdout")
    return f"/v1/holdouts/{quote(holdout, safe='')}"


def _token(token: str) -> str:
    text = token.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise InputError("token", "another text", "an API token as the service printed it")
    return text


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise ThresholdoutError("A client needs httpx: pip install 'thresholdout[client]'.") from None
    return httpx
