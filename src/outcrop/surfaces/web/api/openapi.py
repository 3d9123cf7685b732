"""The OpenAPI 3.1 description of the API, made from the operations that answer it."""

from __future__ import annotations

import json
from typing import Any

import outcrop
from outcrop.core.schema import Operation, Schema, describe_result
from outcrop.surfaces.web.api.operations import JSON, OPERATIONS
from outcrop.surfaces.web.http import Request, Response
from outcrop.surfaces.web.problems import PROBLEM

NAME = "openapi.json"

_ERRORS = {
    "400": "An argument is missing, unknown, mistyped or out of bounds, or names what does not exist.",
    "401": "A token is needed.",
    "403": "The request comes from another site, or text may not leave the machine.",
    "404": "There is no such artifact.",
    "413": "The request is too large.",
    "414": "The address is too long.",
    "421": "The host that was asked for is not this one.",
    "429": "Too many requests; Retry-After says when to come again.",
    "500": "Something went wrong.",
    "503": "Too many requests at once, or the source or the index is in use.",
}

_PROBLEM: Schema = {
    "type": "object",
    "description": "Problem details (RFC 9457), and what to do about it.",
    "properties": {
        "status": {"type": "integer"},
        **{name: {"type": "string"} for name in ("type", "title", "detail", "fix")},
    },
    "required": ["type", "title", "status", "detail"],
}


def respond(request: Request) -> Response:
    base = request.base
    named: dict[str, Schema] = {"Problem": _PROBLEM}
    paths = {f"{base}/api/{name}": {"get": _get(operation, named)} for name, operation in OPERATIONS.items()}
    description = {
        "openapi": "3.1.0",
        "info": {
            "title": "Outcrop",
            "version": outcrop.__version__,
            "description": "Searches one repository's index. Every operation reads; none changes anything.",
        },
        "paths": paths,
        "components": {"schemas": named, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }
    return Response(200, json.dumps(description, indent=1).encode(), JSON)


def _get(operation: Operation, named: dict[str, Schema]) -> dict[str, Any]:
    schema = operation.schema
    return {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.documentation,
        "parameters": [
            _parameter(name, properties, name in schema["required"])
            for name, properties in schema["properties"].items()
        ],
        "responses": {"200": {"description": "Done.", "content": {JSON: {"schema": describe_result(operation, named)}}}}
        | {
            code: {"description": meaning, "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
            for code, meaning in _ERRORS.items()
        },
    }


def _parameter(name: str, schema: Schema, required: bool) -> dict[str, Any]:
    inner = {key: value for key, value in schema.items() if key != "description"}
    # A query string cannot say null: leaving the parameter out does.
    options = [each for each in inner.pop("anyOf", []) if each.get("type") != "null"]
    for option in options:
        inner |= option
    found = {
        "name": name,
        "in": "query",
        "required": required,
        "description": schema.get("description", ""),
        "schema": inner,
    }
    if inner.get("type") == "array":
        found |= {"style": "form", "explode": True}
    return found
