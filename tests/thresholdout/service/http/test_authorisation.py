"""Who may do what at every address: a table of address, role and owner, filled in by hand."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import for_each
from tests.thresholdout.service.http.applications import Calls, csv, opened, settings_form

WHO = ("", "viewer", "bob", "ann", "admin")
"""A visitor, a viewer, another team, the team whose submission it is, an administrator."""

TABLE = {"Content-Type": "text/csv", "Idempotency-Key": "k"}
PERMITTED = {
    # address: a status for each of WHO
    ("GET", "/live"): (200, 200, 200, 200, 200),
    ("GET", "/ready"): (200, 200, 200, 200, 200),
    ("GET", "/metrics"): (401, 200, 403, 403, 200),
    ("GET", "/v1/receipt-key"): (200, 200, 200, 200, 200),
    ("GET", "/v1/tokens"): (401, 403, 403, 403, 200),
    ("POST", "/v1/tokens"): (401, 403, 403, 403, 201),
    ("DELETE", "/v1/tokens/{id}"): (401, 403, 403, 403, 404),
    ("GET", "/v1/holdouts"): (200, 200, 200, 200, 200),
    ("POST", "/v1/holdouts"): (401, 403, 403, 403, 201),
    ("GET", "/v1/holdouts/{name}"): (404, 200, 200, 200, 200),
    ("GET", "/v1/holdouts/{name}/certificate"): (404, 200, 200, 200, 200),
    ("GET", "/v1/holdouts/{name}/remaining"): (404, 200, 200, 200, 200),
    ("GET", "/v1/holdouts/{name}/checkpoint"): (404, 200, 200, 200, 200),
    ("GET", "/v1/holdouts/{name}/leaderboard"): (404, 200, 200, 200, 200),
    ("GET", "/v1/holdouts/{name}/export"): (401, 403, 403, 403, 200),
    ("PUT", "/v1/holdouts/{name}/phase"): (401, 403, 403, 403, 200),
    ("POST", "/v1/holdouts/{name}/corrections"): (401, 403, 403, 403, 200),
    ("GET", "/v1/holdouts/{name}/submissions"): (401, 403, 200, 200, 200),
    ("GET", "/v1/holdouts/{name}/submissions/{id}"): (401, 403, 404, 200, 200),
    ("POST", "/v1/holdouts/{name}/submissions"): (401, 403, 200, 200, 403),
    ("POST", "/v1/holdouts/{name}/comparisons"): (401, 403, 200, 200, 403),
    ("POST", "/v1/holdouts/{name}/evaluate"): (401, 403, 200, 200, 403),
}
PUBLIC = {
    f"/v1/holdouts/{{name}}{part}": 200 for part in ("", "/certificate", "/remaining", "/checkpoint", "/leaderboard")
}
"""What a visitor sees of a holdout that is public."""


@pytest.fixture(scope="module", params=[False, True], ids=["private", "public"])
def calls(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calls]:
    with opened(tmp_path_factory.mktemp("leaderboard"), public=request.param) as found:
        yield found


@pytest.mark.slow
@for_each(("method", "path"), PERMITTED, ids=lambda part: str(part))
def test_address_by_role_and_owner(calls: Calls, method: str, path: str) -> None:
    public = calls.service.holdouts(calls.service.authenticate(None)) != []
    own = calls.submit("ann", csv(), "own").json()["id"]
    for who, status in zip(WHO, PERMITTED[method, path], strict=True):
        answer = calls(who, method, path.format(name="cells", id=own), **_body(method, path, who))
        expected = PUBLIC[path] if not who and public and path in PUBLIC else status
        assert answer.status_code == expected, (who, answer.text)
        if expected >= 400:
            assert set(answer.json()) == {"code", "text", "details"}
        if who in ("", "viewer", "bob"):
            assert own not in answer.text


def _body(method: str, path: str, who: str) -> dict[str, Any]:
    if path.endswith(("submissions", "comparisons")) and method == "POST":
        return {"content": csv(), "headers": TABLE | {"Idempotency-Key": path[-11:]}}
    bodies: dict[tuple[str, str], dict[str, Any]] = {
        ("POST", "/v1/holdouts/{name}/evaluate"): {"json": {"candidate": csv().decode()}},
        ("POST", "/v1/holdouts/{name}/corrections"): {
            "content": b"id,label\nr400,1\n",
            "headers": {"Content-Type": "text/csv"},
            "params": {"reason": "a date that was fixed", "basis": "public"},
        },
        ("POST", "/v1/tokens"): {"json": {"role": "team", "team": "eve"}},
        ("POST", "/v1/holdouts"): {"files": settings_form("other", "o")},
        ("PUT", "/v1/holdouts/{name}/phase"): {"json": {"phase": "open"}},
    }
    return bodies.get((method, path), {})


def test_the_table_has_all_addresses(calls: Calls) -> None:
    document = calls("", "GET", "/v1/openapi.json").json()
    found = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert found == set(PERMITTED)


def test_the_document_says_where_no_key_is_needed(calls: Calls) -> None:
    document = calls("", "GET", "/v1/openapi.json").json()
    open_to_all = {
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if {} in operation.get("security", [{}])
    }
    permitted = {address for address, statuses in PERMITTED.items() if statuses[0] == 200 or address[1] in PUBLIC}
    assert open_to_all == permitted
    assert document["components"]["securitySchemes"] == {
        "token": {"type": "http", "scheme": "bearer", "description": "An API token, as the service printed it once."}
    }


@pytest.mark.slow
def test_a_revoked_key_may_do_nothing(calls: Calls) -> None:
    key = calls("admin", "POST", "/v1/tokens", json={"role": "admin"}).json()
    calls.keys["former"] = key["text"]
    calls("admin", "DELETE", f"/v1/tokens/{key['token']['id']}")
    for method, path in PERMITTED:
        if path not in ("/live", "/ready", "/v1/receipt-key"):
            answer = calls("former", method, path.format(name="cells", id="x"), **_body(method, path, "former"))
            assert answer.status_code == 401, (method, path)
