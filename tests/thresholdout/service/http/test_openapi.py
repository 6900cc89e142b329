"""The OpenAPI document, and requests that a program makes of it."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.python import asgi
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.thresholdout.service.http.applications import Calls, opened
from thresholdout.service.limits import Limits
from thresholdout.service.refusals import REFUSALS

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


@schemathesis.serializer("text/csv", "application/vnd.apache.parquet")
def as_it_is(_: Any, value: Any) -> Any:
    """Tables are sent as they are made."""
    return {"data": value if isinstance(value, bytes) else str(value).encode()}


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calls]:
    limits = Limits(failures_per_hour=10**6, wait=1.0)
    with opened(tmp_path_factory.mktemp("leaderboard"), limits=limits, public=True) as found:
        yield found


@pytest.fixture(scope="module")
def document(calls: Calls) -> dict[str, Any]:
    found: dict[str, Any] = calls("", "GET", "/v1/openapi.json").json()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


@pytest.mark.slow
def test_every_status_and_body_is_described(document: dict[str, Any]) -> None:
    names = set()
    for name, operation in operations(document):
        names.add(operation["operationId"])
        assert operation["summary"], name
        assert operation["description"], name
        assert "422" not in operation["responses"], name
        for status, response in operation["responses"].items():
            assert response["description"], (name, status)
            if status in ("429", "503") and "/ready" not in name:
                assert "Retry-After" in response["headers"], (name, status)
            if int(status) >= 400 and "/ready" not in name:
                assert response["content"]["application/json"]["schema"]["$ref"].endswith("/Refused"), (name, status)
        if "requestBody" in operation:
            assert operation["requestBody"]["content"], name
            assert {"400", "413"} <= set(operation["responses"]) or "json" in str(operation["requestBody"]), name
    assert len(names) == len(list(operations(document)))


def test_refusals_are_described_by_their_texts(document: dict[str, Any]) -> None:
    submit = document["paths"]["/v1/holdouts/{name}/submissions"]["post"]["responses"]
    for code in ("quota", "rate", "allowance", "exhausted"):
        assert REFUSALS[code].text in submit["429"]["description"]
    assert REFUSALS["key_used"].text in submit["409"]["description"]
    assert submit["202"]["headers"].keys() == {"Location", "Retry-After"}


def test_the_document_refers_to_what_it_has(document: dict[str, Any]) -> None:
    def references(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            yield from [part["$ref"]] if "$ref" in part else []
            for value in part.values():
                yield from references(value)
        elif isinstance(part, list):
            for value in part:
                yield from references(value)

    found = {reference.removeprefix("#/components/schemas/") for reference in references(document)}
    assert found == set(document["components"]["schemas"])


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
def test_requests_of_a_program_are_answered_as_documented(calls: Calls, mode: GenerationMode) -> None:
    app: Any = calls.client.app

    async def running(scope: Any, receive: Any, send: Any) -> None:
        """The application, which runs already: it neither begins nor ends with each request."""
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})

    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", running)
    operations = [cast(Any, found).ok() for found in schema.get_all_operations()]
    with asgi.get_client(running) as session:
        tried = [
            try_operation(session, operation, mode, calls.keys[who])
            for operation in operations
            for who in ("admin", "ann")
        ]
    assert sum(tried) >= len(operations)
    assert calls("", "GET", "/ready").json() == {"status": "ok"}


def try_operation(session: Any, operation: Any, mode: GenerationMode, key: str) -> int:
    """Send requests that are made of the document, check the answers, and return how many there were."""
    tried = 0

    @settings(
        max_examples=8,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        nonlocal tried
        tried += 1
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {key}"}
        case.validate_response(case.call(session=session), checks=CHECKS)

    with suppress(Unsatisfiable):  # where there is nothing that could be invalid
        check()
    return tried
