"""Typed functions as an HTTP interface: what they are asked is checked, and what they answer is described."""

from __future__ import annotations

import dataclasses
import html
import inspect
import math
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from agglo import __version__

_PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean"}
_LONGEST = 10_000  # characters of a text, or entries of a list, that are taken in a question


class BadRequestError(ValueError):
    """A request that is wrong, with what is wrong and what to do about it."""


@dataclass(frozen=True)
class About:
    """What a parameter or a field means, and its bounds."""

    text: str
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class File:
    """A file to be saved, made piece by piece."""

    name: str
    kind: str
    parts: Iterator[bytes]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a question."""

    name: str
    kind: Any
    about: About
    default: Any

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is inspect.Parameter.empty


@cache
def parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The keyword parameters of a function."""
    hints = get_type_hints(function, include_extras=True)
    return tuple(
        Parameter(name, *_unpacked(hints[name]), parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    )


def arguments(function: Callable[..., Any], query: Mapping[str, list[str]]) -> dict[str, Any]:
    """The arguments of a function out of the parameters of an address, checked.

    Raises
    ------
    BadRequestError
        If one is unknown, missing, given twice, no such thing or out of bounds.
    """
    known = {parameter.name: parameter for parameter in parameters(function)}
    unknown = next((name for name in query if name not in known), None)
    if unknown is not None:
        listed = ", ".join(known) or "none"
        raise BadRequestError(f"there is no parameter {unknown[:50]!r}: pass one of {listed}")
    given = {}
    for name, parameter in known.items():
        texts = query.get(name, [])
        if len(texts) > 1:
            raise BadRequestError(f"{name} is given {len(texts)} times: pass it once")
        if texts:
            given[name] = _value(parameter, texts[0])
        elif parameter.required:
            raise BadRequestError(f"{name} is missing: {parameter.about.text or 'pass it'}")
    return given


def _value(parameter: Parameter, text: str) -> Any:
    name, kind = parameter.name, parameter.kind
    if len(text) > _LONGEST:
        raise BadRequestError(f"{name} has {len(text)} characters: pass at most {_LONGEST}")
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise BadRequestError(f"{name}={text[:50]!r} is unknown: pass one of {', '.join(get_args(kind))}")
        return text
    if kind is str:
        return text
    if get_origin(kind) is list:
        return [_number(parameter, int, part) for part in text.split(",")]
    return _number(parameter, kind, text)


def _number(parameter: Parameter, kind: Any, text: str) -> int | float:
    about = parameter.about
    try:
        if not text.isascii():
            raise ValueError
        number: int | float = kind(text)
    except ValueError:
        what = "whole number" if kind is int else "number"
        raise BadRequestError(f"{parameter.name}={text[:50]!r} is no {what}: pass one") from None
    if not math.isfinite(number) or number > 2**53:
        raise BadRequestError(f"{parameter.name}={text[:50]} is too large or not finite: pass another")
    if about.least is not None and number < about.least:
        raise BadRequestError(f"{parameter.name}={number} is too small: pass at least {about.least:g}")
    if about.most is not None and number > about.most:
        raise BadRequestError(f"{parameter.name}={number} is too large: pass at most {about.most:g}")
    return number


def plain(value: Any) -> Any:
    """Dataclasses as JSON can hold them."""
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def openapi(routes: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """The description of the interface, in OpenAPI 3.1."""
    schemas: dict[str, Any] = {}
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    paths = {}
    for address, function in routes.items():
        answer = get_type_hints(function, include_extras=True)["return"]
        if answer is File:
            binary = {"type": "string", "format": "binary"}
            content = {"text/csv": {"schema": binary}, "application/vnd.apache.parquet": {"schema": binary}}
        else:
            content = {"application/json": {"schema": _schema(answer, schemas)}}
        refused = {"application/json": {"schema": error}}
        paths[address] = {
            "get": {
                "operationId": function.__name__,
                "summary": (inspect.getdoc(function) or "").splitlines()[0],
                "parameters": [_parameter(parameter, schemas) for parameter in parameters(function)],
                "responses": {
                    "200": {"description": "The answer.", "content": content},
                    "400": {"description": "A parameter is wrong; the error says which.", "content": refused},
                    "403": {"description": "The token is missing or wrong.", "content": refused},
                    "500": {"description": "The answer failed; the error says why.", "content": refused},
                },
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "agglo explore", "version": __version__, "summary": "A hierarchy, looked into."},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "X-Agglo-Token"}},
        },
        "security": [{"token": []}],
    }


def _parameter(parameter: Parameter, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = _schema(parameter.kind, schemas)
    bounded = schema["items"] if schema.get("type") == "array" else schema
    if parameter.about.least is not None:
        bounded["minimum"] = parameter.about.least
    if parameter.about.most is not None:
        bounded["maximum"] = parameter.about.most
    if not parameter.required:
        schema["default"] = parameter.default
    described = {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.about.text,
        "schema": schema,
    }
    return described | ({"style": "form", "explode": False} if "items" in schema else {})


def _schema(kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    kind, about = _unpacked(kind)
    described = {"description": about.text} if about.text else {}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind], **described}
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"type": "string", "enum": list(inside), **described}
    if origin is list:
        return {"type": "array", "items": _schema(inside[0], schemas), **described}
    if origin in (Union, types.UnionType):  # of a plain type and None
        return {"type": [_PLAIN[inside[0]], "null"], **described}
    name = kind.__name__
    if name not in schemas:
        hints = get_type_hints(kind, include_extras=True)
        schemas[name] = {}  # there before its fields are: types may hold themselves
        schemas[name] = {
            "type": "object",
            "description": inspect.getdoc(kind),
            "properties": {field: _schema(hint, schemas) for field, hint in hints.items()},
            "required": list(hints),
            "additionalProperties": False,
        }
    return {"$ref": f"#/components/schemas/{name}", **described}


def _unpacked(kind: Any) -> tuple[Any, About]:
    if get_origin(kind) is Annotated:
        inside, about = get_args(kind)
        return inside, about
    return kind, About("")


def documentation(described: Mapping[str, Any]) -> str:
    """The interface as a page to read, without a script."""
    parts = []
    for address, methods in described["paths"].items():
        question = methods["get"]
        rows = "".join(
            f"<tr><td><code>{_text(p['name'])}</code></td><td>{_kind(p['schema'])}</td>"
            f"<td>{'required' if p['required'] else 'default ' + _text(repr(p['schema']['default']))}</td>"
            f"<td>{_text(p['description'])}</td></tr>"
            for p in question["parameters"]
        )
        answers = " or ".join(
            _kind(content["schema"]) if kind == "application/json" else _text(kind)
            for kind, content in question["responses"]["200"]["content"].items()
        )
        table = f"<table>{rows}</table>" if rows else "<p>No parameters.</p>"
        parts.append(
            f"<section><h2><code>GET {_text(address)}</code></h2><p>{_text(question['summary'])}</p>{table}"
            f"<p>Answers {answers}.</p></section>"
        )
    for name, schema in described["components"]["schemas"].items():
        rows = "".join(
            f"<tr><td><code>{_text(field)}</code></td><td>{_kind(kind)}</td>"
            f"<td>{_text(kind.get('description', ''))}</td></tr>"
            for field, kind in schema["properties"].items()
        )
        parts.append(
            f'<section id="{_text(name)}"><h2>{_text(name)}</h2><p>{_text(schema["description"])}</p>'
            f"<table>{rows}</table></section>"
        )
    return _PAGE.replace("BODY", "".join(parts))


def _kind(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = _text(schema["$ref"].rsplit("/", 1)[1])
        return f'<a href="#{name}">{name}</a>'
    if schema["type"] == "array":
        return f"list of {_kind(schema['items'])}"
    if "enum" in schema:
        return " or ".join(f"<code>{_text(value)}</code>" for value in schema["enum"])
    return _text(" or ".join(schema["type"]) if isinstance(schema["type"], list) else schema["type"])


def _text(value: object) -> str:
    return html.escape(str(value))


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>agglo explore: HTTP interface</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 3rem auto; padding: 0 1.5rem }
h2 { font-size: 1.05rem; margin: 2.2rem 0 .2rem } p { margin: .3rem 0 }
table { border-collapse: collapse; width: 100%; margin: .6rem 0 }
td { border-top: 1px solid #8884; padding: .3rem .8rem .3rem 0; vertical-align: top }
code { font-size: .92em }
</style></head><body><h1>HTTP interface</h1>
<p>Every question needs the token of the link that <code>agglo explore</code> printed: in the header
<code>X-Agglo-Token</code>, or as the parameter <code>token</code>. Answers are JSON, errors are
<code>{"error": "…"}</code>. For programs: <a href="/openapi.json">openapi.json</a>.</p>BODY</body></html>
"""
