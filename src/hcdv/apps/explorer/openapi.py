"""The OpenAPI document, made from the table of routes: what can be asked, and what comes back."""

from __future__ import annotations

from typing import Any

import hcdv
from hcdv.apps.explorer.decisions import KINDS
from hcdv.apps.explorer.routes import MOST_LETTERS, ROUTES, ROW, Param, Route

MOST_IDS = 1000
_ERROR = {
    "type": "object", "required": ["error"],
    "properties": {"error": {"type": "string"}},
}  # fmt: skip
_REFUSED = {
    "400": "what is asked breaks a rule: one sentence says which",
    "403": "the token is not that of this start, or the request came from elsewhere",
    "404": "there is no such thing",
    "409": "the run folder cannot be read or written to",
}


def document() -> dict[str, Any]:
    """The whole of it."""
    paths = {f"{route.path}.json": {"get": _of_route(route)} for route in ROUTES}
    paths["/decisions.json"]["post"] = _decide()
    paths["/decisions.csv"] = {"get": _file("Decisions as a table", "text/csv", ())}
    kind = Param(
        "decision", "which decisions", choices=("wrong", "keep", "drop"), default="drop"
    )
    paths["/decisions.txt"] = {
        "get": _file("Ids of the rows decided on, one a line", "text/plain", (kind,))
    }
    paths["/image.png"] = {"get": _file("A row given as an image", "image/png", (ROW,))}
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "hcdv explore", "version": hcdv.__version__,
            "description": "Every page of the explorer as JSON: the page's own address and .json.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "apiKey", "in": "query", "name": "token"}},
        },
        "security": [{"token": []}],
    }  # fmt: skip


def _of_route(route: Route) -> dict[str, Any]:
    schema = {
        "type": "object", "required": list(route.holds),
        "properties": {name: {"type": kind} for name, kind in route.holds.items()},
    }  # fmt: skip
    return {
        "summary": route.title,
        "parameters": [_parameter(param) for param in route.params],
        "responses": _responses("application/json", schema),
    }


def _parameter(param: Param) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "maxLength": MOST_LETTERS}
    if param.kind in ("integer", "number"):
        schema = {"type": param.kind}
        schema |= {} if param.least is None else {"minimum": param.least}
        schema |= {} if param.most is None else {"maximum": param.most}
    if param.kind == "flag":
        schema = {"type": "string", "enum": ["0", "1"]}
    if param.choices:
        schema = {"type": "string", "enum": list(param.choices)}
    if param.repeated:
        schema = {"type": "array", "items": schema, "maxItems": 20}
    return {
        "name": param.name, "in": "query", "description": param.about,
        "required": param.required, "schema": schema,
    }  # fmt: skip


def _responses(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    refused = {
        code: {"description": why, "content": error} for code, why in _REFUSED.items()
    }
    return {
        "200": {"description": "found", "content": {kind: {"schema": schema}}},
        **refused,
    }


def _file(summary: str, kind: str, params: tuple[Param, ...]) -> dict[str, Any]:
    schema = {"type": "string", **({"format": "binary"} if kind == "image/png" else {})}
    return {
        "summary": summary, "parameters": [_parameter(param) for param in params],
        "responses": _responses(kind, schema),
    }  # fmt: skip


def _decide() -> dict[str, Any]:
    schema = {
        "type": "object", "required": ["ids", "decision"], "additionalProperties": False,
        "properties": {
            "ids": {"type": "array", "items": {"type": "string"}, "minItems": 1,
                    "maxItems": MOST_IDS},
            "decision": {"type": "string", "enum": list(KINDS)},
            "label": {"type": "string", "nullable": True, "maxLength": 500},
        },
    }  # fmt: skip
    said = {
        "type": "object", "required": ["n_decided"],
        "properties": {"n_decided": {"type": "integer"}},
    }  # fmt: skip
    responses = _responses("application/json", said)
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    responses["413"] = {"description": "too much was posted", "content": error}
    return {
        "summary": "Decide on rows",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        },
        "responses": responses,
    }
