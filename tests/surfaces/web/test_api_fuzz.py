"""The API against its own description: whatever schemathesis makes up is answered, or refused, as described."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import requests
import schemathesis
import urllib3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from requests.adapters import HTTPAdapter
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from web_client import WebClient, make_kettle, open_kettle

from outcrop.surfaces.web.api.operations import OPERATIONS

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]


BASE = "http://127.0.0.1:8719"


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebClient]:
    with open_kettle(make_kettle(tmp_path_factory.mktemp("fuzz") / "kettle")) as index:
        yield WebClient(index)


@pytest.fixture(scope="module")
def schema(ask: WebClient) -> Any:
    return schemathesis.openapi.from_dict(ask("/ext/api/openapi.json").json)


def send(ask: WebClient, case: Any) -> requests.Response:
    """Send a case to the application, without a server in between."""
    kwargs = case.as_transport_kwargs(base_url=BASE)
    names = ("method", "url", "params", "headers")
    request = requests.Request(**{name: kwargs.get(name) for name in names}).prepare()
    assert request.url is not None
    answer = ask(unquote(urlsplit(request.url).path) + "?" + urlsplit(request.url).query)
    raw = urllib3.HTTPResponse(io.BytesIO(answer.body), answer.headers, answer.status, preload_content=False)
    response = HTTPAdapter().build_response(request, raw)
    assert response.content == answer.body
    return response


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_as_described(ask: WebClient, schema: Any, name: str, mode: GenerationMode) -> None:
    operation = schema[f"/ext/api/{name}"]["GET"]
    if mode is GenerationMode.NEGATIVE and not OPERATIONS[name].schema["properties"]:
        return
    codes: list[int] = []

    @given(st.data())
    @settings(max_examples=25, database=None, suppress_health_check=list(HealthCheck))
    def fuzz(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))
        response = send(ask, case)
        # schemathesis does not know that an address which is too long (414) is refused, too.
        refuses = mode is GenerationMode.NEGATIVE and response.status_code != 414
        case.validate_response(response, checks=[*CHECKS, negative_data_rejection] if refuses else CHECKS)
        codes.append(response.status_code)

    fuzz()
    if mode is GenerationMode.POSITIVE and name != "passage":
        assert 200 in codes
    else:
        # Nobody guesses a path.
        assert any(400 <= code < 500 for code in codes)
