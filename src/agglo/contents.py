"""Descriptions of clusters: centers, examples, spread, terms; see :mod:`agglo.evaluation.clusters`."""

import warnings
from typing import Any

from agglo.evaluation.clusters import (
    FirstMerge,
    Spread,
    centers,
    describe,
    examples,
    first_merge,
    medoids,
    spread,
)
from agglo.evaluation.terms import terms

__all__ = ["FirstMerge", "Spread", "centers", "describe", "examples", "first_merge", "medoids", "spread", "terms"]

_OLD_NAMES = {"Absorbed": "FirstMerge", "absorbed": "first_merge"}


def __getattr__(name: str) -> Any:
    if name not in _OLD_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new_name = _OLD_NAMES[name]
    warnings.warn(f"agglo.contents.{name} is deprecated: use {new_name}", FutureWarning, stacklevel=2)
    return globals()[new_name]
