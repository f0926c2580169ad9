"""The OpenAPI document says what is served, and what it says holds for any request."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from explored import HERE, PORT, TOKEN
from hcdv.apps.explorer.openapi import document
from hcdv.apps.explorer.routes import ROUTES

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance,
    response_schema_conformance,
]  # fmt: skip
FEW = settings(
    max_examples=8, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
HEADERS = {
    "cookie": f"hcdv-explore-{PORT}={TOKEN}",
    "origin": HERE,
    "host": f"127.0.0.1:{PORT}",
}


def test_every_route_is_in_the_document():
    paths = document()["paths"]
    assert {f"{route.path}.json" for route in ROUTES} <= paths.keys()
    for about in paths.values():
        for operation in about.values():
            assert operation["summary"]
            assert all(each["description"] for each in operation.get("parameters", []))


def test_what_is_served_is_what_the_document_names(asking):
    client = asking("shop").client
    assert client.get("/openapi.json").json() == document()
    for path in document()["paths"]:
        assert client.get(path).status_code in (200, 400, 404), path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", ["shop", "clicks.hcdv"])
def test_the_document_holds_for_any_request(asking, shop, run):
    schema = schemathesis.openapi.from_dict(document())
    schema.app = asking(shop if run == "shop" else run).client.app
    answers: list[int] = []
    for operation in schema.get_all_operations():

        @FEW
        @given(case=operation.ok().as_strategy())
        def holds(case):
            answer = case.call(base_url=HERE, headers=HEADERS)
            case.validate_response(answer, checks=CHECKS)
            answers.append(answer.status_code)

        holds()
    assert len(answers) > 50
    assert answers.count(200) > 20
    assert set(answers) <= {200, 400, 404}
