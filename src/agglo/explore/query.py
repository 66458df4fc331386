"""Convert the query parameters of a URL to the typed arguments of a request handler."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

_MAX_CHARACTERS = 10_000  # maximum length of one parameter


class BadRequestError(ValueError):
    """An invalid request. The message contains the cause, and says what to pass instead."""


@dataclass(frozen=True)
class Bounds:
    """The smallest and largest allowed value of a numeric parameter."""

    min: float = -math.inf
    max: float = math.inf


def parse_arguments(handler: Callable[..., Any], query: Mapping[str, list[str]]) -> dict[str, Any]:
    """Convert query parameters to the keyword arguments of ``handler``, according to its annotations."""
    known = _parameters(handler)
    unknown = next((name for name in query if name not in known), None)
    if unknown is not None:
        listed = ", ".join(known) or "none"
        raise BadRequestError(f"there is no parameter {unknown[:50]!r}: pass one of {listed}")
    arguments = {}
    for name, (hint, is_required) in known.items():
        texts = query.get(name, [])
        if len(texts) > 1:
            raise BadRequestError(f"{name} is given {len(texts)} times: pass it once")
        if texts:
            arguments[name] = _parse(name, hint, texts[0])
        elif is_required:
            raise BadRequestError(f"{name} is missing: pass {name}=...")
    return arguments


@cache
def _parameters(handler: Callable[..., Any]) -> dict[str, tuple[Any, bool]]:
    """Return the annotation of each keyword-only parameter of ``handler``, and whether it is required."""
    hints = get_type_hints(handler, include_extras=True)
    return {
        name: (hints[name], parameter.default is parameter.empty)
        for name, parameter in inspect.signature(handler).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


def _parse(name: str, hint: Any, text: str) -> Any:
    kind, bounds = get_args(hint) if get_origin(hint) is Annotated else (hint, Bounds())
    if len(text) > _MAX_CHARACTERS:
        raise BadRequestError(f"{name} has {len(text)} characters: pass at most {_MAX_CHARACTERS}")
    if get_origin(kind) is Literal and text not in get_args(kind):
        raise BadRequestError(f"{name}={text[:50]!r} is unknown: pass one of {', '.join(get_args(kind))}")
    if kind is str or get_origin(kind) is Literal:
        return text
    if get_origin(kind) is list:
        return [_parse_number(name, int, bounds, part) for part in text.split(",")]
    return _parse_number(name, kind, bounds, text)


def _parse_number(name: str, kind: Any, bounds: Bounds, text: str) -> int | float:
    try:
        if not text.isascii():
            raise ValueError
        number: int | float = kind(text)
    except ValueError:
        expected = "an integer" if kind is int else "a number"
        raise BadRequestError(f"{name}={text[:50]!r} is not {expected}: pass {expected}") from None
    if not math.isfinite(number) or number > 2**53:
        raise BadRequestError(f"{name}={text[:50]} is too large or not finite: pass a finite number up to 2**53")
    if number < bounds.min:
        raise BadRequestError(f"{name}={number} is too small: pass at least {bounds.min:g}")
    if number > bounds.max:
        raise BadRequestError(f"{name}={number} is too large: pass at most {bounds.max:g}")
    return number
